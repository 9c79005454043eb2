"""Which nodes, GPUs and jobs begin like this?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.intake.job_rows import searchable
from app.store.tables import alarms, cases, gpus, jobs, nodes

_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class NodeHit:
    """A machine whose name or instance id begins like what was asked for."""

    id: int
    cluster: str
    name: str | None
    instance_id: str | None
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class GpuHit:
    """A GPU whose UUID begins like what was asked for."""

    id: int
    uuid: str
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class JobHit:
    """A job whose name begins like what was asked for."""

    id: int
    cluster: str
    namespace: str
    name: str
    alarms: int
    last_seen_at: datetime


def _begins(connection: Connection, column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    if connection.dialect.name == "sqlite":
        # LIKE ignores case there and therefore the index; a range uses it.
        return sa.and_(column >= text, column < text + _LAST)
    return column.startswith(text, autoescape=True)


def nodes_like(connection: Connection, text: str, limit: int) -> tuple[NodeHit, ...]:
    """Find machines by the beginning of their name or instance id, newest first."""
    begins = sa.or_(
        _begins(connection, nodes.c.search, searchable(text) or ""),
        _begins(connection, nodes.c.instance_id, text.lower()),
    )
    rows = connection.execute(
        sa.select(
            nodes.c.id,
            nodes.c.cluster,
            nodes.c.name,
            nodes.c.instance_id,
            nodes.c.last_seen_at,
        )
        .where(begins)
        .limit(limit)
    )
    return tuple(sorted((NodeHit(*row) for row in rows), key=lambda hit: hit.name or ""))


def gpus_like(connection: Connection, text: str, limit: int) -> tuple[GpuHit, ...]:
    """Find GPUs by the beginning of their UUID, with or without its GPU- or MIG-."""
    bare = text.lower().removeprefix("gpu-").removeprefix("mig-")
    spellings = {text, bare, f"GPU-{bare}", f"MIG-{bare}"}
    begins = sa.or_(*(_begins(connection, gpus.c.uuid, one) for one in sorted(spellings)))
    rows = connection.execute(
        sa.select(gpus.c.id, gpus.c.uuid, gpus.c.last_seen_at).where(begins).limit(limit)
    )
    return tuple(sorted((GpuHit(*row) for row in rows), key=lambda hit: hit.uuid))


def jobs_like(connection: Connection, text: str, limit: int) -> tuple[JobHit, ...]:
    """Find jobs by the beginning of their name."""
    begins = _begins(connection, jobs.c.search, searchable(text) or "")
    rows = connection.execute(
        sa.select(
            jobs.c.id,
            jobs.c.cluster,
            jobs.c.namespace,
            jobs.c.name,
            jobs.c.alarms,
            jobs.c.last_seen_at,
        )
        .where(begins)
        .limit(limit)
    )
    return tuple(sorted((JobHit(*row) for row in rows), key=lambda hit: hit.name))


def by_id(connection: Connection, text: str) -> tuple[str, int] | None:
    """Find the alarm or case with this 13-letter id: ("alarms" or "cases", id)."""
    try:
        row_id = ids.read(text.lower())
    except ValueError:
        return None
    for kind, table in (("cases", cases), ("alarms", alarms)):
        if connection.execute(sa.select(table.c.id).where(table.c.id == row_id)).first():
            return kind, row_id
    return None
