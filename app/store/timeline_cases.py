"""Which open cases make a lane urgent, and what is proposed in them?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import cases, nodes, proposals

SCAN_CASES = 5_000
MOST_PROPOSALS = 300

Ids = Collection[int]


@dataclass(frozen=True, slots=True)
class OpenCase:
    """The most urgent open case of a lane."""

    id: int
    urgency: int
    standing: str
    headline: str


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """One proposed action, when it was proposed and where it stands now."""

    id: int
    at: datetime
    case_id: int
    action: str
    status: str
    node_id: int | None
    node: str | None
    recommended_by: str


def open_cases(connection: Connection, column_name: str, keys: Ids) -> dict[int, OpenCase]:
    """Read the most urgent open case of each node, GPU or job (`node_id`, `gpu_id`, `job_id`)."""
    column = cases.c[column_name]
    statement = (
        sa.select(column, cases.c.id, cases.c.urgency, cases.c.standing, cases.c.headline)
        .where(column.in_(keys), cases.c.status == "open")
        .limit(SCAN_CASES)
    )
    found: dict[int, OpenCase] = {}
    for key, *values in connection.execute(statement):
        one = OpenCase(*values)
        if key not in found or one.urgency > found[key].urgency:
            found[key] = one
    return found


def proposals_in(
    connection: Connection, case_ids: Ids, start: datetime, end: datetime
) -> tuple[ProposalRow, ...]:
    """Read the newest proposals of some cases that were made in a range."""
    column = proposals.c
    statement = (
        sa.select(
            column.id,
            column.created_at,
            column.case_id,
            column.action,
            column.status,
            column.node_id,
            sa.func.coalesce(nodes.c.name, column.node_name),
            column.recommended_by,
        )
        .select_from(proposals.join(nodes, nodes.c.id == column.node_id, isouter=True))
        .where(column.case_id.in_(case_ids), column.created_at >= start, column.created_at < end)
        .order_by(column.created_at.desc(), column.id.desc())
        .limit(MOST_PROPOSALS)
    )
    return tuple(ProposalRow(*tuple[Any, ...](row)) for row in connection.execute(statement))
