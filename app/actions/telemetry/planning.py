"""Which GPUs' telemetry, over which time, belongs to an alarm?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.actions.alarm_dossier import Core, Dossier
from app.store.alarm_reading import AlarmFacts
from app.store.attempt_reading import Beat
from app.store.telemetry_queue import Want
from witness.rules.identity import gpu_uuid
from witness.rules.observations import Window
from witness.rules.step_clock import Mark, earliest
from witness.rules.topology import Topology

BASELINE = timedelta(hours=2)
"""Kept from before the suspect window: what is usual for this GPU at this work."""
UNKNOWN_START = timedelta(hours=1)
"""Taken as the suspect window's length where no step has a time."""
LONGEST = timedelta(hours=24)
"""A suspect window that is longer is cut: the days before it can be asked for by hand."""
AFTER = timedelta(minutes=10)
GRID = timedelta(minutes=5)
"""Windows begin and end on this grid, so that alarms of one moment share their pulls."""
SUSPECTS = 8
"""An alarm that names more GPUs points at software, not at each of them."""
RING = 16
"""GPUs of the same index on other nodes that a suspect is compared with."""
NODES_OF_NOBODY = 16
"""Where an alarm names nobody, the GPUs of so many nodes of the job are looked at."""
GPUS_OF_NOBODY = 128
"""And no more GPUs than this, whatever a document says of how many a node has."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A GPU in doubt with those that it is compared with, all canonical UUIDs."""

    uuid: str
    node: tuple[str, ...] = ()
    ring: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted for an alarm; `left_out` counts GPUs in doubt beyond the limit."""

    suspects: tuple[Suspect, ...]
    window: Window
    wants: tuple[Want, ...]
    left_out: int


Known = Core | Dossier
"""What decides whose telemetry belongs to an alarm; planning and reading need its core alone."""


def plan(known: Known) -> Plan:
    """Work out what an alarm wants; without a rank map nothing, as no GPU is known."""
    uuids = doubted(known)
    chosen = _suspects(known.topology, uuids[: _limit(known)])
    window = window_of(known)
    start, end = on_grid(window.start, window.end)
    wants = [
        Want(known.facts.cluster, uuid, start, end, role, one.uuid)
        for one in chosen
        for role, listed in (("suspect", (one.uuid,)), ("node", one.node), ("ring", one.ring))
        for uuid in listed
    ]
    return Plan(tuple(chosen), window, tuple(wants), len(uuids) - len(chosen))


def doubted(known: Known) -> list[str]:
    """List the GPUs in doubt: those named, else those compared, else all of the job's nodes.

    Where ranks are named whose GPUs are not known, nobody: those compared are not in doubt.
    """
    # A short id that intake could complete is as good as a whole one.
    named = [_whole(one.gpu_uuid) for one in known.findings]
    if any(named):
        return list(dict.fromkeys(uuid for uuid in named if uuid))
    if known.alarm.named_ranks():
        return []
    ranks = sorted({rank for pair in known.alarm.mismatched_pairs for rank in pair})
    if not ranks and known.topology is not None:
        ranks = sorted(known.topology.places)
    return list(dict.fromkeys(_uuids(known.topology, ranks)))


def window_of(known: Known) -> Window:
    """Place the alarm's suspect window in time, with what is usual before and a while after it."""
    return window_at(known.facts, known.beats)


def window_at(facts: AlarmFacts, beats: Iterable[Beat]) -> Window:
    """Do the same from what is stored of an alarm and of its attempt's passes."""
    at = _seconds(facts.received_at if facts.time_note else facts.occurred_at)
    begun = at - UNKNOWN_START.total_seconds()
    if facts.window is not None:
        marks = [Mark(beat.last_step, _seconds(beat.at)) for beat in beats]
        told = earliest(facts.window[0], marks, Mark(facts.step, at), facts.step_time_s)
        begun = begun if told is None else min(told, at)
    begun = max(begun, at - LONGEST.total_seconds())
    start, end = begun - BASELINE.total_seconds(), at + AFTER.total_seconds()
    return Window(start, begun, at, end)


def _limit(known: Known) -> int:
    """A fault of the reduction names nobody, and may sit on any node of the job."""
    if known.alarm.named_ranks() or known.alarm.mismatched_pairs:
        return SUSPECTS
    per_node = known.topology.gpus_per_node if known.topology else None
    return min(NODES_OF_NOBODY * (per_node or 8), GPUS_OF_NOBODY)


def _suspects(topology: Topology | None, uuids: Sequence[str]) -> list[Suspect]:
    """Find those that each is compared with; a map of 100,000 ranks is gone through twice."""
    if topology is None:
        return [Suspect(one) for one in uuids]
    wanted, places = frozenset(uuids), topology.places.values()
    ranks: dict[str, int] = {}
    for one in places:
        if one.gpu_uuid in wanted:
            ranks.setdefault(one.gpu_uuid, one.rank)
    hosts: dict[str | None, list[int]] = {topology.host(rank): [] for rank in ranks.values()}
    for one in places:
        if one.host in hosts:
            hosts[one.host].append(one.rank)
    return [_suspect(topology, one, ranks.get(one), hosts) for one in uuids]


def _suspect(
    topology: Topology, uuid: str, rank: int | None, hosts: Mapping[str | None, Sequence[int]]
) -> Suspect:
    host = None if rank is None else topology.host(rank)
    if rank is None or host is None:
        return Suspect(uuid)
    ring = [one for one in topology.ring(rank, most=RING + 1) if topology.host(one) != host]
    node = tuple(one for one in dict.fromkeys(_uuids(topology, hosts[host])) if one != uuid)
    return Suspect(uuid, node, tuple(dict.fromkeys(_uuids(topology, ring))))


def _uuids(topology: Topology | None, ranks: Iterable[int]) -> Sequence[str]:
    """Give the whole UUIDs of ranks; a short one could be any of a batch."""
    places = (topology.place(rank) if topology else None for rank in ranks)
    found = (_whole(place.gpu_uuid) if place else None for place in places)
    return [uuid for uuid in found if uuid is not None]


def _whole(text: str | None) -> str | None:
    known = gpu_uuid(text)
    return known.canonical if known.form == "full" else None


def on_grid(start: float, end: float) -> tuple[datetime, datetime]:
    """Widen a time to the grid on which windows begin and end."""
    grid = GRID.total_seconds()
    first, last = start // grid * grid, -(-end // grid) * grid
    return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
