"""What is read from the store for one address of the timeline?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.store.connection import Connection
from app.store.timeline_bins import Histogram, bin_width, histogram
from app.store.timeline_cases import ProposalRow, open_cases, proposals_in
from app.store.timeline_lane_bins import LaneBin, lane_bins
from app.store.timeline_lanes import (
    MOST_JOBS,
    STRIP_HOURS,
    AttemptRow,
    CheckpointRow,
    ElasticRow,
    attempts_by_id,
    attempts_of_jobs,
    attempts_on_nodes,
    checkpoints_in,
    elastic_in,
    jobs_seen,
    last_passes,
    passes_by_hour,
)
from app.store.timeline_reading import (
    ActionRow,
    AlarmPage,
    FindingRow,
    action_page,
    alarm_page,
    findings_of,
)
from app.store.timeline_scope import Scope, resolve
from app.web.timeline import naming
from app.web.timeline.asked import MOST_LANES, Asked
from app.web.timeline.lanes import MOST_SLICES, Key, Lane, Mark, choose, place

MARKS = 1_000
"""Alarms drawn one by one; with more, each lane shows counts."""
MOST_ACTIONS = 300
LANE_BINS = 60
OVERVIEWS = (1, 7, 30, 90, 400)
"""Days that the overview above the lanes may show; it shows at least three times the range."""


@dataclass(slots=True)
class Gathered:
    """Everything about a range, as read; the drawing code decides nothing about rows.

    `bins` is None where every alarm has a mark of its own; `full` names the lanes whose counts
    stop at their newest alarms; `attempts` go by lane.
    """

    asked: Asked
    scope: Scope
    overview: Histogram
    page: AlarmPage
    findings: dict[int, tuple[FindingRow, ...]]
    lanes: list[Lane]
    more_lanes: int
    marks: list[Mark]
    attempts: dict[Key, list[AttemptRow]] = field(default_factory=dict)
    attempts_cut: bool = False
    passes: dict[int, dict[int, int]] | None = None
    last_passes: dict[tuple[int, str], tuple[int, datetime]] = field(default_factory=dict)
    checkpoints: tuple[CheckpointRow, ...] = ()
    elastic: tuple[ElasticRow, ...] = ()
    actions: tuple[ActionRow, ...] = ()
    proposals: tuple[ProposalRow, ...] = ()
    bins: tuple[LaneBin, ...] | None = None
    bin_width: timedelta = timedelta(0)
    full: frozenset[int] = frozenset()

    @property
    def job_ids(self) -> list[int]:
        """List the jobs of the lanes, those with bars first."""
        found = {one.job_id: None for rows in self.attempts.values() for one in rows}
        for lane in self.lanes:
            found.update(dict.fromkeys(sorted(lane.jobs)))
        return list(found)[:MOST_JOBS]


def gather(connection: Connection, asked: Asked, now: datetime) -> Gathered:
    """Read everything that one page shows; the number of rows does not grow with the store."""
    scope = resolve(connection, asked.filters, asked.start, asked.end)
    start, end = overview_range(asked, now)
    overview = histogram(connection, scope.between(start, end))
    page = alarm_page(connection, scope, None, MARKS)
    findings = findings_of(connection, [row.id for row in page.rows])
    placed = place(page.rows, findings, asked.by)
    actions = action_page(connection, scope, None, MOST_ACTIONS)
    _add_asked_for(connection, placed.lanes, asked, scope)
    if asked.by == "node":
        _add_acted_on(placed.lanes, actions)
    _open(connection, placed.lanes)
    lanes, more = choose(placed.lanes.values(), asked.lanes)
    shown = {lane.key for lane in lanes}
    marks = [mark for mark in placed.marks if mark.lane in shown]
    found = Gathered(asked, scope, overview, page, findings, lanes, more, marks)
    found.actions = actions
    _fill(connection, found)
    return found


def overview_range(asked: Asked, now: datetime) -> tuple[datetime, datetime]:
    """Choose the range of the histogram on top: wider than the view, up to now where that fits."""
    if asked.preset == "all":
        return asked.start, asked.end
    spans = (timedelta(days=days) for days in OVERVIEWS)
    span = next((one for one in spans if one >= asked.span * 3), asked.span)
    newest = max(asked.end, now)
    if newest - asked.start <= span:
        return newest - span, newest
    return asked.end - span / 2 - asked.span / 2, asked.end + span / 2 - asked.span / 2


def _add_asked_for(
    connection: Connection, lanes: dict[Key, Lane], asked: Asked, scope: Scope
) -> None:
    """Give lanes to what is named in the filters, and to jobs that ran without an alarm."""
    if asked.by == "node":
        wanted = naming.nodes(connection, scope.node_ids or ())
    elif asked.by == "gpu":
        wanted = naming.gpus(connection, scope.gpu_ids or ())
    else:
        running: tuple[int, ...] = scope.job_ids or ()
        if scope.job_ids is None and not scope.device:
            running = jobs_seen(connection, scope.start, scope.end, scope.clusters, asked.lanes)
        wanted = naming.jobs(connection, running, scope.namespaces)
    for key, label in wanted.items():
        lane = lanes.setdefault(key, Lane(key, label))
        if key[0] == "job":
            lane.jobs.add(key[1])
        if key[0] == "node":
            lane.nodes.add(key[1])


def _add_acted_on(lanes: dict[Key, Lane], actions: tuple[ActionRow, ...]) -> None:
    """Give lanes to nodes on which something was decided or done, without an alarm then."""
    for action in actions:
        if action.node_id is None:
            continue
        key: Key = ("node", action.node_id)
        lane = lanes.setdefault(key, Lane(key, action.node or "unnamed"))
        lane.nodes.add(action.node_id)
        lane.last_at = action.at if lane.last_at is None else max(lane.last_at, action.at)


def _open(connection: Connection, lanes: dict[Key, Lane]) -> None:
    for kind in ("node", "gpu", "job"):
        ids = [key[1] for key in lanes if key[0] == kind]
        if ids:
            for row_id, case in open_cases(connection, f"{kind}_id", ids).items():
                lanes[kind, row_id].case = case
                lanes[kind, row_id].cases.add(case.id)


def _fill(connection: Connection, found: Gathered) -> None:
    start, end = found.asked.start, found.asked.end
    if found.page.more:
        _count(connection, found)
    _attempts(connection, found, start, end)
    jobs = found.job_ids
    if found.asked.span <= timedelta(hours=STRIP_HOURS):
        found.passes = passes_by_hour(connection, jobs, start, end)
    found.checkpoints = checkpoints_in(connection, jobs, start, end)
    found.elastic = elastic_in(connection, jobs, start, end)
    if found.asked.by == "slice":
        _add_slices(found)
    cases = {case for lane in found.lanes for case in lane.cases}
    found.proposals = proposals_in(connection, cases, start, end)
    alarmed = {mark.row.attempt_id for mark in found.marks if mark.row.attempt_id is not None}
    found.last_passes = last_passes(connection, alarmed)


def _add_slices(found: Gathered) -> None:
    """Put a lane for each slice that an event names under the lane of its job."""
    lanes: list[Lane] = []
    for lane in found.lanes:
        lanes.append(lane)
        mine = {one.slice for one in found.elastic if lane.key == ("job", one.job_id)}
        for number in sorted(one for one in mine if one is not None):
            key: Key = ("slice", lane.key[1] * MOST_SLICES + number % MOST_SLICES)
            lanes.append(Lane(key, f"slice {number} of {lane.label}", jobs={lane.key[1]}))
            found.attempts[key] = found.attempts.get(lane.key, [])
    found.more_lanes += sum(1 for lane in lanes[MOST_LANES:] if lane.key[0] == "job")
    found.lanes = lanes[:MOST_LANES]
    shown = {lane.key for lane in found.lanes}
    found.marks = [mark for mark in found.marks if mark.lane in shown]


def _count(connection: Connection, found: Gathered) -> None:
    """Count by lane and bin, for a range that holds more alarms than are drawn."""
    found.bin_width = bin_width(found.asked.span, LANE_BINS)
    width_us = found.bin_width // timedelta(microseconds=1)
    bins: list[LaneBin] = []
    full: frozenset[int] = frozenset()
    for kind in ("node", "gpu", "job"):
        keys = [lane.key[1] for lane in found.lanes if lane.key[0] == kind]
        some, more = lane_bins(connection, kind, keys, found.asked.start, found.asked.end, width_us)
        bins += some
        full |= more
    found.bins, found.full = tuple(bins), full


def _attempts(connection: Connection, found: Gathered, start: datetime, end: datetime) -> None:
    nodes = {node for lane in found.lanes for node in lane.nodes}
    by_node: dict[int | None, list[AttemptRow]] = {}
    if nodes and found.asked.by in ("node", "gpu"):
        rows, found.attempts_cut = attempts_on_nodes(connection, nodes, start, end)
        for row in rows:
            by_node.setdefault(row.node_id, []).append(row)
    jobs = [lane.key[1] for lane in found.lanes if lane.key[0] == "job"]
    by_job: dict[int, list[AttemptRow]] = {}
    for row in attempts_of_jobs(connection, jobs, start, end) if jobs else ():
        by_job.setdefault(row.job_id, []).append(row)
    alarmed = {attempt for lane in found.lanes for attempt in lane.attempts}
    known = {row.id: row for row in attempts_by_id(connection, alarmed)} if alarmed else {}
    for lane in found.lanes:
        rows_of = {row.id: row for node in lane.nodes for row in by_node.get(node, ())}
        rows_of |= {row.id: row for row in by_job.get(lane.key[1], ())}
        rows_of |= {one: known[one] for one in lane.attempts if one in known}
        found.attempts[lane.key] = sorted(rows_of.values(), key=lambda row: (row.start, row.id))
