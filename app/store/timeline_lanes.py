"""What else stands in the lanes: attempts, passes, checkpoints, elastic events?

Each read is bounded by the number of lanes and by a limit of its own, stated beside it; a read that
met its limit says so (`cut`), and the page says what is left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.tables import (
    attempts,
    checkpoints,
    coverage,
    coverage_hours,
    elastic_events,
    jobs,
    rank_map_nodes,
)

HOUR_US = 3_600_000_000
MOST_PLACED = 6_000
"""Starts on the nodes of all lanes that are looked at."""
MOST_ATTEMPTS = 300
MOST_CHECKPOINTS = 600
SCAN_CHECKPOINTS = 5_000
MOST_EVENTS = 600
MOST_JOBS = 60
STRIP_HOURS = 14 * 24
"""Passes are drawn hour by hour up to this range: 60 jobs x 336 hours x 3 checks."""

Ids = Collection[int]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One start of a job; `node_id` where it was found through a node, else None."""

    id: int
    job_id: int
    job: str
    number: int | None
    start: datetime
    end: datetime
    alarm_at: datetime | None
    world_size: int | None
    step_time_s: float | None
    node_id: int | None


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint with the time it was saved."""

    job_id: int
    attempt_id: int | None
    step: int
    at: datetime
    committed: bool | None


@dataclass(frozen=True, slots=True)
class ElasticRow:
    """One elastic event."""

    id: int
    job_id: int
    job: str
    event: str
    slice: int | None
    step: int | None
    at: datetime


_BEGAN = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
_ATTEMPT = (
    attempts.c.id,
    attempts.c.job_id,
    jobs.c.name.label("job"),
    attempts.c.number,
    _BEGAN.label("start"),
    attempts.c.last_seen_at.label("end"),
    attempts.c.alarm_at,
    attempts.c.world_size,
    attempts.c.step_time_s,
)


def attempts_by_id(connection: Connection, attempt_ids: Ids) -> tuple[AttemptRow, ...]:
    """Read some attempts by their keys; at most `MOST_ATTEMPTS`."""
    statement = (
        sa.select(*_ATTEMPT, sa.null())
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(attempts.c.id.in_(list(attempt_ids)[:MOST_ATTEMPTS]))
    )
    return tuple(AttemptRow(*tuple[Any, ...](row)) for row in connection.execute(statement))


def attempts_of_jobs(
    connection: Connection, job_ids: Ids, start: datetime, end: datetime
) -> tuple[AttemptRow, ...]:
    """Read the attempts of some jobs that overlap a range, the newest first."""
    some = (
        sa.select(attempts)
        .where(attempts.c.job_id.in_(job_ids), attempts.c.last_seen_at >= start)
        .limit(MOST_PLACED)
        .subquery()
    )
    return _overlapping(connection, attempts.c.id == some.c.id, some, sa.null(), start, end)


def attempts_on_nodes(
    connection: Connection, node_ids: Ids, start: datetime, end: datetime
) -> tuple[tuple[AttemptRow, ...], bool]:
    """Read the attempts that ran on some nodes in a range, and whether the limit cut them short."""
    placed = (
        sa.select(attempts.c.id, rank_map_nodes.c.node_id)
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .where(rank_map_nodes.c.node_id.in_(node_ids))
        .limit(MOST_PLACED)
        .subquery()
    )
    found = _overlapping(
        connection, attempts.c.id == placed.c.id, placed, placed.c.node_id, start, end
    )
    count = connection.execute(sa.select(sa.func.count()).select_from(placed)).scalar_one()
    return found, count >= MOST_PLACED


def _overlapping(
    connection: Connection,
    same: sa.ColumnElement[bool],
    some: sa.Subquery,
    node_id: sa.ColumnElement[Any],
    start: datetime,
    end: datetime,
) -> tuple[AttemptRow, ...]:
    statement = (
        sa.select(*_ATTEMPT, node_id)
        .select_from(attempts.join(some, same).join(jobs, jobs.c.id == attempts.c.job_id))
        .where(attempts.c.last_seen_at >= start, end > _BEGAN)
        .order_by(attempts.c.last_seen_at.desc(), attempts.c.id)
        .limit(MOST_ATTEMPTS)
    )
    return tuple(AttemptRow(*tuple[Any, ...](row)) for row in connection.execute(statement))


def jobs_seen(
    connection: Connection, start: datetime, end: datetime, clusters: tuple[str, ...], limit: int
) -> tuple[int, ...]:
    """List the jobs that were seen in a range, the newest first, from 1,000 of the index."""
    walk = (
        sa.select(jobs.c.id, jobs.c.cluster, jobs.c.first_seen_at, jobs.c.last_seen_at)
        .where(jobs.c.last_seen_at >= start)
        .order_by(jobs.c.last_seen_at.desc())
        .limit(1_000)
        .subquery()
    )
    statement = sa.select(walk.c.id).where(walk.c.first_seen_at < end)
    if clusters:
        statement = statement.where(walk.c.cluster.in_(clusters))
    statement = statement.order_by(walk.c.last_seen_at.desc(), walk.c.id).limit(limit)
    return tuple(connection.execute(statement).scalars())


def passes_by_hour(
    connection: Connection, job_ids: Ids, start: datetime, end: datetime
) -> dict[int, dict[int, int]]:
    """Count passes of any check by job and hour since 1970; ring and weights and non-finite."""
    column = coverage_hours.c
    statement = (
        sa.select(column.job_id, column.hour, sa.func.sum(column.count))
        .where(
            column.job_id.in_(list(job_ids)[:MOST_JOBS]),
            column.hour >= micros(start) // HOUR_US,
            column.hour <= micros(end) // HOUR_US,
        )
        .group_by(column.job_id, column.hour)
    )
    found: dict[int, dict[int, int]] = {}
    for job_id, hour, count in connection.execute(statement):
        found.setdefault(job_id, {})[hour] = int(count)
    return found


def last_passes(connection: Connection, attempt_ids: Ids) -> dict[tuple[int, str], Any]:
    """Read the last pass of each check of some attempts: (attempt, check) to (step, time)."""
    column = coverage.c
    statement = sa.select(column.attempt_id, column.check_name, column.last_step, column.last_at)
    statement = statement.where(column.attempt_id.in_(list(attempt_ids)[:MOST_ATTEMPTS]))
    return {(row[0], row[1]): (row[2], row[3]) for row in connection.execute(statement)}


def checkpoints_in(
    connection: Connection, job_ids: Ids, start: datetime, end: datetime
) -> tuple[CheckpointRow, ...]:
    """Read the newest checkpoints of some jobs that were saved in a range."""
    column = checkpoints.c
    some = (
        sa.select(column.job_id, column.attempt_id, column.step, column.saved_at, column.committed)
        .where(column.job_id.in_(list(job_ids)[:MOST_JOBS]))
        .where(column.saved_at >= start, column.saved_at < end)
        .limit(SCAN_CHECKPOINTS)
        .subquery()
    )
    statement = sa.select(some).order_by(some.c.saved_at.desc()).limit(MOST_CHECKPOINTS)
    return tuple(CheckpointRow(*tuple[Any, ...](row)) for row in connection.execute(statement))


def elastic_in(
    connection: Connection, job_ids: Ids, start: datetime, end: datetime
) -> tuple[ElasticRow, ...]:
    """Read the newest elastic events of some jobs in a range."""
    column = elastic_events.c
    statement = (
        sa.select(
            column.id,
            column.job_id,
            jobs.c.name,
            column.event,
            column.slice,
            column.step,
            column.at,
        )
        .join(jobs, jobs.c.id == column.job_id)
        .where(column.job_id.in_(list(job_ids)[:MOST_JOBS]))
        .where(column.at >= start, column.at < end)
        .order_by(column.at.desc(), column.id.desc())
        .limit(MOST_EVENTS)
    )
    return tuple(ElasticRow(*tuple[Any, ...](row)) for row in connection.execute(statement))
