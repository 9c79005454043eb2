"""What was covered, raised, replayed and told in one job?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store.job_reading import chosen
from app.store.tables import (
    alarms,
    attempts,
    coverage,
    coverage_hours,
    documents,
    elastic_events,
    gpus,
    jobs,
    replays,
)


@dataclass(frozen=True, slots=True)
class Covered:
    """Passes of one check, summed over the attempts of a job."""

    check: str
    first_step: int
    last_step: int
    count: int
    gpu_audits: int
    seconds: float
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Passes of one check in one attempt, with the job they belong to."""

    attempt_id: int
    job_id: int
    cluster: str
    namespace: str
    job: str
    covered: Covered
    gpus: int


@dataclass(frozen=True, slots=True)
class Hour:
    """Passes of one check in one hour, counted from 1970."""

    hour: int
    check: str
    count: int


@dataclass(frozen=True, slots=True)
class JobAlarm:
    """One alarm of the job."""

    id: int
    attempt_id: int | None
    family: str
    check: str
    step: int
    occurred_at: datetime
    window_first: int | None
    window_last: int | None
    rule: str | None
    standing: str
    summary: str
    reporters: int


@dataclass(frozen=True, slots=True)
class Replay:
    """Replays of a step on one suspect after an alarm."""

    attempt_id: int | None
    rank: int | None
    gpu_id: int | None
    gpu_uuid: str | None
    step: int
    witnesses: str | None
    replays: int
    wrong: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ElasticEvent:
    """One elastic event, with its document."""

    event: str
    slice: int | None
    step: int | None
    snapshot_step: int | None
    at: datetime
    body: str


def covered_by_check(connection: Connection, job_id: int) -> tuple[Covered, ...]:
    """Sum the passes of each check over all attempts of a job."""
    table = coverage.c
    query = (
        sa.select(
            table.check_name,
            sa.func.min(table.first_step),
            sa.func.max(table.last_step),
            sa.func.sum(table.count),
            sa.func.sum(table.gpu_audits),
            sa.func.sum(table.seconds),
            sa.func.min(table.first_at),
            sa.func.max(table.last_at),
        )
        .where(table.job_id == job_id)
        .group_by(table.check_name)
        .order_by(table.check_name)
    )
    return tuple(
        Covered(*row[:3], int(row[3]), int(row[4]), *row[5:]) for row in connection.execute(query)
    )


def audited_gpu_hours(connection: Connection, job_id: int) -> float:
    """Add up the audited GPU-hours of all attempts of a job whose size is known."""
    seconds = sa.func.sum(attempts.c.audited_seconds * attempts.c.world_size)
    query = sa.select(seconds).where(attempts.c.job_id == job_id)
    return float(connection.execute(query).scalar() or 0.0) / 3600


def last_passes(connection: Connection, attempt_ids: Sequence[int]) -> dict[tuple[int, str], int]:
    """Give the newest step that each check passed in each of these attempts."""
    table = coverage.c
    rows = connection.execute(
        sa.select(table.attempt_id, table.check_name, table.last_step).where(
            table.attempt_id.in_(attempt_ids)
        )
    )
    return {(row[0], row[1]): row[2] for row in rows}


def list_coverage(
    connection: Connection,
    filters: Filters,
    after: tuple[Any, ...] | None,
    limit: int,
    bound_to: tuple[str | None, str | None],
) -> tuple[CoverageRow, ...]:
    """List coverage by attempt and check, in that order; it overlaps from and to."""
    table = coverage.c
    wanted = chosen(replace(filters, since=None, until=None), bound_to)
    if filters.since is not None:
        wanted.append(table.last_at >= filters.since)
    if filters.until is not None:
        wanted.append(table.first_at < filters.until)
    if filters.check:
        wanted.append(table.check_name.in_(filters.check))
    if after is not None:
        later = sa.and_(table.attempt_id == after[0], table.check_name > after[1])
        wanted.append(sa.or_(table.attempt_id > after[0], later))
    query = (
        sa.select(
            table.attempt_id,
            table.job_id,
            jobs.c.cluster,
            jobs.c.namespace,
            jobs.c.name,
            table.check_name,
            table.first_step,
            table.last_step,
            table.count,
            table.gpu_audits,
            table.seconds,
            table.first_at,
            table.last_at,
            table.gpus,
        )
        .join(jobs, jobs.c.id == table.job_id)
        .where(*wanted)
        .order_by(table.attempt_id, table.check_name)
        .limit(limit)
    )
    return tuple(
        CoverageRow(*row[:5], Covered(*row[5:13]), row[13]) for row in connection.execute(query)
    )


def hours(connection: Connection, job_id: int, first: int, last: int) -> tuple[Hour, ...]:
    """Read the passes of a job by hour and check; hours counted from 1970, both inclusive."""
    table = coverage_hours.c
    rows = connection.execute(
        sa.select(table.hour, table.check_name, table.count).where(
            table.job_id == job_id, table.hour >= first, table.hour <= last
        )
    )
    return tuple(Hour(*row) for row in rows)


def alarms_of(connection: Connection, job_id: int, limit: int) -> tuple[JobAlarm, ...]:
    """Read the newest alarms of a job, the newest first."""
    table = alarms.c
    rows = connection.execute(
        sa.select(
            table.id,
            table.attempt_id,
            table.family,
            table.check_name,
            table.step,
            table.occurred_at,
            table.window_first,
            table.window_last,
            table.rule,
            table.standing,
            table.summary,
            table.reporters,
        )
        .where(table.job_id == job_id)
        .order_by(table.occurred_at.desc(), table.id.desc())
        .limit(limit)
    )
    return tuple(JobAlarm(*tuple(row)) for row in rows)


def replays_of(
    connection: Connection, attempt_ids: Sequence[int], limit: int
) -> tuple[Replay, ...]:
    """Read the replays after alarms of these attempts, the newest first."""
    table = replays.c
    rows = connection.execute(
        sa.select(
            table.attempt_id,
            table.rank,
            table.gpu_id,
            gpus.c.uuid,
            table.step,
            table.witnesses,
            table.replays,
            table.wrong,
            table.at,
        )
        .join(gpus, gpus.c.id == table.gpu_id, isouter=True)
        .where(table.attempt_id.in_(attempt_ids))
        .order_by(table.at.desc(), table.id)
        .limit(limit)
    )
    return tuple(Replay(*row) for row in rows)


def elastic_of(connection: Connection, job_id: int, limit: int) -> tuple[ElasticEvent, ...]:
    """Read the newest elastic events of a job, the newest first."""
    table = elastic_events.c
    rows = connection.execute(
        sa.select(
            table.event, table.slice, table.step, table.snapshot_step, table.at, documents.c.body
        )
        .join(documents, documents.c.id == table.document_id)
        .where(table.job_id == job_id)
        .order_by(table.at.desc(), table.id)
        .limit(limit)
    )
    return tuple(ElasticEvent(*row) for row in rows)
