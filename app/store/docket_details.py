"""What stands beside a case on the docket: its kinds of incidents and its last 24 hours?

Each function takes all cases of a page at once, so that a page costs the same few statements
however many rows it has.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.tables import attempts, coverage_hours, findings, incidents

HOURS = 24
HOUR_US = 3_600_000_000
# More starts than this of the jobs on one page in a day add nothing to a strip of 24 cells.
ATTEMPTS = 2_000


@dataclass(frozen=True, slots=True)
class KindCount:
    """Incidents of one kind in one case."""

    kind: str
    incidents: int
    alarms: int
    jobs: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class AlarmCell:
    """Alarms of one case within one hour."""

    hour: int  # hours since 1970
    family: str
    names_nobody: bool


@dataclass(frozen=True, slots=True)
class Work:
    """One start of a job, as far as it is known to have run."""

    job_id: int
    started_at: datetime
    ended_at: datetime
    stopped_by_alarm: bool
    world_size: int | None


@dataclass(slots=True)
class Details:
    """What the rows of one page show, by case or by job."""

    kinds: dict[int, list[KindCount]] = field(default_factory=dict)
    alarms: dict[int, list[AlarmCell]] = field(default_factory=dict)
    passes: dict[int, set[int]] = field(default_factory=dict)  # job: hours with a pass
    work: dict[int, list[Work]] = field(default_factory=dict)  # job: its starts
    telemetry: dict[int, str] = field(default_factory=dict)  # case: what it says, where it was read


def read(
    connection: Connection, case_ids: Collection[int], job_ids: Collection[int], now: datetime
) -> Details:
    """Read everything for one page."""
    details = Details()
    if not case_ids:
        return details
    details.kinds = kinds(connection, case_ids)
    details.alarms = _alarm_cells(connection, case_ids, now)
    details.passes = _pass_hours(connection, job_ids, now)
    details.work = _work(connection, job_ids, now)
    return details


def first_hour(now: datetime) -> int:
    """Name the first of the 24 hours that end with the running one."""
    return micros(now) // HOUR_US - HOURS + 1


def kinds(connection: Connection, case_ids: Collection[int]) -> dict[int, list[KindCount]]:
    """Count the incidents of each kind, the kind of the newest incident first."""
    rows = connection.execute(
        sa.select(
            incidents.c.case_id,
            incidents.c.kind,
            sa.func.count(),
            sa.func.sum(incidents.c.alarms),
            sa.func.count(sa.distinct(incidents.c.job_id)),
            sa.func.min(incidents.c.first_at),
            sa.func.max(incidents.c.last_at),
        )
        .where(incidents.c.case_id.in_(case_ids))
        .group_by(incidents.c.case_id, incidents.c.kind)
    )
    found: dict[int, list[KindCount]] = {}
    for case_id, kind, number, alarms, jobs, first_at, last_at in rows:
        one = KindCount(kind, number, int(alarms), jobs, first_at, last_at)
        found.setdefault(case_id, []).append(one)
    for members in found.values():
        members.sort(key=lambda one: (one.last_at, one.kind), reverse=True)
    return found


def _alarm_cells(
    connection: Connection, case_ids: Collection[int], now: datetime
) -> dict[int, list[AlarmCell]]:
    hour = sa.type_coerce(findings.c.occurred_at, sa.BigInteger) // HOUR_US
    nobody = sa.case((findings.c.rank.is_(None), 1), else_=0)
    rows = connection.execute(
        sa.select(findings.c.case_id, hour, findings.c.family, nobody)
        .where(
            findings.c.case_id.in_(case_ids),
            findings.c.occurred_at >= now - timedelta(hours=HOURS),
        )
        .distinct()
    )
    found: dict[int, list[AlarmCell]] = {}
    for case_id, at, family, names_nobody in rows:
        found.setdefault(case_id, []).append(AlarmCell(int(at), family, bool(names_nobody)))
    return found


def _pass_hours(
    connection: Connection, job_ids: Collection[int], now: datetime
) -> dict[int, set[int]]:
    rows = connection.execute(
        sa.select(coverage_hours.c.job_id, coverage_hours.c.hour)
        .where(
            coverage_hours.c.job_id.in_(job_ids),
            coverage_hours.c.hour >= first_hour(now),
            coverage_hours.c.count > 0,
        )
        .distinct()
    )
    found: dict[int, set[int]] = {}
    for job_id, hour in rows:
        found.setdefault(job_id, set()).add(hour)
    return found


def _work(connection: Connection, job_ids: Collection[int], now: datetime) -> dict[int, list[Work]]:
    """Read the newest starts of the jobs, the newest first."""
    rows = connection.execute(
        sa.select(
            attempts.c.job_id,
            sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at),
            attempts.c.last_seen_at,
            attempts.c.last_pass_at,
            attempts.c.alarm_at,
            attempts.c.world_size,
        )
        .where(attempts.c.job_id.in_(job_ids))
        .order_by(attempts.c.started_at.desc())
        .limit(ATTEMPTS)
    )
    found: dict[int, list[Work]] = {}
    for job_id, started, seen, passed, alarm, world in rows:
        members = found.setdefault(job_id, [])
        end = alarm or max(seen, passed or seen)
        if alarm is None and not members and now - end < timedelta(hours=HOURS):
            # The newest start without an alarm runs on as far as anybody knows.
            end = now
        members.append(Work(job_id, started, end, alarm is not None, world))
    return found
