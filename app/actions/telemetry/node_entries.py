"""How does each thing that was written down about a machine become one entry of its log?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from app.cluster.marks import FIELD_MANAGER
from app.store.device_reading import Node
from app.store.node_records import KeptRecord
from witness.rules import words
from witness.rules.around import around
from witness.rules.dcgm_rows import Evidence
from witness.rules.moments import at
from witness.rules.node_faults import FAR_APART_S, PREFIX, NodeFault, fault_observations
from witness.rules.node_records import (
    DEEP_CHECK,
    HEALTH,
    Standing,
    faults_in,
    gathered,
    standing_in,
    when_of,
)
from witness.rules.observations import Observation, Window
from witness.rules.samples import Series
from witness.rules.xid import XidClass, xid_of
from witness.rules.xid_events import xid_events

Source = Literal[
    "agent log", "node condition", "node label", "node annotation", "node", "Xid metric"
]
"""`node`: the node as it was read, where that is about another machine."""

_SOURCES: Mapping[str, Source] = {
    "log": "agent log",
    "condition": "node condition",
    "label": "node label",
    "annotation": "node annotation",
}
_OF_STANDING = {
    HEALTH: "How a node is treated is no evidence.",
    DEEP_CHECK: "A check that passed clears nothing, and one that failed does not say when.",
}
_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was written down about a machine.

    `at` is None where no time is given, as with labels; `until` is the last of `times` equal ones.
    `gpu_uuid` is None where the GPU is not said or no kept metrics say who sits at `pci`.
    `evidence` says how much it says about the hardware of its GPU. `counts` says whether it makes
    a reading of the alarm risen; None where no alarm is meant. `raw_id` leads to the record as it
    came; None for metrics. `detail` are its own words.
    """

    at: datetime | None
    source: Source
    node_id: int
    node: str | None
    instance_id: str | None
    text: str
    evidence: Evidence = "context"
    counts: bool | None = False
    gpu_uuid: str | None = None
    pci: str | None = None
    xid: int | None = None
    xid_class: XidClass | None = None
    until: datetime | None = None
    times: int = 1
    detail: str = ""
    raw_id: int | None = None


def entries_of(
    node: Node,
    records: Sequence[KeptRecord],
    pci: Mapping[str, Sequence[str]],
    times: Window,
    suspects: Collection[str] | None,
) -> list[Entry]:
    """Make the entries of a machine's records; `pci` gives the addresses of each of its GPUs.

    `suspects` are the GPUs for whose readings something can count, None where no alarm is meant.
    """
    faults: list[NodeFault] = []
    origin: dict[NodeFault, int] = {}
    for one in records:
        for fault in faults_in(one.record) or _not_understood(one):
            faults.append(fault)
            origin.setdefault(fault, one.id)
    mine = None if suspects is None else [pci[uuid] for uuid in pci if uuid in suspects]
    owner = {address: uuid for uuid, addresses in pci.items() for address in addresses}
    found = [
        _entry(node, fault, origin[replace(fault, repeats=0, until=None)], owner, times, mine)
        for fault in gathered(faults, when_of(times))
    ]
    return [*found, *_standings(node, records), *_of_others(node, records)]


def of_metrics(
    node: Node,
    uuid: str,
    pci: str | None,
    series: Iterable[Series],
    times: Window,
    suspects: Collection[str] | None,
) -> list[Entry]:
    """Make the entries of the Xids that the kept metrics of one GPU show."""
    known = around(times, uuid, series)
    return [
        _of_metric(node, uuid, pci, one, suspects)
        for one in xid_events(known)
        if one.xid is not None or one.code == "xid_gone"
    ]


def _entry(
    node: Node,
    fault: NodeFault,
    raw_id: int,
    owner: Mapping[str, str],
    times: Window,
    mine: Sequence[Sequence[str]] | None,
) -> Entry:
    is_read = bool(fault.kind or fault.reason or fault.xid)
    counts = None
    if mine is not None:
        observed = (one for pci in mine for one in fault_observations(times, [fault], pci))
        counts = is_read and any(one.risen for one in observed)
    address = None if fault.xid is None else fault.xid.pci
    number = None if fault.xid is None else fault.xid.number
    uuid = owner.get(address or "")
    evidence = fault.evidence if is_read else "context"
    if evidence == "hardware" and uuid is None:
        evidence = "hint"  # as in a reading: it may be any GPU of the node
    return _base(node, _SOURCES[fault.source], _said(fault, address, uuid, is_read=is_read),
        at=_moment(fault.time), evidence=evidence, counts=counts, gpu_uuid=uuid, pci=address,
        xid=number, xid_class=None if number is None else xid_of(number).kind,
        until=_moment(fault.until), times=fault.repeats + 1,
        detail=words.cut(fault.message, _MESSAGE), raw_id=raw_id,
    )  # fmt: skip


def _said(fault: NodeFault, address: str | None, uuid: str | None, *, is_read: bool) -> str:
    text = fault.said if is_read else "A line that cannot be read as one of the agent's."
    if address is not None and uuid is None:
        text += f" It is the GPU at {address}; which one sits there is not known."
    is_far = fault.time is None or abs((fault.inner or 0) - fault.time) > FAR_APART_S
    if fault.inner is not None and is_far:
        text += f" The line itself also says {at(fault.inner)}."
    return text


def _base(node: Node, source: Source, text: str, **more: object) -> Entry:
    return Entry(
        source=source,
        node_id=node.id,
        node=node.name,
        instance_id=node.instance_id,
        text=text,
        **({"at": None} | more),  # type: ignore[arg-type]
    )


def _not_understood(one: KeptRecord) -> tuple[NodeFault, ...]:
    """Show a line that is none of the agent's: it may be in a form that is not known yet."""
    if one.record.kind != "log" or one.record.other is not None:
        return ()
    return (
        NodeFault("log", "", "", words.plain(words.cut(one.record.text, _MESSAGE)), one.record.at),
    )


def _standings(node: Node, records: Sequence[KeptRecord]) -> Iterator[Entry]:
    """Say how HyperPod treats the node: no evidence, an order of ours may have set it."""
    seen: set[Standing] = set()
    for one in records:
        for standing in standing_in(one.record):
            if standing in seen:
                continue
            seen.add(standing)
            who = "this service" if standing.writer == FIELD_MANAGER else standing.writer
            by = f", written last by {words.cut(who)}" if who else ""
            text = (
                f"{standing.label.removeprefix(PREFIX)} was {words.cut(standing.value)} when the "
                f"node was read at {at(one.record.at)}{by}. {_OF_STANDING[standing.label]}"
            )
            yield _base(node, "node label", text, raw_id=one.id)


def _of_others(node: Node, records: Sequence[KeptRecord]) -> Iterator[Entry]:
    for one in records:
        if one.record.other is not None:
            yield _base(node, "node", one.record.other, at=one.at, raw_id=one.id)


def _of_metric(
    node: Node, uuid: str, pci: str | None, one: Observation, suspects: Collection[str] | None
) -> Entry:
    counts = None if suspects is None else one.risen and uuid in suspects
    is_dated = one.code != "xid_standing" and one.last is not None
    number = None if one.xid is None else xid_of(one.xid)
    return _base(node, "Xid metric", one.text, at=_moment(one.last if is_dated else None),
        evidence=one.evidence, counts=counts, gpu_uuid=uuid, pci=pci, xid=one.xid,
        xid_class=number.kind if number else None, times=round(one.amount or 1),
    )  # fmt: skip


def _moment(time: float | None) -> datetime | None:
    if time is None:
        return None
    try:
        return datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):
        return None
