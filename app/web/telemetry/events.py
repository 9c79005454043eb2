"""Which alarms, actions and job attempts of a GPU lie in a time that is drawn?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from app.actions import rails
from app.store.connection import Connection
from app.store.device_reading import Node, Placement, Start, machines_of, starts_on
from app.store.orders_on_nodes import Order, orders_on
from app.store.timeline_reading import AlarmRow, alarm_page
from app.store.timeline_scope import Scope
from app.web import words
from app.web.drawings.small_multiple import Mark
from app.web.drawings.timeline_marks import LEGEND, legend_mark
from app.web.timeline import naming

ALARMS, ORDERS, STARTS = 50, 30, 12
_LAST = 2**63 - 1
_CHANGED = frozenset({"changed", "accepted"})
_LEGEND = dict(LEGEND) | {
    "action": "action of ours on its node",
    "proposal": "action that changed nothing, or of which it is not known",
    "start": "job attempt, from its start until it was heard of last",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the table, and one mark; `until` is set for what lasts."""

    at: datetime
    kind: str
    says: str
    address: str
    until: datetime | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """What lies in the time, by time; `cut` tells that there is more than is listed."""

    rows: tuple[Event, ...] = ()
    cut: bool = False

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Give what is drawn as a mark at one time."""
        return tuple(Mark(one.at.timestamp(), one.kind) for one in self.rows if one.kind != "start")

    @property
    def jobs(self) -> tuple[tuple[float, float], ...]:
        """Give from when to when jobs are known to have run."""
        return tuple((one.at.timestamp(), one.until.timestamp()) for one in self.rows if one.until)

    @property
    def legend(self) -> tuple[tuple[Markup, str], ...]:
        """Give each mark that occurs, with what it stands for."""
        kinds = dict.fromkeys(one.kind for one in self.rows)
        return tuple((legend_mark(kind), _LEGEND.get(kind, "another event")) for kind in kinds)


def read_events(
    connection: Connection, gpu_id: int, start: datetime, end: datetime, own: Event | None = None
) -> Events:
    """Read what happened to a GPU and its node; `own` is an alarm that stands there in any case.

    A node counts from when the GPU was first seen in it until it was first seen in another.
    """
    page = alarm_page(connection, Scope(start, end, gpu_ids=(gpu_id,)), None, ALARMS)
    alarms = [_alarm(one) for one in page.rows]
    if own is not None:
        alarms = [own, *(one for one in alarms if one.address != own.address)]
    stays = _stays(machines_of(connection, [gpu_id]), start, end)
    ordered = orders_on(connection, [one[0] for one in stays], start, end, ORDERS + 1)
    orders = [_order(one) for one in ordered[:ORDERS] if _was_there(one, stays)]
    starts = [
        _start(one, label)
        for node_id, label, first, last in stays
        for one in starts_on(connection, node_id, (last, _LAST), STARTS)
        if one.last_seen_at >= first
    ]
    rows = sorted([*alarms, *orders, *starts], key=lambda one: (one.at, one.kind))
    return Events(tuple(rows), page.more or len(ordered) > ORDERS or len(starts) >= STARTS)


def node_at(connection: Connection, gpu_id: int, moment: datetime) -> Node | None:
    """Give the node that a GPU was in at a time; None where no rank map places it.

    The one where it was seen last by then. A GPU that came back stands once with each node, so
    where two times hold the moment, the one that began later lies within the other.
    """
    places = machines_of(connection, [gpu_id])
    before = [one for one in places if one.first_seen_at <= moment]
    if not before:
        return min(places, key=lambda one: one.first_seen_at).node if places else None
    return max(before, key=lambda one: (min(one.last_seen_at, moment), one.first_seen_at)).node


def alarm_event(alarm_id: int, at: datetime, family: str, says: str) -> Event:
    """Make the mark of an alarm."""
    kind = {"reduced gradient": "nobody"}.get(family, family)
    return Event(
        at, kind if kind in _LEGEND else "unknown", says, f"/alarms/{words.ident(alarm_id)}"
    )


def _alarm(row: AlarmRow) -> Event:
    return alarm_event(row.id, row.at, row.family, naming.alarm(row))


def _order(one: Order) -> Event:
    changed = one.result in _CHANGED
    said = rails.action_word(one.action)
    if one.by:
        said += f", approved by {one.by}"
    if not changed:
        said += ". " + (one.words or f"It stands as {one.status}.")
    address = f"/proposals/{words.ident(one.proposal_id)}"
    return Event(one.at, "action" if changed else "proposal", said, address, node=one.node)


def _start(one: Start, label: str) -> Event:
    number = "" if one.number is None else f", attempt {one.number}"
    address = f"/jobs/{words.ident(one.job_id)}"
    return Event(one.started_at, "start", f"{one.job}{number}", address, one.last_seen_at, label)


Stay = tuple[int, str, datetime, datetime]


def _stays(places: Sequence[Placement], start: datetime, end: datetime) -> list[Stay]:
    """Say which node the GPU was in from when to when, as far as the time goes."""
    ordered = sorted(places, key=lambda one: one.first_seen_at)
    ends = [one.first_seen_at for one in ordered[1:]] + [datetime.max.replace(tzinfo=UTC)]
    stays = []
    for place, until in zip(ordered, ends, strict=True):
        # A map says that the GPU was there by then, not since when.
        first = start if place is ordered[0] else max(start, place.first_seen_at)
        if first < min(until, end):
            stays.append((place.node.id, place.node.label, first, min(until, end)))
    return stays


def _was_there(one: Order, stays: Sequence[Stay]) -> bool:
    return any(
        node_id == one.node_id and first <= one.at < last for node_id, _, first, last in stays
    )
