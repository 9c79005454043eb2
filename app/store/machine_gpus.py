"""Which GPUs were seen in a machine, and which of them were found guilty before?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import cases, gpus, nodes, placements

MOST = 64


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """One GPU of a machine; `confirmed`: cases of it that ended as a confirmed hardware fault."""

    gpu_id: int
    uuid: str
    index: int | None
    last_seen_at: datetime
    confirmed: int


def of_instance(connection: Connection, cluster: str, instance_id: str) -> tuple[SeenGpu, ...]:
    """List the GPUs that rank maps placed in a machine; empty while no job has run on it."""
    confirmed = (
        sa.select(sa.func.count())
        .where(cases.c.gpu_id == gpus.c.id, cases.c.adjudication == "hardware confirmed")
        .scalar_subquery()
    )
    rows = connection.execute(
        sa.select(
            gpus.c.id, gpus.c.uuid, placements.c.gpu_index, placements.c.last_seen_at, confirmed
        )
        .join(placements, placements.c.gpu_id == gpus.c.id)
        .join(nodes, nodes.c.id == placements.c.node_id)
        .where(nodes.c.cluster == cluster, nodes.c.instance_id == instance_id)
        .order_by(placements.c.gpu_index, gpus.c.uuid)
        .limit(MOST)
    )
    return tuple(SeenGpu(*row) for row in rows)


def node_of_instance(connection: Connection, cluster: str, instance_id: str) -> int | None:
    """Find the newest known node of a machine; None while no rank map has named it."""
    found: int | None = connection.execute(
        sa.select(nodes.c.id)
        .where(nodes.c.cluster == cluster, nodes.c.instance_id == instance_id)
        .order_by(nodes.c.last_seen_at.desc(), nodes.c.id)
        .limit(1)
    ).scalar()
    return found
