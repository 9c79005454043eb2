"""Which jobs ran on a suspect device, over which steps, and what did they save meanwhile?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.docket_reading import DocketCase
from app.store.tables import (
    alarms,
    attempts,
    checkpoints,
    coverage,
    findings,
    incidents,
    jobs,
    placements,
    rank_map_nodes,
)

JOBS = 50
# The newest findings of a case tell its windows; older ones lie further back in the same jobs.
FINDINGS = 500

Level = Literal["tainted", "suspect", "exposed"]


@dataclass(frozen=True, slots=True)
class ReachedJob:
    """One job that ran on the device."""

    job_id: int
    job: str
    namespace: str
    level: Level
    started_at: datetime
    ended_at: datetime  # as far as anybody knows
    starts: int
    first_step: int | None  # None: it reported no pass
    last_step: int | None
    window: tuple[int, int] | None  # of the case's alarms in this job
    saved: int  # checkpoints known
    newest_saved: int | None
    inside: int  # checkpoints inside the window
    before: int | None  # newest checkpoint before the window


def reached(connection: Connection, case: DocketCase) -> tuple[ReachedJob, ...]:
    """List the jobs that a case reaches: tainted first, then the newest."""
    ran = _ran(connection, case)
    job_ids = [row.id for row in ran]
    if not job_ids:
        return ()
    fired = _fired(connection, case.id)
    windows = _windows(connection, case.id)
    steps = _steps(connection, job_ids)
    saved = _saved(connection, job_ids)
    found = []
    for row in ran:
        level: Level = "exposed"
        if row.id in fired:
            level = "tainted"
        elif row.ended >= case.first_alarm_at:
            level = "suspect"
        window = windows.get(row.id)
        inside, before = _around(connection, row.id, window) if window else (0, None)
        first, last = steps.get(row.id, (None, None))
        number, newest = saved.get(row.id, (0, None))
        found.append(
            ReachedJob(
                row.id,
                row.name,
                row.namespace,
                level,
                row.started,
                row.ended,
                row.starts,
                first,
                last,
                window,
                number,
                newest,
                inside,
                before,
            )
        )
    order = {"tainted": 0, "suspect": 1, "exposed": 2}
    return tuple(sorted(found, key=lambda one: (order[one.level], -one.ended_at.timestamp())))


def _ran(connection: Connection, case: DocketCase) -> list[Any]:
    at = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
    ended = sa.func.coalesce(attempts.c.alarm_at, attempts.c.last_pass_at, attempts.c.last_seen_at)
    query = sa.select(
        jobs.c.id,
        jobs.c.name,
        jobs.c.namespace,
        sa.func.min(at).label("started"),
        sa.func.max(ended).label("ended"),
        sa.func.count().label("starts"),
    )
    joined = attempts.join(jobs, jobs.c.id == attempts.c.job_id)
    if case.gpu_id is not None:
        on_map = joined.join(
            rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id
        ).join(placements, placements.c.node_id == rank_map_nodes.c.node_id)
        query = query.select_from(on_map).where(
            placements.c.gpu_id == case.gpu_id,
            at >= placements.c.first_seen_at,
            at <= placements.c.last_seen_at,
        )
    elif case.node_id is not None:
        on_map = joined.join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        query = query.select_from(on_map).where(rank_map_nodes.c.node_id == case.node_id)
    else:
        query = query.select_from(joined).where(jobs.c.id == case.job_id)
    query = query.group_by(jobs.c.id, jobs.c.name, jobs.c.namespace)
    return list(connection.execute(query.order_by(sa.desc("ended"), jobs.c.id).limit(JOBS)))


def _fired(connection: Connection, case_id: int) -> set[int]:
    rows = connection.execute(
        sa.select(incidents.c.job_id).where(incidents.c.case_id == case_id).distinct()
    )
    return {row.job_id for row in rows}


def _windows(connection: Connection, case_id: int) -> dict[int, tuple[int, int]]:
    newest = (
        sa.select(findings.c.alarm_id)
        .where(findings.c.case_id == case_id)
        .order_by(findings.c.occurred_at.desc())
        .limit(FINDINGS)
        .subquery()
    )
    rows = connection.execute(
        sa.select(
            alarms.c.job_id, sa.func.min(alarms.c.window_first), sa.func.max(alarms.c.window_last)
        )
        .join(newest, newest.c.alarm_id == alarms.c.id)
        .where(alarms.c.window_first.is_not(None), alarms.c.window_last.is_not(None))
        .group_by(alarms.c.job_id)
    )
    return {job_id: (first, last) for job_id, first, last in rows}


def _steps(connection: Connection, job_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    rows = connection.execute(
        sa.select(
            coverage.c.job_id, sa.func.min(coverage.c.first_step), sa.func.max(coverage.c.last_step)
        )
        .where(coverage.c.job_id.in_(job_ids))
        .group_by(coverage.c.job_id)
    )
    return {job_id: (first, last) for job_id, first, last in rows}


def _saved(connection: Connection, job_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    rows = connection.execute(
        sa.select(checkpoints.c.job_id, sa.func.count(), sa.func.max(checkpoints.c.step))
        .where(checkpoints.c.job_id.in_(job_ids))
        .group_by(checkpoints.c.job_id)
    )
    return {job_id: (number, newest) for job_id, number, newest in rows}


def _around(connection: Connection, job_id: int, window: tuple[int, int]) -> tuple[int, int | None]:
    """Count the checkpoints inside a window and find the newest before it."""
    step = checkpoints.c.step
    inside = connection.execute(
        sa.select(sa.func.count()).where(
            checkpoints.c.job_id == job_id, step >= window[0], step <= window[1]
        )
    ).scalar_one()
    before = connection.execute(
        sa.select(sa.func.max(step)).where(
            checkpoints.c.job_id == job_id,
            step < window[0],
            sa.or_(checkpoints.c.committed.is_(None), checkpoints.c.committed.is_(True)),
        )
    ).scalar_one()
    return int(inside), before
