"""How does the fleet stand: what waits, what is idle, what is held, who is silent?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import held_nodes, rail_policy, run_settings
from app.store.proposals import DESTROYS, UNDER_WAY
from app.store.tables import (
    alarms,
    attempts,
    audit_entries,
    cases,
    documents,
    fleet_days,
    incidents,
    jobs,
    proposals,
)

# A job whose newest start is older is no longer said to stand idle or to be silent.
RECENT = timedelta(hours=24)
SILENT_SHOWN = 20
LISTED = 5_000
NOT_PROVEN = (*UNDER_WAY, "unknown")


@dataclass(frozen=True, slots=True)
class IdleJob:
    """A job that stopped at an alarm and has not been started again since."""

    job_id: int
    gpus: int
    since: datetime


@dataclass(frozen=True, slots=True)
class SilentJob:
    """A job that runs as far as anybody knows, and whose passes stopped or never came."""

    job_id: int
    name: str
    since: datetime  # of its last pass, or of its start where none has come
    passed: bool


@dataclass(frozen=True, slots=True)
class FleetState:
    """The strip above the docket."""

    waiting: int  # proposals that can be approved and are not decided
    waiting_since: datetime | None
    idle: tuple[IdleJob, ...]
    held: int
    limit: int  # nodes that may be held or being destroyed at one time
    brake: run_settings.Brake
    silent: tuple[SilentJob, ...]  # the longest silent first, some at most
    silent_count: int
    under_way: int = 0  # what destroys, from its approval until it is proven; unknown ones too
    under_way_since: datetime | None = None

    @property
    def idle_gpus(self) -> int:
        """Count the GPUs behind stopped jobs."""
        return sum(job.gpus for job in self.idle)

    def idle_gpu_hours(self, now: datetime) -> float:
        """Add up what has been lost so far."""
        return sum(job.gpus * (now - job.since).total_seconds() / 3600 for job in self.idle)


def read(connection: Connection, now: datetime, silent_after: timedelta) -> FleetState:
    """Read the whole strip."""
    waiting, since = connection.execute(
        sa.select(sa.func.count(), sa.func.min(proposals.c.created_at)).where(
            proposals.c.status == "proposed", proposals.c.blocked.is_(None)
        )
    ).one()
    under_way, begun = connection.execute(
        sa.select(sa.func.count(), sa.func.min(proposals.c.decided_at)).where(
            proposals.c.action.in_(DESTROYS), proposals.c.status.in_(NOT_PROVEN)
        )
    ).one()
    idle, silent = _stopped_or_silent(connection, now, silent_after)
    return FleetState(
        waiting=waiting,
        waiting_since=since,
        idle=idle,
        held=held_nodes.count(connection),
        limit=rail_policy.read(connection).max_nodes,
        brake=run_settings.brake(connection),
        silent=silent[:SILENT_SHOWN],
        silent_count=len(silent),
        under_way=under_way,
        under_way_since=begun,
    )


def _newest_starts(since: datetime) -> sa.Subquery:
    """Number the starts of recently seen jobs, the newest first."""
    at = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
    place = sa.func.row_number().over(partition_by=attempts.c.job_id, order_by=at.desc())
    return (
        sa.select(
            attempts.c.job_id,
            jobs.c.name,
            at.label("at"),
            attempts.c.last_seen_at,
            attempts.c.last_pass_at,
            attempts.c.alarm_at,
            attempts.c.world_size,
            place.label("place"),
        )
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(jobs.c.last_seen_at >= since, jobs.c.example.is_(False))
        .subquery()
    )


def _stopped_or_silent(
    connection: Connection, now: datetime, silent_after: timedelta
) -> tuple[tuple[IdleJob, ...], tuple[SilentJob, ...]]:
    """Sort the newest starts of recent jobs: those that an alarm stopped, those without passes."""
    newest = _newest_starts(now - RECENT)
    heard = sa.func.coalesce(newest.c.last_pass_at, newest.c.at)
    idle = sa.and_(newest.c.alarm_at.is_not(None), newest.c.alarm_at >= now - RECENT)
    silent = sa.and_(newest.c.alarm_at.is_(None), heard < now - silent_after)
    rows = connection.execute(
        sa.select(
            newest.c.job_id,
            newest.c.name,
            newest.c.world_size,
            newest.c.alarm_at,
            heard,
            newest.c.last_pass_at.is_not(None),
        )
        .where(newest.c.place == 1, newest.c.world_size > 0, sa.or_(idle, silent))
        .order_by(heard)
        .limit(LISTED)
    ).all()
    return (
        tuple(IdleJob(row[0], row[2], row[3]) for row in rows if row[3] is not None),
        tuple(SilentJob(row[0], row[1], row[4], bool(row[5])) for row in rows if row[3] is None),
    )


def stamp(connection: Connection) -> str:
    """Name the state of what stands on the docket: its cases and all that was decided.

    Passes come all the time and move nothing but waiting times and cells of an hour; the caller
    adds the minute for those.
    """
    known = connection.execute(
        sa.select(
            sa.func.count(),
            sa.func.sum(cases.c.alarms),
            sa.func.sum(cases.c.evidence_version),
            sa.func.sum(alarms.c.reporters),
        )
        .join(alarms, alarms.c.id == cases.c.last_alarm_id)
        .where(cases.c.status == "open")
    ).one()
    entry = connection.execute(sa.select(sa.func.max(audit_entries.c.id))).scalar_one()
    posted = connection.execute(sa.select(documents.c.id).limit(1)).first() is not None
    return "-".join(str(one or 0) for one in (*known, entry, int(posted)))


def audited_gpu_hours(connection: Connection) -> float:
    """Add up the audited GPU-hours of the whole fleet, all its days."""
    seconds = connection.execute(
        sa.select(sa.func.sum(fleet_days.c.audited_gpu_seconds)).where(fleet_days.c.kind == "")
    ).scalar_one()
    return float(seconds or 0.0) / 3600


def refuted_incidents(connection: Connection) -> dict[str, int]:
    """Count, by kind, the incidents of cases that turned out to be no fault of the hardware."""
    rows = connection.execute(
        sa.select(incidents.c.kind, sa.func.count())
        .join(cases, cases.c.id == incidents.c.case_id)
        .where(
            cases.c.status == "closed",
            cases.c.adjudication.in_(("software", "not reproduced")),
        )
        .group_by(incidents.c.kind)
    )
    return {row[0]: row[1] for row in rows}
