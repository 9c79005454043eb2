"""What stands in the list under the chart: events, days, and how long nothing happened?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.store.connection import Connection
from app.store.timeline_lanes import AttemptRow
from app.store.timeline_reading import (
    ActionRow,
    AlarmPage,
    AlarmRow,
    FindingRow,
    Position,
    action_page,
    alarm_page,
    findings_of,
)
from app.web.timeline.asked import KINDS, Place
from app.web.timeline.gather import Gathered
from app.web.words import count

PAGE = 50
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Item:
    """One event: what kind (a place in `KINDS`), when, and the row behind it."""

    at: datetime
    kind: int
    id: int
    row: object
    findings: tuple[FindingRow, ...] = ()

    @property
    def name(self) -> str:
        """Name the kind."""
        return KINDS[self.kind]

    @property
    def order(self) -> tuple[float, int, int]:
        """Sort the newest first."""
        return -self.at.timestamp(), self.kind, -self.id


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the list: a day's heading, a gap in words, or an event."""

    day: date | None = None
    gap: str | None = None
    item: Item | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list.

    `following` is where the next page begins; `looked_back_to` is set where the page ends because
    the look through unindexed rows ended, not because it is full.
    """

    entries: tuple[Entry, ...]
    following: Place | None
    looked_back_to: datetime | None
    events: int


def read(connection: Connection, found: Gathered, zone: ZoneInfo) -> Listing:
    """Read one page: alarms and actions of the scope, starts and elastic events of the lanes."""
    before = found.asked.before
    alarms = _alarms(connection, found, before)
    items = _alarm_items(connection, found, alarms)
    items += _actions(connection, found, before)
    items += [Item(one.at, 2, one.id, one) for one in found.elastic]
    items += [Item(one.at, 3, one.id, one) for one in found.proposals]
    items += [Item(one.start, 4, one.id, one) for one in _starts(found)]
    after = () if before is None else (-before.at.timestamp(), before.kind, -before.id)
    items = sorted((one for one in items if one.order > after), key=lambda one: one.order)
    return _page(items, alarms, found, zone)


def _page(items: list[Item], alarms: AlarmPage, found: Gathered, zone: ZoneInfo) -> Listing:
    stopped: Place | None = None
    if alarms.more and not alarms.looked_at_all and alarms.reached is not None:
        stopped = Place(alarms.reached[0], 1, alarms.reached[1])
        end = (-stopped.at.timestamp(), stopped.kind, -stopped.id)
        items = [one for one in items if one.order <= end]
    shown = items[:PAGE]
    if len(items) > PAGE:
        last = shown[-1]
        stopped = Place(last.at, last.kind, last.id)
        return Listing(entries(shown, zone, found.asked.span), stopped, None, len(shown))
    looked = None if stopped is None else stopped.at
    return Listing(entries(shown, zone, found.asked.span), stopped, looked, len(shown))


def entries(items: Sequence[Item], zone: ZoneInfo, span: timedelta) -> tuple[Entry, ...]:
    """Put the headings of days and the gaps between events into the list."""
    lines: list[Entry] = []
    last: Item | None = None
    for item in items:
        if last is not None and last.at - item.at >= _noticed(span):
            lines.append(Entry(gap=long_words(last.at - item.at)))
        day = item.at.astimezone(zone).date()
        if last is None or day != last.at.astimezone(zone).date():
            lines.append(Entry(day=day))
        lines.append(Entry(item=item))
        last = item
    return tuple(lines)


def _noticed(span: timedelta) -> timedelta:
    """Say from which length on a gap is worth a line."""
    if span <= timedelta(days=2):
        return timedelta(minutes=10)
    return timedelta(hours=1) if span <= timedelta(days=14) else timedelta(hours=6)


def long_words(length: timedelta) -> str:
    """Write a length of time out: "3 days", "1 hour 36 minutes", "28 minutes"."""
    minutes = length // timedelta(minutes=1)
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    if days:
        return count(days, "day") + (f" {count(hours, 'hour')}" if hours and days < 7 else "")
    if hours:
        return count(hours, "hour") + (f" {count(minutes, 'minute')}" if minutes else "")
    return count(minutes, "minute")


def position(before: Place | None, kind: int) -> Position | None:
    """Say where one source goes on after a place in the merged list."""
    if before is None:
        return None
    if kind == before.kind:
        return before.at, before.id
    return before.at, _LARGEST if kind > before.kind else -1


def _alarms(connection: Connection, found: Gathered, before: Place | None) -> AlarmPage:
    if before is not None:
        return alarm_page(connection, found.scope, position(before, 1), PAGE + 1)
    return found.page


def _alarm_items(connection: Connection, found: Gathered, page: AlarmPage) -> list[Item]:
    rows: tuple[AlarmRow, ...] = page.rows[: PAGE + 1]
    known = found.findings
    if found.asked.before is not None:
        known = findings_of(connection, [row.id for row in rows])
    return [Item(row.at, 1, row.id, row, known.get(row.id, ())) for row in rows]


def _actions(connection: Connection, found: Gathered, before: Place | None) -> list[Item]:
    rows: Sequence[ActionRow] = found.actions
    if before is not None:
        rows = action_page(connection, found.scope, position(before, 0), PAGE)
    return [Item(row.at, 0, row.id, row) for row in rows]


def _starts(found: Gathered) -> list[AttemptRow]:
    alarm_only = found.scope.families or found.scope.rules or found.scope.standings
    if alarm_only or found.scope.checks or found.scope.text:
        return []
    rows = {row.id: row for attempts in found.attempts.values() for row in attempts}
    return [row for row in rows.values() if found.asked.start <= row.start < found.asked.end]
