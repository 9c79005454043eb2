"""What was written down about the machines around an alarm, or about one, in order of time?

Lines of HyperPod's health agent, what stands on the Kubernetes node, and the Xids in the kept
metrics. For pages and programs: nothing here is kept, all of it is read from what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.actions.telemetry.node_entries import Entry, entries_of, of_metrics
from app.actions.telemetry.planning import window_at
from app.store import (
    alarm_reading,
    attempt_reading,
    gpu_addresses,
    node_evidence,
    node_records,
    telemetry_kept,
    telemetry_queue,
)
from app.store.connection import Connection
from app.store.device_reading import Node, gpus_in, machines_of, node_by_id
from app.store.node_evidence import Evidence
from app.store.node_records import KeptRecord
from witness.rules.blocks import BlockError
from witness.rules.observations import Window
from witness.rules.samples import Series
from witness.rules.xid_events import GAUGE, TOTAL, WINDOW_COUNT

MOST_RECORDS = 10_000
MOST_ENTRIES = 500
MOST_QUESTIONS = 200
MOST_WINDOWS = 400
TEMPERATURE = 150
"""Sent by every exporter: it tells when a GPU was watched, so that a new total began at 0."""


@dataclass(frozen=True, slots=True)
class NodeLog:
    """What was written down, by time, what has none last.

    `asked` says what was collected of which machine and how that stands. `left_out` counts entries
    beyond the limit, `damaged` says what of the kept metrics cannot be read.
    """

    entries: tuple[Entry, ...]
    asked: tuple[Evidence, ...]
    left_out: int = 0
    damaged: str | None = None

    @property
    def counting(self) -> int:
        """Count the entries that count in the alarm's reading."""
        return sum(one.counts is True for one in self.entries)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is read: machines, what was asked of them, windows of their GPUs, and the alarm."""

    nodes: Mapping[int, Node]
    asked: Sequence[Evidence]
    windows: Mapping[int, str]  # UUID by window
    home: Mapping[str, int]  # machine by UUID
    times: Window
    suspects: frozenset[str] | None  # None: no alarm is meant, so nothing counts for one


def read_node_log(connection: Connection, alarm_id: int) -> NodeLog:
    """Read what was written down about the machines of the GPUs in doubt around an alarm."""
    facts = alarm_reading.read_alarm(connection, alarm_id)
    if facts is None:
        return NodeLog((), ())
    known = facts.attempt_id is not None
    beats = (
        attempt_reading.read_beats(connection, facts.attempt_id or 0, facts.step) if known else ()
    )
    asked = node_evidence.of_alarm(connection, alarm_id)
    wanted = telemetry_queue.of_alarm(connection, alarm_id)
    suspects = frozenset(one.gpu_uuid for _, role, one in wanted if role == "suspect")
    node_ids = {one.node_id for one in asked} or {
        one.node_id
        for one in alarm_reading.read_findings(connection, alarm_id)
        if one.node_id is not None
    }
    nodes = _nodes(connection, node_ids)
    home = _homes(connection, nodes)
    windows = {one.id: one.gpu_uuid for _, _, one in wanted if one.gpu_uuid in home}
    around = _Around(nodes, asked, windows, home, window_at(facts, beats), suspects)
    return _read(connection, around)


def read_node_log_of(connection: Connection, node: Node, start: datetime, end: datetime) -> NodeLog:
    """Read what was written down about one machine in a time, whichever alarm asked for it."""
    asked = node_evidence.of_node(connection, node.id, start, end, MOST_QUESTIONS)
    nodes = {node.id: node}
    home = _homes(connection, nodes)
    here = [one.gpu.id for one in gpus_in(connection, node.id) if one.gpu.uuid in home]
    times_asked = (start, end)
    windows = gpu_addresses.windows_of(connection, here, node.cluster, times_asked, MOST_WINDOWS)
    first, last = start.timestamp(), end.timestamp()
    times = Window(first, first, last, last, 0.0)
    found = _read(connection, _Around(nodes, asked, windows, home, times, None))
    inside = tuple(one for one in found.entries if one.at is None or start <= one.at <= end)
    return replace(found, entries=inside)


def _nodes(connection: Connection, node_ids: Iterable[int]) -> dict[int, Node]:
    found = (node_by_id(connection, one) for one in sorted(node_ids))
    return {one.id: one for one in found if one is not None}


def _homes(connection: Connection, nodes: Mapping[int, Node]) -> dict[str, int]:
    """Give the machine among these in which each GPU was seen last."""
    placed = {place.gpu.id for node_id in nodes for place in gpus_in(connection, node_id)}
    home: dict[str, int] = {}
    for place in machines_of(connection, placed) if placed else ():
        if place.node.id in nodes:
            home.setdefault(place.gpu.uuid, place.node.id)
    return home


def _read(connection: Connection, around: _Around) -> NodeLog:
    kept = node_records.of_evidence(connection, around.asked, MOST_RECORDS)
    pci = gpu_addresses.pci_of(connection, around.windows)
    found: list[Entry] = []
    for node_id, node in around.nodes.items():
        mine: list[KeptRecord] = [one for one in kept if one.node_id == node_id]
        here = {uuid: pci.get(uuid, ()) for uuid, home in around.home.items() if home == node_id}
        found += entries_of(node, mine, here, around.times, around.suspects)
    series, damaged = _series(connection, around.windows)
    for uuid in sorted(set(around.windows.values())):
        node = around.nodes[around.home[uuid]]
        own = [one for one in series if one.gpu_uuid == uuid]
        address = next(iter(pci.get(uuid, ())), None)
        found += of_metrics(node, uuid, address, own, around.times, around.suspects)
    entries = _within_limit(found)
    return NodeLog(entries, tuple(around.asked), len(found) - len(entries), damaged)


def _series(connection: Connection, windows: Mapping[int, str]) -> tuple[list[Series], str | None]:
    fields = (GAUGE, WINDOW_COUNT, TOTAL, TEMPERATURE)
    try:
        return telemetry_kept.read_series(connection, windows, fields), None
    except BlockError as error:
        return [], f"What was kept of the metrics cannot be read: {error}."


def _within_limit(found: Sequence[Entry]) -> tuple[Entry, ...]:
    """Keep what counts, then what says most, then the newest; in order of time."""
    order = ("hardware", "hint", "context")
    ever = datetime.min.replace(tzinfo=UTC)
    ranked = sorted(found, key=lambda one: one.at or ever, reverse=True)
    ranked.sort(key=lambda one: (one.counts is not True, order.index(one.evidence)))
    kept = ranked[:MOST_ENTRIES]
    return tuple(sorted(kept, key=lambda one: (one.at is None, one.at or ever, one.node or "")))
