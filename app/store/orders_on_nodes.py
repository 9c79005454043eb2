"""What was ordered on some machines in a time, when was it sent, and what came of it?"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import nodes, proposals


@dataclass(frozen=True, slots=True)
class Order:
    """One action that a worker took up.

    `at` is when it did, just before the call. `result` is how the call ended ("changed", "dry_run",
    …), None while it is under way or where nothing was sent. `words` say it plainly.
    """

    proposal_id: int
    node_id: int
    node: str | None
    action: str
    status: str
    at: datetime
    by: str | None
    result: str | None
    words: str | None


def orders_on(
    connection: Connection,
    node_ids: Collection[int],
    start: datetime,
    end: datetime,
    limit: int,
) -> tuple[Order, ...]:
    """Read the newest orders about machines that were taken up in a time, the newest first."""
    column = proposals.c
    query = (
        sa.select(
            column.id, column.node_id, sa.func.coalesce(nodes.c.name, column.node_name),
            column.action, column.status, column.claimed_at, column.decided_by, column.details,
            column.outcome,
        )
        .select_from(proposals.join(nodes, nodes.c.id == column.node_id))
        .where(
            column.node_id.in_(node_ids), column.claimed_at >= start, column.claimed_at < end
        )
        .order_by(column.claimed_at.desc(), column.id)
        .limit(limit)
    )  # fmt: skip
    return tuple(
        Order(*row[:7], result=_result(row.details), words=row.outcome)
        for row in connection.execute(query)
    )


def _result(details: str | None) -> str | None:
    found = json.loads(details).get("outcome") if details else None
    return None if found is None else str(found)
