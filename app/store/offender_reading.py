"""Which devices were named in a window, and how often?

Whole windows of 7, 28, 90, 365 days and of all time are counted in advance, so that a ranking of
the fleet reads one row a device.  A window from and to given days, and a choice of checks or
verdict kinds, is summed from the days of the devices instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import run_settings
from app.store.columns import moment
from app.store.intake.offender_rows import DAY_US, TODAY, day_of
from app.store.offender_shapes import Candidate, Fleet, Found, Query, Totals
from app.store.search import gpus_like, nodes_like
from app.store.tables import fleet_days, offender_windows, subject_days, subject_jobs

_MATCHES = 1_000  # devices whose name begins like the text
_SHORT = 14  # days


def find(connection: Connection, query: Query, now: datetime, offset: int, limit: int) -> Found:
    """Read one stretch of the devices that fit, most incidents (or most telling ones) first."""
    today = day_of(now)
    keys = _keys_like(connection, query)
    ahead = query.counted_ahead and _current(connection, query, today)
    rows = _ahead(query, keys, today) if ahead else _from_days(query, keys, today)
    counted = rows.subquery()
    first = counted.c.incidents if query.order == "incidents" else counted.c.strength
    # One pass gives the devices and, beside each, how many there are in all.
    ordered = (
        sa.select(
            counted,
            sa.func.count().over().label("devices"),
            sa.func.sum(counted.c.incidents).over().label("all_incidents"),
        )
        .order_by(first.desc(), counted.c.incidents.desc(), counted.c.alarms.desc())
        .order_by(counted.c.subject_key)
        .offset(offset)
        .limit(limit)
    )
    found = connection.execute(ordered).all()
    candidates = tuple(
        Candidate(
            query.subject,
            row.subject_key,
            row.cluster,
            int(row.incidents),
            int(row.alarms),
            row.last_at,
        )
        for row in found
    )
    totals = _totals(connection, counted, found[0] if found else None, offset)
    cut = keys is not None and len(keys) >= _MATCHES
    return Found(candidates, totals, _fleet(connection, query, today), today, cut)


def _totals(
    connection: Connection, counted: sa.Subquery, row: sa.Row[Any] | None, offset: int
) -> Totals:
    if row is not None:
        return Totals(row.devices, int(row.all_incidents))
    if offset == 0:
        return Totals()
    # Past the end of the list no row carries the totals.
    count, incidents = connection.execute(
        sa.select(sa.func.count(), sa.func.sum(counted.c.incidents))
    ).one()
    return Totals(count, int(incidents or 0))


def start_of(day: int) -> datetime:
    """Give the moment at which a day begins, counted from 1970."""
    return moment(day * DAY_US)


def jobs_in(
    connection: Connection,
    subject: str,
    keys: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> dict[str, int]:
    """Count the jobs in which devices were named in a window."""
    table = subject_jobs.c
    where = [table.subject == subject, table.subject_key.in_(keys), table.alarms > 0]
    if since is not None:
        where.append(table.last_at >= since)
    if until is not None:
        where.append(table.first_at < until)
    rows = connection.execute(
        sa.select(table.subject_key, sa.func.count()).where(*where).group_by(table.subject_key)
    )
    return {row[0]: row[1] for row in rows}


def clusters(connection: Connection) -> tuple[str, ...]:
    """List the clusters in which a device was ever named."""
    rows = connection.execute(sa.select(fleet_days.c.cluster).distinct().limit(200))
    return tuple(sorted(row[0] for row in rows))


def _current(connection: Connection, query: Query, today: int) -> bool:
    """Tell whether the counted windows end today; the first document of a day moves them."""
    return query.days is None or run_settings.read(connection, TODAY) == today


def _columns(query: Query) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    suffix = "all" if query.days is None else str(query.days)
    table = offender_windows.c
    return table[f"incidents_{suffix}"], table[f"alarms_{suffix}"]


def _ahead(query: Query, keys: Sequence[str] | None, today: int) -> sa.Select[Any]:
    table = offender_windows.c
    incidents, alarms = _columns(query)
    where = [
        table.subject == query.subject,
        incidents >= query.incidents,
        alarms >= query.alarms,
    ]
    return sa.select(
        table.subject_key,
        table.cluster,
        incidents.label("incidents"),
        alarms.label("alarms"),
        table.strength,
        table.last_at,
    ).where(*where, *_named(query, table, keys, today))


def _from_days(query: Query, keys: Sequence[str] | None, today: int) -> sa.Select[Any]:
    days, ever = subject_days.c, offender_windows.c
    first, last = query.day_range(today)
    where = [days.subject == query.subject]
    # A long window reads the table in the order of its key; only a short one gains by the index
    # on the day, which SQLite would otherwise take for every window.
    length = (today if last is None else last) - (first or 0)
    day = days.day if length <= _SHORT else days.day + 0
    if first is not None:
        where.append(day >= first)
    if last is not None:
        where.append(day <= last)
    if query.checks:
        where.append(days.family.in_(query.checks))
    if query.kinds:
        where.append(days.kind.in_(query.kinds))
    if keys is not None:
        where.append(days.subject_key.in_(keys))
    incidents, alarms = sa.func.sum(days.incidents), sa.func.sum(days.alarms)
    counted = (
        sa.select(days.subject_key, incidents.label("incidents"), alarms.label("alarms"))
        .where(*where)
        .group_by(days.subject_key)
        .having(incidents >= query.incidents, alarms >= query.alarms)
        .subquery()
    )
    joined = counted.join(
        offender_windows,
        sa.and_(ever.subject == query.subject, ever.subject_key == counted.c.subject_key),
    )
    return (
        sa.select(
            counted.c.subject_key,
            ever.cluster,
            counted.c.incidents,
            counted.c.alarms,
            ever.strength,
            ever.last_at,
        )
        .select_from(joined)
        .where(*_named(query, ever, None, today))
    )


def _named(
    query: Query, table: Any, keys: Sequence[str] | None, today: int
) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = []
    if query.clusters:
        where.append(table.cluster.in_(query.clusters))
    if keys is not None:
        where.append(table.subject_key.in_(keys))
    if query.jobs > 1:
        touched = subject_jobs.c
        first, last = query.day_range(today)
        count = (
            sa.select(sa.func.count())
            .where(
                touched.subject == table.subject,
                touched.subject_key == table.subject_key,
                touched.alarms > 0,
                *([touched.last_at >= start_of(first)] if first is not None else []),
                *([touched.first_at < start_of(last + 1)] if last is not None else []),
            )
            .correlate(offender_windows)
            .scalar_subquery()
        )
        where.append(count >= query.jobs)
    return where


def _keys_like(connection: Connection, query: Query) -> list[str] | None:
    """Find the devices whose name begins like the text; None without a text."""
    if not query.q:
        return None
    if query.subject == "gpu":
        return [str(hit.id) for hit in gpus_like(connection, query.q, _MATCHES)]
    hits = nodes_like(connection, query.q, _MATCHES)
    if query.subject == "node":
        return [str(hit.id) for hit in hits]
    return sorted({hit.instance_id for hit in hits if hit.instance_id})


def _fleet(connection: Connection, query: Query, today: int) -> Fleet:
    table = fleet_days.c
    first, last = query.day_range(today)
    where: list[sa.ColumnElement[bool]] = []
    if first is not None:
        where.append(table.day >= first)
    if last is not None:
        where.append(table.day <= last)
    if query.clusters:
        where.append(table.cluster.in_(query.clusters))
    asked: list[sa.ColumnElement[bool]] = []
    if query.checks:
        asked.append(table.family.in_(query.checks))
    if query.kinds:
        asked.append(table.kind.in_(query.kinds))
    incidents = connection.execute(
        sa.select(sa.func.sum(table.incidents)).where(*where, *asked)
    ).scalar()
    seconds = connection.execute(
        sa.select(sa.func.sum(table.audited_gpu_seconds)).where(*where)
    ).scalar()
    return Fleet(int(incidents or 0), float(seconds or 0.0) / 3600)
