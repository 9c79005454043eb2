"""Which machines and GPUs are known, where was what when, and what ran and happened there?

Every read is bounded: by a page, by what can be in one machine, or by `PLACED` starts of jobs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.job_rows import searchable
from app.store.tables import (
    attempts,
    gpus,
    jobs,
    nodes,
    placements,
    rank_map_nodes,
)

PLACED = 5_000
"""Starts of jobs on one machine that are summed and sorted; the page says where there are more."""
RELATED = 20
DEVICES = 200


@dataclass(frozen=True, slots=True)
class Node:
    """One machine under one name; None where not known."""

    id: int
    cluster: str
    name: str | None
    instance_id: str | None
    first_seen_at: datetime
    last_seen_at: datetime
    uid: str | None
    cordon: str | None
    cordon_read_at: datetime | None

    @property
    def label(self) -> str:
        """Give what the machine is called."""
        return self.name or self.instance_id or "unnamed"


@dataclass(frozen=True, slots=True)
class Relative:
    """Another row that is the same instance under another name, or another under this name."""

    node: Node
    relation: Literal["same instance", "same name"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; `form` "short" is a prefix as posted, "mig" a part of a GPU."""

    id: int
    uuid: str
    form: str
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Placement:
    """A GPU seen in a machine, from the first rank map to the last."""

    gpu: Gpu
    node: Node
    gpu_index: int | None
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job on a machine; `ranks` of its map lay there."""

    id: int
    job_id: int
    job: str
    namespace: str
    number: int | None
    started_at: datetime
    last_seen_at: datetime
    alarm_at: datetime | None
    world_size: int | None
    audited_seconds: float
    ranks: int


@dataclass(frozen=True, slots=True)
class Work:
    """What ran on a machine in all: starts, jobs, audited hours; `complete` False: at least."""

    starts: int
    jobs: int
    audited_hours: float
    complete: bool


_NODE = tuple(column for column in nodes.c if column.name != "search")
_GPU = tuple(gpus.c)


def node_by_id(connection: Connection, node_id: int) -> Node | None:
    """Read one machine."""
    row = connection.execute(sa.select(*_NODE).where(nodes.c.id == node_id)).first()
    return None if row is None else Node(*tuple[Any, ...](row))


def gpu_by_id(connection: Connection, gpu_id: int) -> Gpu | None:
    """Read one GPU."""
    row = connection.execute(sa.select(*_GPU).where(gpus.c.id == gpu_id)).first()
    return None if row is None else Gpu(*tuple[Any, ...](row))


def lineage(connection: Connection, node: Node) -> tuple[Relative, ...]:
    """Read the other rows of this instance and of this name, the newest first."""
    found: list[Relative] = []
    if node.instance_id is not None:
        same = sa.and_(nodes.c.instance_id == node.instance_id, nodes.c.id != node.id)
        found += [Relative(one, "same instance") for one in _newest(connection, same)]
    if node.name is not None:
        same = sa.and_(
            nodes.c.search == searchable(node.name),
            nodes.c.name == node.name,
            nodes.c.cluster == node.cluster,
            nodes.c.id != node.id,
        )
        known = {one.node.id for one in found}
        found += [
            Relative(one, "same name") for one in _newest(connection, same) if one.id not in known
        ]
    return tuple(found)


def _newest(connection: Connection, which: sa.ColumnElement[bool]) -> list[Node]:
    statement = sa.select(*_NODE).where(which).order_by(nodes.c.last_seen_at.desc()).limit(RELATED)
    return [Node(*tuple[Any, ...](row)) for row in connection.execute(statement)]


def gpus_in(connection: Connection, node_id: int) -> tuple[Placement, ...]:
    """Read the GPUs that were seen in a machine, the newest first, then by index."""
    return _placements(connection, placements.c.node_id == node_id)


def machines_of(connection: Connection, gpu_ids: Collection[int]) -> tuple[Placement, ...]:
    """Read the machines that some GPUs were seen in, the newest first."""
    return _placements(connection, placements.c.gpu_id.in_(gpu_ids))


def _placements(connection: Connection, which: sa.ColumnElement[bool]) -> tuple[Placement, ...]:
    place = placements.c
    statement = (
        sa.select(place.gpu_index, place.first_seen_at, place.last_seen_at, *_GPU, *_NODE)
        .select_from(
            placements.join(gpus, gpus.c.id == place.gpu_id).join(
                nodes, nodes.c.id == place.node_id
            )
        )
        .where(which)
        .order_by(place.last_seen_at.desc(), place.gpu_index, gpus.c.uuid)
        .limit(DEVICES)
    )
    found = []
    for row in connection.execute(statement):
        values = tuple[Any, ...](row)
        gpu, node = Gpu(*values[3 : 3 + len(_GPU)]), Node(*values[3 + len(_GPU) :])
        found.append(Placement(gpu, node, values[0], values[1], values[2]))
    return tuple(found)


def _here(node_id: int) -> sa.Subquery:
    """Walk at most `PLACED` starts on one machine."""
    began = sa.func.coalesce(attempts.c.started_at, attempts.c.first_seen_at)
    return (
        sa.select(
            attempts.c.id,
            attempts.c.job_id,
            attempts.c.number,
            began.label("began"),
            attempts.c.last_seen_at,
            attempts.c.alarm_at,
            attempts.c.world_size,
            attempts.c.audited_seconds,
            rank_map_nodes.c.ranks,
        )
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .where(rank_map_nodes.c.node_id == node_id)
        .limit(PLACED)
        .subquery()
    )


def starts_on(
    connection: Connection, node_id: int, before: tuple[datetime, int] | None, limit: int
) -> tuple[Start, ...]:
    """Read the starts of jobs on a machine that are older than a place, the newest first."""
    here = _here(node_id)
    statement = sa.select(
        here.c.id, here.c.job_id, jobs.c.name, jobs.c.namespace, here.c.number, here.c.began,
        here.c.last_seen_at, here.c.alarm_at, here.c.world_size, here.c.audited_seconds,
        here.c.ranks,
    ).select_from(here.join(jobs, jobs.c.id == here.c.job_id))  # fmt: skip
    if before is not None:
        at, last = before
        statement = statement.where(
            sa.or_(here.c.began < at, sa.and_(here.c.began == at, here.c.id < last))
        )
    statement = statement.order_by(here.c.began.desc(), here.c.id.desc()).limit(limit)
    return tuple(Start(*tuple[Any, ...](row)) for row in connection.execute(statement))


def work_on(connection: Connection, node_id: int) -> Work:
    """Sum what ran on a machine, over at most `PLACED` starts."""
    here = _here(node_id)
    row = connection.execute(
        sa.select(
            sa.func.count(),
            sa.func.count(sa.distinct(here.c.job_id)),
            sa.func.coalesce(sa.func.sum(here.c.audited_seconds), 0.0),
        ).select_from(here)
    ).one()
    return Work(int(row[0]), int(row[1]), float(row[2]) / 3600, int(row[0]) < PLACED)
