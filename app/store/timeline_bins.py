"""How many alarms fell into each bin of a range, read from as few rows as the range needs?

Fleet-wide counts come from the hourly rollup: at most hours x clusters x families rows, whatever
the number of alarms.  A device's come from its daily rollup, bins under an hour from the alarms
themselves: at most `SCAN_BINS` index rows.  Where more fell into the range, each bin is counted up
to `BIN_CAP` and says "at least".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros, moment
from app.store.tables import alarm_hours, alarms, jobs, subject_days
from app.store.timeline_scope import SCAN, Scope, names_nothing, newest, row_conditions

MOST_BINS = 300
SCAN_BINS = 10_000
"""Alarms that are counted one by one, `SCAN` where each has to be looked at; above that, hours
or days counted in advance are used."""
BIN_CAP = 200
"""A bin's count stops here in a storm: 300 bins read at most 60,000 index rows."""
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_WIDTHS = (
    *(timedelta(seconds=n) for n in (1, 5, 10, 30, 60, 120, 300, 600, 900, 1800)),
    *(timedelta(hours=n) for n in (1, 2, 3, 4, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 28, 56, 112, 224, 448, 896)),
)


@dataclass(frozen=True, slots=True)
class Bin:
    """Alarms from `start` up to the next bin, by family."""

    start: datetime
    by_family: dict[str, int]

    @property
    def alarms(self) -> int:
        """Sum over the families."""
        return sum(self.by_family.values())


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bins that hold alarms, in order of time; empty bins are left out.

    `counted_from`: only the newest alarms were counted, back to there; None: all.
    `capped_at`: a bin of this many holds at least so many, of families not told apart.
    """

    start: datetime
    end: datetime
    width: timedelta
    bins: tuple[Bin, ...]
    counted_from: datetime | None = None
    capped_at: int | None = None

    @property
    def exact(self) -> bool:
        """Tell whether every alarm of the range was counted."""
        return self.counted_from is None and self.capped_at is None

    @property
    def alarms(self) -> int:
        """Sum over the bins."""
        return sum(one.alarms for one in self.bins)


def bin_width(span: timedelta, most: int = MOST_BINS) -> timedelta:
    """Choose the narrowest round width that needs at most `most` bins."""
    return next((width for width in _WIDTHS if span / width <= most), _WIDTHS[-1])


def histogram(connection: Connection, scope: Scope, most: int = MOST_BINS) -> Histogram:
    """Count the alarms of a scope in at most `most` bins and one more for a torn edge."""
    width = bin_width(scope.end - scope.start, most)
    if names_nothing(scope):
        return Histogram(scope.start, scope.end, width, ())
    hour = timedelta(hours=1)
    if scope.counted_in_advance and width >= hour:
        return _from_hours(connection, scope, width)
    if scope.counted_in_advance and _many(connection, scope):
        if scope.end - scope.start >= timedelta(hours=24) or scope.clusters or scope.families:
            return _from_hours(connection, scope, hour)
        return _capped(connection, scope, width)
    if _day_counts(scope) and width >= timedelta(days=1):
        return _from_days(connection, scope, width)
    counted = _one_by_one(connection, scope, width)
    if counted.counted_from is not None and _day_counts(scope) and width >= hour:
        return _from_days(connection, scope, timedelta(days=1))
    return counted


def first_and_last(connection: Connection) -> tuple[datetime, datetime] | None:
    """Give the times of the first and the last alarm; None where there is none."""
    column = alarms.c.occurred_at
    first = connection.execute(sa.select(column).order_by(column).limit(1)).scalar()
    last = connection.execute(sa.select(column).order_by(column.desc()).limit(1)).scalar()
    return None if first is None or last is None else (first, last)


def _many(connection: Connection, scope: Scope) -> bool:
    """Tell from the rollup whether the range holds more than can be counted one by one."""
    total = sa.select(sa.func.coalesce(sa.func.sum(alarm_hours.c.alarms), 0)).where(
        alarm_hours.c.hour >= micros(scope.start) // _HOUR,
        alarm_hours.c.hour <= (micros(scope.end) - 1) // _HOUR,
    )
    return int(connection.execute(total).scalar_one()) > SCAN_BINS


def _from_hours(connection: Connection, scope: Scope, width: timedelta) -> Histogram:
    hours = max(width // timedelta(hours=1), 1)
    column = alarm_hours.c
    statement = (
        sa.select(
            _floor(column.hour, hours).label("bin"), column.family, sa.func.sum(column.alarms)
        )
        .where(
            column.hour >= micros(scope.start) // _HOUR,
            column.hour <= (micros(scope.end) - 1) // _HOUR,
        )
        .group_by(sa.text("bin"), column.family)
    )
    if scope.clusters:
        statement = statement.where(column.cluster.in_(scope.clusters))
    if scope.families:
        statement = statement.where(column.family.in_(scope.families))
    return _gather(scope, width, hours * _HOUR, connection.execute(statement))


def _floor(column: sa.ColumnElement[Any], by: int) -> sa.ColumnElement[Any]:
    return column // sa.literal(by)


def _day_counts(scope: Scope) -> bool:
    """Tell whether one device with nothing but a check beside it is asked for."""
    others = (scope.clusters, scope.namespaces, scope.checks, scope.rules, scope.standings)
    if any(others) or scope.text or scope.job_ids is not None:
        return False
    return (scope.node_ids is None) != (scope.gpu_ids is None)


def _from_days(connection: Connection, scope: Scope, width: timedelta) -> Histogram:
    days = max(width // timedelta(days=1), 1)
    subject = "gpu" if scope.gpu_ids is not None else "node"
    chosen = scope.gpu_ids if scope.gpu_ids is not None else scope.node_ids
    column = subject_days.c
    statement = (
        sa.select(_floor(column.day, days).label("bin"), column.family, sa.func.sum(column.alarms))
        .where(
            column.subject == subject,
            column.subject_key.in_([str(one) for one in chosen or ()]),
            column.day >= micros(scope.start) // _DAY,
            column.day <= (micros(scope.end) - 1) // _DAY,
        )
        .group_by(sa.text("bin"), column.family)
    )
    if scope.families:
        statement = statement.where(column.family.in_(scope.families))
    return _gather(scope, width, days * _DAY, connection.execute(statement))


def _one_by_one(connection: Connection, scope: Scope, width: timedelta) -> Histogram:
    conditions = row_conditions(scope)
    most = SCAN if conditions else SCAN_BINS
    walk = newest(scope, most + 1)
    step = width // timedelta(microseconds=1)
    once = sa.select(walk.c.alarm_id, walk.c.at).distinct().subquery()
    number = _floor(sa.type_coerce(once.c.at, sa.BigInteger), step)
    source = once.join(alarms, alarms.c.id == once.c.alarm_id)
    if scope.namespaces or scope.text:
        source = source.join(jobs, jobs.c.id == alarms.c.job_id)
    statement = (
        sa.select(number.label("bin"), alarms.c.family, sa.func.count())
        .select_from(source)
        .where(*conditions)
        .group_by(sa.text("bin"), alarms.c.family)
    )
    found = _gather(scope, width, step, connection.execute(statement))
    reach = connection.execute(sa.select(sa.func.count(), sa.func.min(walk.c.at))).one()
    if reach[0] <= most:
        return found
    return Histogram(found.start, found.end, width, found.bins, counted_from=reach[1])


def _capped(connection: Connection, scope: Scope, width: timedelta) -> Histogram:
    """Count each bin up to a cap: bounded however many alarms a storm put into the range."""
    step = width // timedelta(microseconds=1)
    numbers = range(micros(scope.start) // step, (micros(scope.end) - 1) // step + 1)
    values = sa.values(sa.column("bin", sa.BigInteger), name="numbers")
    bins = values.data([(n,) for n in numbers]).cte("bins")
    at = sa.type_coerce(alarms.c.occurred_at, sa.BigInteger)
    some = (
        sa.select(sa.literal(1).label("one"))
        .where(at >= bins.c.bin * step, at < (bins.c.bin + 1) * step)
        .where(alarms.c.occurred_at >= scope.start, alarms.c.occurred_at < scope.end)
        .limit(BIN_CAP)
        .correlate(bins)
        .subquery()
    )
    count = sa.select(sa.func.count()).select_from(some).correlate(bins).scalar_subquery()
    rows = connection.execute(sa.select(bins.c.bin, count.label("alarms")).select_from(bins))
    found = _gather(scope, width, step, ((n, "any", count) for n, count in rows if count))
    return Histogram(found.start, found.end, width, found.bins, capped_at=BIN_CAP)


def _gather(scope: Scope, width: timedelta, step: int, rows: Iterable[Any]) -> Histogram:
    """Put (bin number, family, count) rows together."""
    by_bin: dict[int, dict[str, int]] = {}
    for number, family, count in rows:
        families = by_bin.setdefault(int(number), {})
        families[family] = families.get(family, 0) + int(count)
    bins = tuple(Bin(moment(number * step), by_bin[number]) for number in sorted(by_bin))
    return Histogram(scope.start, scope.end, width, bins)
