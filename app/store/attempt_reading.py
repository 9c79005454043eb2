"""What did one attempt of a job report around a step: passes, maps, replays, what came after?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import (
    attempt_maps,
    attempts,
    coverage,
    nodes,
    passes,
    rank_map_nodes,
    rank_maps,
    replays,
)

BEATS = 60


@dataclass(frozen=True, slots=True)
class Beat:
    """Passes of one check that were reported together."""

    check: str
    first_step: int
    last_step: int
    count: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Covered:
    """Passes of one check in one attempt, summed."""

    check: str
    first_step: int
    last_step: int
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class PostedMap:
    """One rank map that an attempt posted."""

    rank_map_id: int
    at: datetime
    received_at: datetime
    ranks: int
    nodes: int
    unplaced: int
    world_size: int


@dataclass(frozen=True, slots=True)
class Joined:
    """The first attempt of a job that used a machine; `first_step` None: it reported no pass."""

    first_of_job: bool
    started_at: datetime
    first_step: int | None


def read_beats(connection: Connection, attempt_id: int, until_step: int) -> tuple[Beat, ...]:
    """Read the newest beats of each check that began at or before a step."""
    found: list[Beat] = []
    for check in ("nonfinite", "ring", "weights"):
        query = (
            sa.select(
                passes.c.check_name,
                passes.c.first_step,
                passes.c.last_step,
                passes.c.count,
                passes.c.at,
            )
            .where(
                passes.c.attempt_id == attempt_id,
                passes.c.check_name == check,
                passes.c.first_step <= until_step,
            )
            .order_by(passes.c.last_step.desc())
            .limit(BEATS)
        )
        found.extend(Beat(*row) for row in connection.execute(query))
    return tuple(found)


def read_covered(connection: Connection, attempt_id: int) -> tuple[Covered, ...]:
    """Read what each check of an attempt covered in all."""
    query = sa.select(
        coverage.c.check_name,
        coverage.c.first_step,
        coverage.c.last_step,
        coverage.c.count,
        coverage.c.last_at,
    ).where(coverage.c.attempt_id == attempt_id)
    return tuple(Covered(*row) for row in connection.execute(query))


def read_maps(connection: Connection, attempt_id: int) -> tuple[PostedMap, ...]:
    """Read the maps that an attempt posted, the first one first."""
    query = (
        sa.select(
            attempt_maps.c.rank_map_id,
            attempt_maps.c.at,
            attempt_maps.c.received_at,
            rank_maps.c.ranks,
            rank_maps.c.nodes,
            rank_maps.c.unplaced,
            rank_maps.c.world_size,
        )
        .join(rank_maps, rank_maps.c.id == attempt_maps.c.rank_map_id)
        .where(attempt_maps.c.attempt_id == attempt_id)
        .order_by(attempt_maps.c.received_at, attempt_maps.c.rank_map_id)
        .limit(10)
    )
    return tuple(PostedMap(*row) for row in connection.execute(query))


def read_nodes(
    connection: Connection, rank_map_id: int, limit: int
) -> tuple[tuple[int, str | None, str | None, int], ...]:
    """Read (id, name, instance id, ranks) of the machines of a rank map, by name."""
    query = (
        sa.select(nodes.c.id, nodes.c.name, nodes.c.instance_id, rank_map_nodes.c.ranks)
        .join(nodes, nodes.c.id == rank_map_nodes.c.node_id)
        .where(rank_map_nodes.c.rank_map_id == rank_map_id)
        .order_by(nodes.c.name, nodes.c.id)
        .limit(limit)
    )
    return tuple((row[0], row[1], row[2], row[3]) for row in connection.execute(query))


def read_replays(
    connection: Connection, attempt_id: int, step: int, rank: int | None, gpu_id: int | None
) -> tuple[int, int]:
    """Sum (replays, wrong) of the replays of a step on one suspect; (0, 0) where there are none."""
    who = [replays.c.rank == rank] if rank is not None else []
    who += [replays.c.gpu_id == gpu_id] if gpu_id is not None else []
    if not who:
        return 0, 0
    query = sa.select(
        sa.func.coalesce(sa.func.sum(replays.c.replays), 0),
        sa.func.coalesce(sa.func.sum(replays.c.wrong), 0),
    ).where(replays.c.attempt_id == attempt_id, replays.c.step == step, sa.or_(*who))
    row = connection.execute(query).one()
    return int(row[0]), int(row[1])


def read_next_start(connection: Connection, job_id: int, after: datetime) -> datetime | None:
    """Find when the job was first seen to have started again after a moment."""
    query = sa.select(sa.func.min(attempts.c.started_at)).where(
        attempts.c.job_id == job_id, attempts.c.started_at > after
    )
    found: datetime | None = connection.execute(query).scalar_one()
    return found


def read_joined(connection: Connection, job_id: int, node_id: int) -> Joined | None:
    """Find the first attempt of a job whose rank map holds a machine."""
    mine = (
        sa.select(attempts.c.id, attempts.c.started_at)
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .where(
            attempts.c.job_id == job_id,
            rank_map_nodes.c.node_id == node_id,
            attempts.c.started_at.is_not(None),
        )
        .order_by(attempts.c.started_at, attempts.c.id)
        .limit(1)
    )
    row = connection.execute(mine).first()
    if row is None:
        return None
    earlier = sa.select(attempts.c.id).where(
        attempts.c.job_id == job_id, attempts.c.started_at < row.started_at
    )
    first = connection.execute(earlier.limit(1)).first() is None
    step = sa.select(sa.func.min(coverage.c.first_step)).where(coverage.c.attempt_id == row.id)
    return Joined(first, row.started_at, connection.execute(step).scalar_one())
