"""Which jobs are known, which attempts did one have, and what was covered in them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store import ids
from app.store.columns import micros, moment
from app.store.intake.job_rows import searchable
from app.store.tables import attempts, jobs

STATUSES = ("alarmed", "silent", "example")
COUNTED = 1_000
"""Attempts of one job are counted up to here; beyond, "at least" is said."""
RECENT = timedelta(hours=24)
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job."""

    id: int
    cluster: str
    namespace: str
    name: str
    first_seen_at: datetime
    last_seen_at: datetime
    alarms: int
    last_alarm_at: datetime | None
    last_pass_at: datetime | None
    example: bool


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One start of a job.

    `number` None: the job sends none.  `start` counts the starts of that number (or of those
    without one) from 1 on, of `starts`.
    """

    id: int
    number: int | None
    uid: str | None
    started_at: datetime | None
    first_seen_at: datetime
    last_seen_at: datetime
    last_pass_at: datetime | None
    alarm_at: datetime | None
    rank_map_id: int | None
    maps: int
    world_size: int | None
    code_digest: str | None
    image_digest: str | None
    framework: str | None
    producer: str | None
    step_time_s: float | None
    audited_seconds: float
    start: int
    starts: int

    @property
    def began(self) -> datetime:
        """Give when it started, or when it was first heard of."""
        return self.started_at or self.first_seen_at

    @property
    def ended(self) -> datetime:
        """Give when it was last heard of; a job stops at its alarm, whatever is posted later."""
        return max(self.began, self.alarm_at or self.last_seen_at)


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job of the list with its newest attempt; `attempts` stops at `COUNTED`."""

    job: JobRow
    newest: AttemptRow | None
    attempts: int


_JOB: tuple[sa.ColumnElement[Any], ...] = (
    jobs.c.id,
    jobs.c.cluster,
    jobs.c.namespace,
    jobs.c.name,
    jobs.c.first_seen_at,
    jobs.c.last_seen_at,
    jobs.c.alarms,
    jobs.c.last_alarm_at,
    jobs.c.last_pass_at,
    jobs.c.example,
)
_ATTEMPT: tuple[sa.ColumnElement[Any], ...] = (
    attempts.c.id,
    attempts.c.number,
    attempts.c.uid,
    attempts.c.started_at,
    attempts.c.first_seen_at,
    attempts.c.last_seen_at,
    attempts.c.last_pass_at,
    attempts.c.alarm_at,
    attempts.c.rank_map_id,
    attempts.c.maps,
    attempts.c.world_size,
    attempts.c.code_digest,
    attempts.c.image_digest,
    attempts.c.framework,
    attempts.c.producer,
    attempts.c.step_time_s,
    attempts.c.audited_seconds,
)
_BEGAN = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)


def read_job(connection: Connection, job_id: int) -> JobRow | None:
    """Read one job."""
    row = connection.execute(sa.select(*_JOB).where(jobs.c.id == job_id)).first()
    return None if row is None else JobRow(*row)


def key_of(job: JobRow) -> tuple[int, int]:
    """Give the place of a job in the list: newest activity first, then the id."""
    return micros(job.last_seen_at), job.id


def list_jobs(
    connection: Connection,
    filters: Filters,
    after: tuple[Any, ...] | None,
    limit: int,
    silent_before: datetime,
    bound_to: tuple[str | None, str | None] = (None, None),
) -> tuple[ListedJob, ...]:
    """List jobs, newest activity first; `bound_to` is the cluster and namespace of a token."""
    where = chosen(filters, bound_to)
    if filters.status:
        where.append(sa.or_(*(_status(status, silent_before) for status in filters.status)))
    if after is not None:
        seen, job_id = jobs.c.last_seen_at, jobs.c.id
        at = moment(after[0])
        where.append(sa.or_(seen < at, sa.and_(seen == at, job_id < after[1])))
    query = (
        sa.select(*_JOB)
        .where(*where)
        .order_by(jobs.c.last_seen_at.desc(), jobs.c.id.desc())
        .limit(limit)
    )
    found = [JobRow(*row) for row in connection.execute(query)]
    return tuple(
        ListedJob(job, newest_attempt(connection, job.id), _count(connection, job.id))
        for job in found
    )


