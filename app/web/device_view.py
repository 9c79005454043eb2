"""What stands on the page of a node and of a GPU?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from markupsafe import Markup

from app.actions.scoring import score_gpu
from app.errors import not_found
from app.filters import bad
from app.store import audit_reading, condemned, condemned_reading, ids, vetoes
from app.store.audit import Entry
from app.store.columns import micros, moment
from app.store.condemned import Condemned
from app.store.condemned_reading import Sighting
from app.store.connection import Connection
from app.store.device_cases import (
    CaseOf,
    Counted,
    Incident,
    cases_of,
    counted,
    incidents_of,
    proposals_on,
)
from app.store.device_reading import (
    Gpu,
    Node,
    Placement,
    Relative,
    Start,
    Work,
    gpu_by_id,
    gpus_in,
    lineage,
    machines_of,
    node_by_id,
    starts_on,
    work_on,
)
from app.store.exposure_reading import audited_stretches
from app.store.proposals import Proposal
from app.store.timeline_bins import histogram
from app.store.timeline_reading import AlarmRow, FindingRow, Position, alarm_page, findings_of
from app.store.timeline_scope import Scope
from app.store.vetoes import Veto
from app.web.drawings.overview import Shown, overview
from app.web.drawings.p_bar import in_digits, p_bar
from app.web.timeline.asked import stamp
from witness.rules.score import Score

PAGE = 25
MOST_ACTIONS = 50
DAYS_DRAWN = 90
"""Bars in the drawing of a device: days, which are counted in advance, as soon as it is older."""
SCORED = 16
"""GPUs of one node whose score is worked out for its page."""
_EVER = datetime(1990, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AlarmHere:
    """One alarm with its finding on this device; None: the alarm names more than are read."""

    row: AlarmRow
    finding: FindingRow | None


@dataclass(frozen=True, slots=True)
class Alarms:
    """One page of the alarms of a device; `following` None: no older one."""

    rows: tuple[AlarmHere, ...]
    following: str | None


@dataclass(frozen=True, slots=True)
class GpuHere:
    """A GPU of a node; `now_in` is set where it was seen elsewhere later."""

    placement: Placement
    incidents: int
    p: str | None
    bar: Markup | None
    now_in: Node | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """The alarms of a device over time, wide and narrow, and their timeline."""

    wide: Markup
    narrow: Markup
    timeline: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """Everything on the page of a node."""

    node: Node
    relatives: tuple[Relative, ...]
    gpus: tuple[GpuHere, ...]
    counted: Counted
    work: Work
    incidents: tuple[Incident, ...]
    cases: tuple[CaseOf, ...]
    alarms: Alarms
    starts: tuple[Start, ...]
    older_starts: str | None
    proposals: tuple[Proposal, ...]
    entries: tuple[Entry, ...]
    drawn: Drawn
    veto: Veto | None
    past_vetoes: tuple[Veto, ...]


@dataclass(frozen=True, slots=True)
class GpuView:
    """Everything on the page of a GPU; `score` None: no incident that counts."""

    gpu: Gpu
    places: tuple[Placement, ...]
    counted: Counted
    audited_hours: float
    incidents: tuple[Incident, ...]
    cases: tuple[CaseOf, ...]
    alarms: Alarms
    score: Score | None
    p: str | None
    bar: Markup | None
    watch_until: datetime | None
    drawn: Drawn
    condemned: Condemned | None  # None: it is not
    sightings: tuple[Sighting, ...]  # where it was at work since


def read_node(
    connection: Connection,
    node_id: int,
    pages: dict[str, str | None],
    now: datetime,
    zone: ZoneInfo,
) -> NodeView:
    """Read a node; `pages` holds where the lists of alarms and starts begin."""
    node = node_by_id(connection, node_id)
    if node is None:
        raise not_found("no node with this id")
    found = incidents_of(connection, "node", node_id)
    starts = starts_on(connection, node_id, read_position(pages, "starts"), PAGE + 1)
    last = starts[PAGE - 1] if len(starts) > PAGE else None
    forbidden = vetoes.of_node(connection, node.cluster, node.name, node.instance_id)
    return NodeView(
        node=node,
        relatives=lineage(connection, node),
        gpus=_gpus(connection, node, found, now),
        counted=counted(connection, "node", node_id),
        work=work_on(connection, node_id),
        incidents=found,
        cases=cases_of(connection, "node", node_id),
        alarms=_alarms(connection, _scope(now, node=node_id), read_position(pages, "alarms")),
        starts=starts[:PAGE],
        older_starts=write_position(last.started_at, last.id) if last else None,
        proposals=proposals_on(connection, node_id, MOST_ACTIONS),
        entries=audit_reading.page(
            connection, audit_reading.Filter(node_id=node_id), before=None, limit=MOST_ACTIONS
        ),
        drawn=_drawn(connection, _scope(now, node=node_id), node.first_seen_at, now, zone),
        veto=next((one for one in forbidden if one.holds(now)), None),
        past_vetoes=tuple(one for one in forbidden if not one.holds(now)),
    )


def read_gpu(
    connection: Connection,
    gpu_id: int,
    pages: dict[str, str | None],
    now: datetime,
    zone: ZoneInfo,
    recurrence_days: int,
) -> GpuView:
    """Read a GPU; a second incident within `recurrence_days` of the last recurs."""
    gpu = gpu_by_id(connection, gpu_id)
    if gpu is None:
        raise not_found("no GPU with this id")
    found = incidents_of(connection, "gpu", gpu_id)
    score = score_gpu(connection, gpu_id, now)
    newest = max((one.last_at for one in found), default=None)
    stretches = audited_stretches(connection, gpu_id)
    return GpuView(
        gpu=gpu,
        places=machines_of(connection, [gpu_id]),
        counted=counted(connection, "gpu", gpu_id),
        audited_hours=sum(one.audited_seconds for one in stretches) / 3600,
        incidents=found,
        cases=cases_of(connection, "gpu", gpu_id),
        alarms=_alarms(connection, _scope(now, gpu=gpu_id), read_position(pages, "alarms")),
        score=score,
        p=None if score is None else in_digits(score.p),
        bar=None if score is None else p_bar(score.p, score.p_if_f_at_upper, "gpu"),
        watch_until=None if newest is None else newest + timedelta(days=recurrence_days),
        drawn=_drawn(connection, _scope(now, gpu=gpu_id), gpu.first_seen_at, now, zone),
        condemned=condemned.of_gpu(connection, gpu_id),
        sightings=condemned_reading.of_gpu(connection, gpu_id),
    )


def _scope(now: datetime, node: int | None = None, gpu: int | None = None) -> Scope:
    return Scope(
        start=_EVER,
        end=now + timedelta(days=3_660),
        node_ids=None if node is None else (node,),
        gpu_ids=None if gpu is None else (gpu,),
    )


def _alarms(connection: Connection, scope: Scope, before: Position | None) -> Alarms:
    page = alarm_page(connection, scope, before, PAGE)
    found = findings_of(connection, [row.id for row in page.rows], each=50)
    rows = tuple(AlarmHere(row, _on(scope, found.get(row.id, ()))) for row in page.rows)
    following = write_position(*page.reached) if page.more and page.reached else None
    return Alarms(rows, following)


def _on(scope: Scope, found: tuple[FindingRow, ...]) -> FindingRow | None:
    for one in found:
        if one.node_id in (scope.node_ids or ()) or one.gpu_id in (scope.gpu_ids or ()):
            return one
    return None


def _gpus(
    connection: Connection, node: Node, found: tuple[Incident, ...], now: datetime
) -> tuple[GpuHere, ...]:
    here = gpus_in(connection, node.id)
    newest: dict[int, Placement] = {}
    for place in machines_of(connection, [one.gpu.id for one in here]) if here else ():
        newest.setdefault(place.gpu.id, place)
    by_gpu: dict[int, int] = {}
    for incident in found:
        if incident.gpu_id is not None:
            by_gpu[incident.gpu_id] = by_gpu.get(incident.gpu_id, 0) + 1
    named = [one.gpu.id for one in here if one.gpu.id in by_gpu][:SCORED]
    scores = {gpu_id: score_gpu(connection, gpu_id, now) for gpu_id in named}
    rows = []
    for one in here:
        score = scores.get(one.gpu.id)
        last = newest.get(one.gpu.id)
        away = last.node if last is not None and last.node.id != node.id else None
        bar = None if score is None else p_bar(score.p, None, ids.show(one.gpu.id))
        said = None if score is None else in_digits(score.p)
        rows.append(GpuHere(one, by_gpu.get(one.gpu.id, 0), said, bar, away))
    return tuple(rows)


def _drawn(
    connection: Connection, scope: Scope, first: datetime, now: datetime, zone: ZoneInfo
) -> Drawn:
    """Draw the alarms since the device is known, each part a link to the timeline."""
    start = min(first, now - timedelta(days=1))
    bins = histogram(connection, scope.between(start, now + timedelta(minutes=1)), DAYS_DRAWN)
    name = "node" if scope.node_ids is not None else "gpu"
    row_id = (scope.node_ids or scope.gpu_ids or (0,))[0]

    def between(since: datetime, until: datetime) -> str:
        return "/timeline?" + urlencode(
            [(name, ids.show(row_id)), ("from", stamp(since)), ("to", stamp(until))]
        )

    shown = Shown(bins.start, bins.end, between)
    return Drawn(
        overview(bins, shown, zone, brush=False),
        overview(bins, shown, zone, narrow=True, brush=False),
        "/timeline?" + urlencode([(name, ids.show(row_id)), ("range", "all")]),
    )


def read_position(pages: dict[str, str | None], name: str) -> Position | None:
    """Read where a list goes on; raise 400 where it is none of ours."""
    text = pages.get(name)
    if not text:
        return None
    at, _, row_id = text.partition(".")
    try:
        if not at.isascii() or not at.isdigit() or len(at) > 17:
            raise bad(name, "This place in the list is not one of ours; begin again.")
        return moment(int(at)), ids.read(row_id)
    except (ValueError, OverflowError):
        raise bad(name, "This place in the list is not one of ours; begin again.") from None


def write_position(at: datetime, row_id: int) -> str:
    """Write where a list goes on."""
    return f"{micros(at)}.{ids.show(row_id)}"
