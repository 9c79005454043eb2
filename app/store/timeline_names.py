"""What are these nodes, GPUs and jobs called?"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import tables

Ids = Collection[int]


def nodes(connection: Connection, node_ids: Ids) -> dict[int, str]:
    """Read the names of some nodes, or their instance ids where they have no name."""
    column = tables.nodes.c
    statement = sa.select(column.id, column.name, column.instance_id)
    rows = connection.execute(statement.where(column.id.in_(node_ids)))
    return {row_id: name or instance_id or "unnamed" for row_id, name, instance_id in rows}


def gpus(connection: Connection, gpu_ids: Ids) -> dict[int, str]:
    """Read the UUIDs of some GPUs."""
    column = tables.gpus.c
    rows = connection.execute(sa.select(column.id, column.uuid).where(column.id.in_(gpu_ids)))
    return {row.id: row.uuid for row in rows}


def jobs(connection: Connection, job_ids: Ids, namespaces: Collection[str] = ()) -> dict[int, str]:
    """Read the names of some jobs, only those in the namespaces where some are given."""
    column = tables.jobs.c
    statement = sa.select(column.id, column.name).where(column.id.in_(job_ids))
    if namespaces:
        statement = statement.where(column.namespace.in_(namespaces))
    return {row.id: row.name for row in connection.execute(statement)}