def newest_attempt(connection: Connection, job_id: int) -> AttemptRow | None:
    """Read the newest start of a job."""
    columns: list[sa.ColumnElement[Any]] = [*_ATTEMPT, sa.literal(1), sa.literal(1)]
    query = (
        sa.select(*columns)
        .where(attempts.c.job_id == job_id)
        .order_by(_BEGAN.desc(), attempts.c.id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else AttemptRow(*row)


def read_attempts(
    connection: Connection, job_id: int, offset: int, limit: int
) -> tuple[tuple[AttemptRow, ...], int]:
    """Read the starts of a job, the newest first, and how many there are."""
    same = sa.func.coalesce(attempts.c.number, -1)
    numbered = (
        sa.select(
            *_ATTEMPT,
            sa.func.row_number()
            .over(partition_by=same, order_by=(_BEGAN, attempts.c.id))
            .label("start"),
            sa.func.count().over(partition_by=same).label("starts"),
            _BEGAN.label("began"),
        )
        .where(attempts.c.job_id == job_id)
        .subquery()
    )
    columns = [column for column in numbered.c if column.name != "began"]
    rows = connection.execute(
        sa.select(*columns)
        .order_by(numbered.c.began.desc(), numbered.c.id)
        .offset(offset)
        .limit(limit)
    )
    count = sa.select(sa.func.count()).where(attempts.c.job_id == job_id)
    return tuple(AttemptRow(*row) for row in rows), connection.execute(count).scalar_one()


def is_silent(newest: AttemptRow | None, job: JobRow, silent_before: datetime) -> bool:
    """Tell whether a job that runs, as far as anybody knows, passes no check any more."""
    if newest is None or job.example or newest.alarm_at is not None or not newest.world_size:
        return False
    heard = newest.last_pass_at or newest.began
    return heard < silent_before and job.last_seen_at >= silent_before - RECENT


def overlaps(found: Sequence[AttemptRow]) -> dict[int, tuple[int, ...]]:
    """Give, for each attempt, those that were heard of while it was running too."""
    pairs: dict[int, list[int]] = {}
    for place, one in enumerate(found):
        for other in found[place + 1 :]:
            if one.began < other.ended and other.began < one.ended:
                pairs.setdefault(one.id, []).append(other.id)
                pairs.setdefault(other.id, []).append(one.id)
    return {attempt: tuple(others) for attempt, others in pairs.items()}


def _count(connection: Connection, job_id: int) -> int:
    some = sa.select(attempts.c.id).where(attempts.c.job_id == job_id).limit(COUNTED).subquery()
    count: int = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    return count


def chosen(
    filters: Filters, bound_to: tuple[str | None, str | None]
) -> list[sa.ColumnElement[bool]]:
    """Write the conditions on jobs that filters and a token's cluster and namespace make."""
    where: list[sa.ColumnElement[bool]] = []
    for column, value in zip((jobs.c.cluster, jobs.c.namespace), bound_to, strict=True):
        if value is not None:
            where.append(column == value)
    if filters.cluster:
        where.append(jobs.c.cluster.in_(filters.cluster))
    if filters.namespace:
        where.append(jobs.c.namespace.in_(filters.namespace))
    if filters.job:
        where.append(sa.or_(jobs.c.name.in_(filters.job), jobs.c.id.in_(_ids(filters.job))))
    if filters.since is not None:
        where.append(jobs.c.last_seen_at >= filters.since)
    if filters.until is not None:
        where.append(jobs.c.last_seen_at < filters.until)
    if filters.q:
        begin = searchable(filters.q.strip()) or ""
        where += [jobs.c.search >= begin, jobs.c.search < begin + _LAST]
    return where


def _status(status: str, silent_before: datetime) -> sa.ColumnElement[bool]:
    if status == "alarmed":
        return jobs.c.alarms > 0
    if status == "example":
        return jobs.c.example.is_(True)
    newest = (
        sa.select(attempts.c.id)
        .where(attempts.c.job_id == jobs.c.id)
        .order_by(_BEGAN.desc(), attempts.c.id)
        .limit(1)
        .correlate(jobs)
        .scalar_subquery()
    )
    heard = sa.func.coalesce(attempts.c.last_pass_at, _BEGAN)
    quiet = (
        sa.select(attempts.c.id)
        .where(
            attempts.c.id == newest,
            attempts.c.alarm_at.is_(None),
            attempts.c.world_size > 0,
            heard < silent_before,
        )
        .exists()
    )
    recent = jobs.c.last_seen_at >= silent_before - RECENT
    return sa.and_(recent, jobs.c.example.is_(False), quiet)


def _ids(texts: Sequence[str]) -> list[int]:
    found = []
    for text in texts:
        try:
            found.append(ids.read(text))
        except ValueError:
            continue
    return found
