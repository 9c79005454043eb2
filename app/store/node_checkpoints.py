"""Which jobs ran on a node, and where did their starts on it save their states?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    attempts,
    checkpoints,
    jobs,
    rank_map_nodes,
    telemetry_readings,
    telemetry_wants,
    telemetry_windows,
)

JOBS = 20
EACH = 200
"""Newest states of one job: older ones are rotated away as a rule."""


@dataclass(frozen=True, slots=True)
class SavedHere:
    """One state that a job of the node saved; `uri` None: nobody said where."""

    step: int
    uri: str | None
    saved_at: datetime | None
    committed: bool | None


@dataclass(frozen=True, slots=True)
class JobHere:
    """One job that ran on a node, with what its starts on it saved, the newest first."""

    job_id: int
    job: str
    namespace: str
    saved: tuple[SavedHere, ...]


@dataclass(frozen=True, slots=True)
class TelemetryLeft:
    """How many telemetry windows of an alarm are whole; `asked` 0: none was asked for."""

    asked: int
    whole: int
    readings: int


def jobs_on_node(connection: Connection, node_id: int) -> tuple[JobHere, ...]:
    """List the newest jobs whose rank maps place them on a node."""
    started = sa.func.max(sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at))
    newest = connection.execute(
        sa.select(jobs.c.id, jobs.c.name, jobs.c.namespace)
        .join(attempts, attempts.c.job_id == jobs.c.id)
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .where(rank_map_nodes.c.node_id == node_id)
        .group_by(jobs.c.id, jobs.c.name, jobs.c.namespace)
        .order_by(started.desc(), jobs.c.id)
        .limit(JOBS)
    )
    return tuple(
        JobHere(job_id, name, namespace, _saved(connection, node_id, job_id))
        for job_id, name, namespace in newest
    )


def _saved(connection: Connection, node_id: int, job_id: int) -> tuple[SavedHere, ...]:
    on_node = (
        sa.select(attempts.c.id)
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .where(rank_map_nodes.c.node_id == node_id, attempts.c.job_id == job_id)
    )
    rows = connection.execute(
        sa.select(
            checkpoints.c.step, checkpoints.c.uri, checkpoints.c.saved_at, checkpoints.c.committed
        )
        .where(
            checkpoints.c.job_id == job_id,
            sa.or_(checkpoints.c.attempt_id.is_(None), checkpoints.c.attempt_id.in_(on_node)),
        )
        .order_by(checkpoints.c.step.desc(), checkpoints.c.id)
        .limit(EACH)
    )
    return tuple(SavedHere(*row) for row in rows)


def newest_start_uses(connection: Connection, job_id: int, node_id: int) -> bool | None:
    """Tell whether the newest start of a job has a node on its map; None: it has no map yet."""
    at = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
    row = connection.execute(
        sa.select(attempts.c.rank_map_id)
        .where(attempts.c.job_id == job_id)
        .order_by(at.desc())
        .limit(1)
    ).first()
    if row is None or row.rank_map_id is None:
        return None
    on_map = sa.select(rank_map_nodes.c.node_id).where(
        rank_map_nodes.c.rank_map_id == row.rank_map_id, rank_map_nodes.c.node_id == node_id
    )
    return connection.execute(on_map).first() is not None


def telemetry_left(connection: Connection, alarm_id: int) -> TelemetryLeft:
    """Count how much of what an alarm asked for is kept."""
    row = connection.execute(
        sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(sa.case((telemetry_windows.c.whole, 1), else_=0)), 0),
        )
        .select_from(telemetry_wants)
        .join(telemetry_windows, telemetry_windows.c.id == telemetry_wants.c.window_id)
        .where(telemetry_wants.c.alarm_id == alarm_id)
    ).one()
    readings = connection.execute(
        sa.select(sa.func.count()).where(telemetry_readings.c.alarm_id == alarm_id)
    ).scalar_one()
    return TelemetryLeft(int(row[0]), int(row[1]), int(readings))
