"""What is known in one case: its findings, incidents, alarms and notes?

Every list is bounded: a case of a crash-looping job holds thousands of alarms, and its page shows
the newest of them with a link to the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import alarms, attempts, cases, findings, gpus, incidents, jobs, nodes, notes
from app.store.tables import replays as replay_rows

SHOWN = 20


# Nobody keeps GPUs idle for longer without telling.
COUNTED_FOR = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """One finding of the case with the alarm that made it."""

    alarm_id: int
    rule: str | None
    kind: str
    rank: int | None
    node_id: int | None
    node: str | None
    gpu_uuid: str | None
    ambiguous: bool
    software_first: bool
    cautions: tuple[tuple[str, str], ...]  # (code, text)
    occurred_at: datetime
    check: str
    step: int
    window_first: int | None
    window_last: int | None
    map_state: str
    reporters: int
    conflicts: int
    summary: str
    code_digest: str | None
    job_id: int
    job: str
    attempt_id: int | None


@dataclass(frozen=True, slots=True)
class CaseIncident:
    """All alarms of one key."""

    id: int
    kind: str
    job_id: int
    job: str
    rank: int | None
    code_digest: str | None
    first_at: datetime
    last_at: datetime
    alarms: int


@dataclass(frozen=True, slots=True)
class Note:
    """What a person wrote."""

    at: datetime
    author: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Replays:
    """Replays of a triggering step on the suspect."""

    step: int
    replays: int
    wrong: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another case about the same device, node or job."""

    id: int
    ordinal: int
    status: str
    adjudication: str
    opened_at: datetime
    closed_at: datetime | None


def newest_findings(
    connection: Connection, case_id: int, limit: int = SHOWN
) -> tuple[CaseFinding, ...]:
    """Read the newest findings of a case, the newest first."""
    query = (
        sa.select(
            findings.c.alarm_id, findings.c.rule, findings.c.kind, findings.c.rank,
            findings.c.node_id, nodes.c.name.label("node"), gpus.c.uuid, findings.c.ambiguous,
            findings.c.software_first, findings.c.cautions, findings.c.occurred_at,
            alarms.c.check_name, alarms.c.step, alarms.c.window_first, alarms.c.window_last,
            alarms.c.map_state, alarms.c.reporters, alarms.c.conflicts, alarms.c.summary,
            alarms.c.code_digest, findings.c.job_id, jobs.c.name.label("job"), alarms.c.attempt_id,
        )
        .select_from(
            findings.join(alarms, alarms.c.id == findings.c.alarm_id)
            .join(jobs, jobs.c.id == findings.c.job_id)
            .outerjoin(nodes, nodes.c.id == findings.c.node_id)
            .outerjoin(gpus, gpus.c.id == findings.c.gpu_id)
        )
        .where(findings.c.case_id == case_id)
        .order_by(findings.c.occurred_at.desc(), findings.c.alarm_id, findings.c.ordinal)
        .limit(limit)
    )  # fmt: skip
    return tuple(_finding(row) for row in connection.execute(query))


def _finding(row: Any) -> CaseFinding:
    values = list(row)
    values[9] = tuple((one["code"], one["text"]) for one in json.loads(values[9]))
    return CaseFinding(*values)


def newest_incidents(
    connection: Connection, case_id: int, limit: int = SHOWN
) -> tuple[CaseIncident, ...]:
    """Read the newest incidents of a case, the newest first."""
    query = (
        sa.select(
            incidents.c.id, incidents.c.kind, incidents.c.job_id, jobs.c.name,
            incidents.c.first_rank, incidents.c.code_digest, incidents.c.first_at,
            incidents.c.last_at, incidents.c.alarms,
        )
        .join(jobs, jobs.c.id == incidents.c.job_id)
        .where(incidents.c.case_id == case_id)
        .order_by(incidents.c.first_at.desc(), incidents.c.id)
        .limit(limit)
    )  # fmt: skip
    return tuple(CaseIncident(*row) for row in connection.execute(query))


def replays_of(connection: Connection, gpu_id: int | None) -> tuple[Replays, ...]:
    """Read the newest replays on a GPU."""
    if gpu_id is None:
        return ()
    query = (
        sa.select(replay_rows.c.step, replay_rows.c.replays, replay_rows.c.wrong, replay_rows.c.at)
        .where(replay_rows.c.gpu_id == gpu_id)
        .order_by(replay_rows.c.at.desc())
        .limit(SHOWN)
    )
    return tuple(Replays(*row) for row in connection.execute(query))


def notes_of(connection: Connection, case_id: int, limit: int = 200) -> tuple[Note, ...]:
    """Read the newest notes on a case, the newest first."""
    query = (
        sa.select(notes.c.at, notes.c.author, notes.c.kind, notes.c.text)
        .where(notes.c.case_id == case_id)
        .order_by(notes.c.id.desc())
        .limit(limit)
    )
    return tuple(Note(*row) for row in connection.execute(query))


def siblings(connection: Connection, case_id: int) -> tuple[Sibling, ...]:
    """List the other cases about the same subject, the newest first."""
    this = sa.select(cases.c.subject, cases.c.subject_id).where(cases.c.id == case_id).subquery()
    query = (
        sa.select(
            cases.c.id, cases.c.ordinal, cases.c.status, cases.c.adjudication,
            cases.c.opened_at, cases.c.closed_at,
        )
        .join(
            this,
            sa.and_(this.c.subject == cases.c.subject, this.c.subject_id == cases.c.subject_id),
        )
        .where(cases.c.id != case_id)
        .order_by(cases.c.ordinal.desc())
        .limit(SHOWN)
    )  # fmt: skip
    return tuple(Sibling(*row) for row in connection.execute(query))


@dataclass(frozen=True, slots=True)
class Stopped:
    """The start of a job at which its newest alarm came, and whether it was started again."""

    world_size: int | None
    alarm_at: datetime | None
    started_again: bool

    @property
    def idle_gpus(self) -> int:
        """Count the GPUs that wait; 0 where the job runs or nothing is known."""
        return 0 if self.alarm_at is None else self.world_size or 0

    def idle_gpu_hours(self, now: datetime) -> float | None:
        """Give what the stop has cost so far; None where a sum would be made up."""
        if self.alarm_at is None or not timedelta(0) <= now - self.alarm_at <= COUNTED_FOR:
            return None
        return self.idle_gpus * (now - self.alarm_at).total_seconds() / 3600


def stopped_job(connection: Connection, job_id: int) -> Stopped | None:
    """Read how the newest start of a job stands; None where no start is known."""
    at = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
    row = connection.execute(
        sa.select(attempts.c.world_size, attempts.c.alarm_at)
        .where(attempts.c.job_id == job_id)
        .order_by(at.desc())
        .limit(1)
    ).first()
    return None if row is None else Stopped(row.world_size, row.alarm_at, row.alarm_at is None)
