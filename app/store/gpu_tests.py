"""Which tests did the machines of GPUs pass while these were in them?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.hardware_tests import LABEL
from app.store.tables import hardware_tests, nodes, placements


@dataclass(frozen=True, slots=True)
class Passed:
    """A passed test that counts in a score; `recall` as it was assumed when it was seen."""

    kind: str
    recall: float
    at: datetime


def passed_of(connection: Connection, gpu_ids: Collection[int]) -> dict[int, list[Passed]]:
    """Read the passed tests of GPUs whose time and recall are known, the oldest first.

    A label on a node without a time can be older than any alarm, so it does not count.
    """
    if not gpu_ids:
        return {}
    tests = hardware_tests.c
    began = sa.func.coalesce(tests.begun_at, tests.at)
    same = sa.or_(
        tests.instance_id == nodes.c.instance_id,
        sa.and_(tests.instance_id.is_(None), tests.node_id == nodes.c.id),
    )
    query = (
        sa.select(
            placements.c.gpu_id, placements.c.node_id, tests.kind, tests.recall, began.label("at")
        )
        .select_from(
            placements.join(nodes, nodes.c.id == placements.c.node_id).join(
                hardware_tests, sa.and_(same, tests.cluster == nodes.c.cluster)
            )
        )
        .where(
            placements.c.gpu_id.in_(gpu_ids),
            tests.result == "passed",
            tests.recall.is_not(None),
            sa.or_(tests.gpu_id.is_(None), tests.gpu_id == placements.c.gpu_id),
            sa.or_(tests.source != LABEL, tests.begun_at.is_not(None)),
        )
        .order_by(began)
    )
    rows = connection.execute(query).all()
    if not rows:
        return {}
    moves = _moves(connection, {row.gpu_id for row in rows})
    found: dict[int, list[Passed]] = {}
    for gpu_id, node_id, kind, recall, at in rows:
        here = [node for since, node in moves[gpu_id] if since <= at]
        if here and here[-1] == node_id:
            found.setdefault(gpu_id, []).append(Passed(kind, recall, at))
    return found


def _moves(
    connection: Connection, gpu_ids: Collection[int]
) -> dict[int, list[tuple[datetime, int]]]:
    """List since when each GPU was seen in which machine, the oldest first."""
    rows = connection.execute(
        sa.select(placements.c.gpu_id, placements.c.first_seen_at, placements.c.node_id)
        .where(placements.c.gpu_id.in_(gpu_ids))
        .order_by(placements.c.first_seen_at)
    )
    found: dict[int, list[tuple[datetime, int]]] = {}
    for gpu_id, since, node_id in rows:
        found.setdefault(gpu_id, []).append((since, node_id))
    return found
