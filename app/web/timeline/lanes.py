"""Which lanes are drawn, in which order, and which alarm stands in which?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.store.timeline_cases import OpenCase
from app.store.timeline_reading import AlarmRow, FindingRow
from app.web.timeline.asked import By

CANDIDATES = 500
"""Devices among the newest alarms that compete for the lanes."""

MOST_SLICES = 4_096
Key = tuple[str, int]
"""Kind ("node", "gpu", "job", "slice", "nobody", "unresolved") and id; of a slice its job's id
times `MOST_SLICES` and its number."""
NOBODY: Key = ("nobody", 0)
UNRESOLVED: Key = ("unresolved", 0)


@dataclass(slots=True)
class Lane:
    """One lane: whose it is, how many alarms of the range stand in it, what is open."""

    key: Key
    label: str
    alarms: int = 0
    last_at: datetime | None = None
    case: OpenCase | None = None
    nodes: set[int] = field(default_factory=set)
    attempts: set[int] = field(default_factory=set)
    jobs: set[int] = field(default_factory=set)
    cases: set[int] = field(default_factory=set)

    def see(self, row: AlarmRow, found: FindingRow | None) -> None:
        """Count an alarm and remember what it leads to."""
        self.alarms += 1
        self.last_at = row.at if self.last_at is None else max(self.last_at, row.at)
        self.jobs.add(row.job_id)
        if row.attempt_id is not None:
            self.attempts.add(row.attempt_id)
        if found is not None:
            self.cases.add(found.case_id)
            if found.node_id is not None:
                self.nodes.add(found.node_id)


@dataclass(frozen=True, slots=True)
class Mark:
    """One alarm in one lane; `rank` None: nobody named there."""

    row: AlarmRow
    lane: Key
    rank: int | None
    finding: FindingRow | None


@dataclass(slots=True)
class Placed:
    """All lanes that the alarms of a range ask for, before the choice, and their marks."""

    lanes: dict[Key, Lane]
    marks: list[Mark]


def place(
    rows: Sequence[AlarmRow], findings: Mapping[int, tuple[FindingRow, ...]], by: By
) -> Placed:
    """Put every alarm into the lanes of the devices it names, or of its job."""
    lanes: dict[Key, Lane] = {}
    marks: list[Mark] = []
    for row in rows:
        seen: set[Key] = set()
        for key, label, found in _targets(row, findings.get(row.id, ()), by):
            if key in seen:
                continue
            seen.add(key)
            if key not in lanes and len(lanes) >= CANDIDATES:
                continue
            lane = lanes.setdefault(key, Lane(key, label))
            lane.see(row, found)
            marks.append(Mark(row, key, None if found is None else found.rank, found))
    return Placed(lanes, marks)


def _targets(
    row: AlarmRow, found: Sequence[FindingRow], by: By
) -> Iterable[tuple[Key, str, FindingRow | None]]:
    named = [one for one in found if one.rank is not None]
    if by in ("job", "slice"):
        yield ("job", row.job_id), row.job, named[0] if named else None
        return
    placed = False
    for one in found:
        if by == "node" and one.node_id is not None:
            placed = True
            yield ("node", one.node_id), one.node or one.instance_id or "unnamed", one
        elif by == "gpu" and one.gpu_id is not None:
            placed = True
            yield ("gpu", one.gpu_id), one.gpu_uuid or "unnamed", one
    if not placed and named:
        yield UNRESOLVED, "Not resolved", named[0]
    elif not placed:
        yield NOBODY, "Nobody named", found[0] if found else None


def choose(lanes: Iterable[Lane], most: int) -> tuple[list[Lane], int]:
    """Take the most urgent lanes: open case first, then the newest alarm; count the others."""
    ordered = sorted(lanes, key=_urgency)
    return ordered[:most], max(len(ordered) - most, 0)


def _urgency(lane: Lane) -> tuple[int, float, Key]:
    urgency = -1 if lane.case is None else lane.case.urgency
    newest = 0.0 if lane.last_at is None else lane.last_at.timestamp()
    return -urgency, -newest, lane.key
