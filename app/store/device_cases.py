"""What was found on a machine or a GPU: incidents, cases, counts?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.proposals import COLUMNS, Proposal, from_row
from app.store.tables import (
    cases,
    gpus,
    incidents,
    jobs,
    nodes,
    offender_windows,
    proposals,
    subject_jobs,
)

Subject = Literal["node", "gpu"]
INCIDENTS = 50
RELATED = 20


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of a device since it is known; times None: no alarm named it."""

    alarms: int
    incidents: int
    jobs: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Incident:
    """All alarms of one kind on one device in one job and build."""

    id: int
    kind: str
    job_id: int
    job: str
    namespace: str
    first_at: datetime
    last_at: datetime
    rank: int | None
    alarms: int
    case_id: int
    gpu_id: int | None
    gpu_uuid: str | None
    node_id: int | None
    node: str | None


@dataclass(frozen=True, slots=True)
class CaseOf:
    """A case about a device."""

    id: int
    subject: str
    status: str
    standing: str
    rule: str | None
    headline: str
    adjudication: str
    opened_at: datetime
    closed_at: datetime | None
    alarms: int


def incidents_of(connection: Connection, subject: Subject, row_id: int) -> tuple[Incident, ...]:
    """Read the newest incidents of a machine or a GPU."""
    column = incidents.c
    key = column.node_id if subject == "node" else column.gpu_id
    walk = (
        sa.select(incidents)
        .where(key == row_id)
        .order_by(column.first_at.desc())
        .limit(INCIDENTS)
        .subquery()
    )
    some = walk.c
    statement = (
        sa.select(
            some.id, some.kind, some.job_id, jobs.c.name, jobs.c.namespace, some.first_at,
            some.last_at, some.first_rank, some.alarms, some.case_id, some.gpu_id, gpus.c.uuid,
            some.node_id, sa.func.coalesce(nodes.c.name, nodes.c.instance_id),
        )
        .select_from(
            walk.join(jobs, jobs.c.id == some.job_id)
            .join(gpus, gpus.c.id == some.gpu_id, isouter=True)
            .join(nodes, nodes.c.id == some.node_id, isouter=True)
        )
        .order_by(some.first_at.desc(), some.id)
    )  # fmt: skip
    return tuple(Incident(*tuple[Any, ...](row)) for row in connection.execute(statement))


def cases_of(connection: Connection, subject: Subject, row_id: int) -> tuple[CaseOf, ...]:
    """Read the cases about a machine, its GPUs included, or about a GPU; open ones first."""
    key = cases.c.node_id if subject == "node" else cases.c.gpu_id
    column = cases.c
    statement = (
        sa.select(
            column.id, column.subject, column.status, column.standing, column.rule,
            column.headline, column.adjudication, column.opened_at, column.closed_at, column.alarms,
        )
        .where(key == row_id)
        .order_by(column.status.desc(), column.urgency.desc(), column.last_alarm_at.desc())
        .limit(RELATED)
    )  # fmt: skip
    return tuple(CaseOf(*tuple[Any, ...](row)) for row in connection.execute(statement))


def counted(connection: Connection, subject: Subject, row_id: int) -> Counted:
    """Read what the intake has counted of a device."""
    column = offender_windows.c
    row = connection.execute(
        sa.select(
            column.alarms_all,
            column.incidents_all,
            jobs_touched(sa.literal(subject), sa.literal(str(row_id))),
            column.last_at,
        ).where(column.subject == subject, column.subject_key == str(row_id))
    ).first()
    return Counted(0, 0, 0, None) if row is None else Counted(*tuple[Any, ...](row))


def jobs_touched(
    subject: sa.ColumnElement[str], key: sa.ColumnElement[str]
) -> sa.ScalarSelect[int]:
    """Count the jobs whose alarms name a device, by the key of that table."""
    touched = subject_jobs.c
    return (
        sa.select(sa.func.count())
        .where(touched.subject == subject, touched.subject_key == key, touched.alarms > 0)
        .scalar_subquery()
    )


def proposals_on(connection: Connection, node_id: int, limit: int) -> tuple[Proposal, ...]:
    """Read the newest proposals about a machine."""
    statement = sa.select(*COLUMNS).where(proposals.c.node_id == node_id)
    statement = statement.order_by(proposals.c.created_at.desc(), proposals.c.id.desc())
    return tuple(from_row(row) for row in connection.execute(statement.limit(limit)))
