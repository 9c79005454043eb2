"""What is known of one alarm: its own row, who reported it, what it found, what it contradicts?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    alarm_reports,
    alarms,
    attempts,
    cases,
    documents,
    findings,
    gpus,
    jobs,
    nodes,
)

# An alarm names a handful of ranks as a rule; a page shows these, the list of findings all.
FINDINGS_SHOWN = 25


@dataclass(frozen=True, slots=True)
class AlarmFacts:
    """One alarm with its job and attempt; `attempt_id` None while no attempt is known."""

    id: int
    job_id: int
    attempt_id: int | None
    base_key: str
    cluster: str
    check: str
    family: str
    step: int
    occurred_at: datetime
    time_note: str | None
    received_at: datetime
    last_received_at: datetime
    received: int
    reporters: int
    window_first: int | None
    window_last: int | None
    map_state: str
    resolved_at: datetime | None
    conflicts: int
    rule: str | None
    standing: str
    summary: str
    code_digest: str | None
    namespace: str
    job: str
    example: bool
    body: str
    attempt: int | None = None
    attempt_uid: str | None = None
    started_at: datetime | None = None
    rank_map_id: int | None = None
    maps: int = 0
    world_size: int | None = None
    step_time_s: float | None = None

    @property
    def window(self) -> tuple[int, int] | None:
        """Give the suspect window, None where the alarm has none."""
        if self.window_first is None or self.window_last is None:
            return None
        return self.window_first, self.window_last


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """One finding with the machine and GPU it was resolved to; `rank` None: nobody named."""

    ordinal: int
    rule: str | None
    kind: str
    rank: int | None
    node_id: int | None
    node: str | None
    instance_id: str | None
    gpu_id: int | None
    gpu_uuid: str | None
    gpu_form: str | None
    case_id: int
    case_status: str | None
    recurrence: str | None
    ambiguous: bool
    software_first: bool
    blocks_replacement: bool
    cautions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """How often one rank reported the alarm; `rank` None: it did not say which it is."""

    rank: int | None
    received: int
    first_at: datetime
    last_at: datetime
    document_id: int | None


@dataclass(frozen=True, slots=True)
class OtherAlarm:
    """Another alarm of the same attempt and step."""

    id: int
    summary: str
    rule: str | None
    received: int
    occurred_at: datetime


_ALARM = (
    alarms.c.id,
    alarms.c.job_id,
    alarms.c.attempt_id,
    alarms.c.base_key,
    alarms.c.cluster,
    alarms.c.check_name,
    alarms.c.family,
    alarms.c.step,
    alarms.c.occurred_at,
    alarms.c.time_note,
    alarms.c.received_at,
    alarms.c.last_received_at,
    alarms.c.received,
    alarms.c.reporters,
    alarms.c.window_first,
    alarms.c.window_last,
    alarms.c.map_state,
    alarms.c.resolved_at,
    alarms.c.conflicts,
    alarms.c.rule,
    alarms.c.standing,
    alarms.c.summary,
    alarms.c.code_digest,
    jobs.c.namespace,
    jobs.c.name,
    jobs.c.example,
    documents.c.body,
    attempts.c.number,
    attempts.c.uid,
    attempts.c.started_at,
    attempts.c.rank_map_id,
    sa.func.coalesce(attempts.c.maps, 0),
    attempts.c.world_size,
    attempts.c.step_time_s,
)


def read_alarm(connection: Connection, alarm_id: int) -> AlarmFacts | None:
    """Read one alarm; None when there is none with this id."""
    joined = (
        alarms.join(jobs, jobs.c.id == alarms.c.job_id)
        .join(documents, documents.c.id == alarms.c.document_id)
        .outerjoin(attempts, attempts.c.id == alarms.c.attempt_id)
    )
    query = sa.select(*_ALARM).select_from(joined).where(alarms.c.id == alarm_id)
    row = connection.execute(query).first()
    return None if row is None else AlarmFacts(*list(row))


def read_findings(
    connection: Connection, alarm_id: int, limit: int | None = FINDINGS_SHOWN
) -> tuple[StoredFinding, ...]:
    """Read what an alarm found, in the order of the table; all of it without a limit."""
    joined = (
        findings.outerjoin(nodes, nodes.c.id == findings.c.node_id)
        .outerjoin(gpus, gpus.c.id == findings.c.gpu_id)
        .outerjoin(cases, cases.c.id == findings.c.case_id)
    )
    query = (
        sa.select(
            findings.c.ordinal,
            findings.c.rule,
            findings.c.kind,
            findings.c.rank,
            findings.c.node_id,
            nodes.c.name,
            findings.c.instance_id,
            findings.c.gpu_id,
            gpus.c.uuid,
            gpus.c.form,
            findings.c.case_id,
            cases.c.status,
            cases.c.recurrence,
            findings.c.ambiguous,
            findings.c.software_first,
            findings.c.blocks_replacement,
            findings.c.cautions,
        )
        .select_from(joined)
        .where(findings.c.alarm_id == alarm_id)
        .order_by(findings.c.ordinal)
        .limit(limit)
    )
    return tuple(
        StoredFinding(*[*row[:-1], _cautions(row[-1])]) for row in connection.execute(query)
    )


def count_findings(connection: Connection, alarm_id: int) -> int:
    """Count what an alarm found."""
    query = sa.select(sa.func.count()).where(findings.c.alarm_id == alarm_id)
    return int(connection.execute(query).scalar_one())


def read_reports(connection: Connection, alarm_id: int, limit: int) -> tuple[Report, ...]:
    """Read who reported an alarm, the first ones first."""
    query = (
        sa.select(
            alarm_reports.c.reporter_rank,
            alarm_reports.c.received,
            alarm_reports.c.first_at,
            alarm_reports.c.last_at,
            alarm_reports.c.document_id,
        )
        .where(alarm_reports.c.alarm_id == alarm_id)
        .order_by(alarm_reports.c.first_at, alarm_reports.c.reporter_rank)
        .limit(limit)
    )
    return tuple(
        Report(None if row[0] < 0 else row[0], *row[1:]) for row in connection.execute(query)
    )


def read_conflicts(connection: Connection, facts: AlarmFacts, limit: int) -> tuple[OtherAlarm, ...]:
    """Read alarms of the same attempt and step that say something else."""
    query = (
        sa.select(
            alarms.c.id,
            alarms.c.summary,
            alarms.c.rule,
            alarms.c.received,
            alarms.c.occurred_at,
        )
        .where(alarms.c.base_key == facts.base_key, alarms.c.id != facts.id)
        .order_by(alarms.c.occurred_at, alarms.c.id)
        .limit(limit)
    )
    return tuple(OtherAlarm(*row) for row in connection.execute(query))


def read_sibling_bodies(
    connection: Connection, facts: AlarmFacts, limit: int
) -> tuple[tuple[int, int, str], ...]:
    """Read (id, step, document) of other ring alarms of the same attempt, newest first.

    An attempt stops at its first alarm, so there are few; contradicting reports of one step are
    left out, since they are no further audit.
    """
    if facts.attempt_id is None:
        return ()
    query = (
        sa.select(alarms.c.id, alarms.c.step, documents.c.body)
        .join(documents, documents.c.id == alarms.c.document_id)
        .where(
            alarms.c.attempt_id == facts.attempt_id,
            alarms.c.step != facts.step,
            alarms.c.family == "ring",
        )
        .order_by(alarms.c.step.desc(), alarms.c.id)
        .limit(limit)
    )
    return tuple((row[0], row[1], row[2]) for row in connection.execute(query))


def _cautions(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((one["code"], one["text"]) for one in json.loads(text))
