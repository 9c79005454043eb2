"""What stands beside each lane, and what does each lane hold, as a table?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.store.timeline_lane_bins import LANE_ALARMS
from app.web.timeline.gather import Gathered
from app.web.timeline.lanes import Lane
from app.web.words import count, ident, short_uuid

LABEL_LETTERS, TAIL_LETTERS = 20, 9


@dataclass(frozen=True, slots=True)
class LaneLabel:
    """What stands beside a lane."""

    label: str
    whole: str
    note: str
    address: str | None


@dataclass(frozen=True, slots=True)
class LaneRow:
    """What the chart draws in one lane, counted; `passes` None: not drawn for this range."""

    label: str
    address: str | None
    note: str
    starts: int
    passes: int | None
    before: int
    inside: int
    after: int
    actions: int
    proposals: int
    elastic: int


def label(lane: Lane, found: Gathered) -> LaneLabel:
    """Write what stands beside a lane: short, with the whole at hand."""
    kind, row_id = lane.key
    address = {"node": "/nodes/", "gpu": "/gpus/", "job": "/jobs/"}.get(kind)
    short = lane.label
    if kind == "gpu":
        short = short_uuid(short)
    elif kind == "slice":
        short = short.split(" of ", 1)[0]
    elif kind == "node" and len(short) > LABEL_LETTERS:
        short = "…" + short[-TAIL_LETTERS:]
    return LaneLabel(
        short, lane.label, _note(lane, found), None if address is None else address + ident(row_id)
    )


def _note(lane: Lane, found: Gathered) -> str:
    if lane.key[0] == "slice":
        return lane.label.split(" of ", 1)[1]
    alarms = count(lane.alarms, "alarm") if lane.alarms else "no alarm"
    if found.bins is not None and lane.key[0] in ("node", "gpu", "job"):
        total = sum(one.alarms for one in found.bins if one.key == lane.key[1])
        stopped = f"newest {LANE_ALARMS} alarms" if lane.key[1] in found.full else None
        alarms = stopped or count(total, "alarm")
    return alarms if lane.case is None else f"{lane.case.standing}, {alarms}"


def table(found: Gathered, drawn: dict[str, Any]) -> tuple[LaneRow, ...]:
    """Count what is drawn in each lane."""
    return tuple(_row(at, lane, found, drawn) for at, lane in enumerate(found.lanes))


def _row(at: int, lane: Lane, found: Gathered, drawn: dict[str, Any]) -> LaneRow:
    flags = [row[2] for row in drawn["checkpoints"] if row[0] == at]
    acts = [row[2] for row in drawn["actions"] if row[0] == at]
    passes = sum(row[4] for row in drawn["strips"] if row[0] == at)
    shown = label(lane, found)
    return LaneRow(
        label=lane.label,
        address=shown.address,
        note=shown.note,
        starts=len(found.attempts.get(lane.key, ())),
        passes=None if found.passes is None else passes,
        before=flags.count("before"),
        inside=flags.count("inside"),
        after=flags.count("after"),
        actions=acts.count("action"),
        proposals=acts.count("proposal"),
        elastic=sum(1 for row in drawn["elastic"] if row[0] == at),
    )
