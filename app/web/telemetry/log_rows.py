"""What was written down about the machines of a GPU, row by row, and why does a line not count?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.actions.telemetry.node_entries import Entry
from app.actions.telemetry.node_log import NodeLog, read_node_log_of
from app.store import ids
from app.store.connection import Connection
from app.store.device_reading import Node
from app.store.node_evidence import Evidence

FIRST, MOST = 25, 200
"""Rows that stand open and rows in all: what counts is never folded away behind the rest."""

LATELY = timedelta(days=7)
"""How far the log of a machine's own page reaches back; other times stand on its GPUs' pages."""

CLASSES = {
    "application": "application first",
    "hardware": "hardware",
    "driver": "driver or firmware",
    "side_effect": "side effect",
    "information": "information",
    "recovery": "recovery action",
    "unknown": "not known here",
}
SOURCES = {
    "agent log": "health agent’s log",
    "node condition": "condition of the node",
    "node label": "label of the node",
    "node annotation": "annotation of the node",
    "node": "the node as it was read",
    "Xid metric": "DCGM metric",
}
_WEIGHT = {
    "hardware": "the hardware’s own statement",
    "hint": "a hint",
    "context": "context only",
}
_OF_CLASS = {
    "application": "Looks at the application first; a wrong value can crash a correct one.",
    "side_effect": "It follows from another error.",
    "information": "For information only.",
}
_STATES = {
    "queued": "waits to be read",
    "claimed": "is being read",
    "done": "read",
    "refused": "refused",
    "given_up": "given up",
    "no_way": "not connected",
}
_KINDS = {"log": "The health agent’s log", "node": "The Kubernetes node"}


@dataclass(frozen=True, slots=True)
class Row:
    """One entry as shown; `counts` None: no alarm is meant."""

    at: datetime | None
    until: datetime | None
    times: int
    gpu_id: int | None
    gpu_uuid: str | None
    whose: str
    node_id: int
    node: str
    xid: int | None
    kind: str | None
    says: str
    detail: str
    source: str
    counts: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What was looked into, and how that stands."""

    node_id: int
    node: str
    what: str
    state: str
    word: str
    said: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class LogRows:
    """The log on a page: rows that stand open, all where that is more, and what was asked.

    `of_alarm` tells whether rows can count for an alarm.
    """

    first: tuple[Row, ...]
    whole: tuple[Row, ...]
    in_all: int
    counting: int
    asked: tuple[Asked, ...]
    damaged: str | None
    of_alarm: bool

    @property
    def waits(self) -> bool:
        """Tell whether something is still to come."""
        return any(one.state in ("queued", "claimed") for one in self.asked)


def of_alarm(log: NodeLog, suspects: Collection[str], suspect_from: float | None) -> LogRows:
    """Lay out the log around an alarm; `suspects` are the GPUs in doubt."""
    rows = [_row(one, suspects, suspect_from) for one in log.entries]
    return _laid_out(log, rows, of_alarm=True)


def of_gpu(log: NodeLog, uuid: str) -> LogRows:
    """Lay out the log of a time; nothing in it counts for an alarm here."""
    rows = [_row(one, (uuid,), None) for one in log.entries]
    return _laid_out(log, rows, of_alarm=False)


def of_node(connection: Connection, node: Node, now: datetime) -> LogRows:
    """Read and lay out what a machine wrote down lately, whichever alarm asked for it."""
    return _of_time(read_node_log_of(connection, node, now - LATELY, now))


def _of_time(log: NodeLog) -> LogRows:
    meant = {one.gpu_uuid for one in log.entries if one.gpu_uuid}
    return _laid_out(log, [_row(one, meant, None) for one in log.entries], of_alarm=False)


def _laid_out(log: NodeLog, rows: Sequence[Row], *, of_alarm: bool) -> LogRows:
    in_all = len(rows) + log.left_out
    first = rows
    if len(rows) > FIRST:
        lead = [one for one in rows if one.counts] or rows
        first = lead[-FIRST:]
    return LogRows(
        tuple(first),
        tuple(rows[-MOST:]) if len(rows) > len(first) else (),
        in_all,
        log.counting,
        tuple(_asked(one) for one in log.asked),
        log.damaged,
        of_alarm,
    )


def _row(one: Entry, meant: Collection[str], suspect_from: float | None) -> Row:
    mine = one.gpu_uuid in meant
    whose = "" if one.gpu_uuid else "GPU not said"
    if one.gpu_uuid and not mine:
        whose = "another GPU"
    return Row(
        at=one.at,
        until=one.until,
        times=one.times,
        gpu_id=None if one.gpu_uuid is None else ids.derive("gpu", one.gpu_uuid),
        gpu_uuid=one.gpu_uuid,
        whose=whose,
        node_id=one.node_id,
        node=one.node or one.instance_id or "unnamed",
        xid=one.xid,
        kind=None if one.xid_class is None else CLASSES[one.xid_class],
        says=one.text,
        detail=one.detail,
        source=SOURCES[one.source],
        counts=one.counts,
        why=_WEIGHT[one.evidence] if one.counts is None else _why(one, mine, suspect_from),
    )


def _why(one: Entry, mine: bool, suspect_from: float | None) -> str:
    """Say why an entry counts or does not."""
    if one.counts:
        return _WEIGHT[one.evidence]
    if one.gpu_uuid is not None and not mine:
        return "It is of a GPU that is not in doubt here."
    if one.at is None and one.evidence == "context" and one.source != "Xid metric":
        return "It says nothing of the hardware."
    if one.at is None:
        return "No time is given: it may be much older."
    said = _OF_CLASS.get(one.xid_class or "")
    if said is not None:
        return said
    if one.evidence == "context":
        return "It says nothing of the hardware."
    if suspect_from is not None and one.at.timestamp() < suspect_from:
        return "A hint from before the suspect window."
    return "It does not make the reading risen."


def _asked(one: Evidence) -> Asked:
    return Asked(
        one.node_id,
        one.label,
        _KINDS[one.kind],
        one.state,
        _STATES.get(one.state, one.state),
        one.said,
        one.read_at,
    )
