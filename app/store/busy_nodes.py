"""Is another action under way on this machine, under this or another name?"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.proposals import COLUMNS, Proposal, from_row
from app.store.rail_counts import DESTROYING
from app.store.tables import proposals

# Asks a job for something and leaves the node alone.
_ASKING = ("targeted_audit",)


def other_action(
    connection: Connection, proposal: Proposal, *, claiming: bool = False
) -> Proposal | None:
    """Find an action on the same node or instance that is decided and not finished.

    A replacement or a test is not finished while it is waited for.  `claiming`: one that is only
    approved does not count, since the row that asks is the one that goes first.
    """
    same = [proposals.c.node_name == proposal.node_name] if proposal.node_name else []
    if proposal.instance_id:
        same.append(proposals.c.instance_id == proposal.instance_id)
    if not same or proposal.action in _ASKING:
        return None
    calling = ("executing",) if claiming else ("approved", "executing")
    waited_for = sa.and_(
        proposals.c.status.in_(("accepted", "waiting")), proposals.c.action.in_(DESTROYING)
    )
    query = (
        sa.select(*COLUMNS)
        .where(
            proposals.c.cluster == proposal.cluster,
            sa.or_(*same),
            proposals.c.id != proposal.id,
            proposals.c.action.not_in(_ASKING),
            sa.or_(proposals.c.status.in_(calling), waited_for),
        )
        .order_by(proposals.c.decided_at, proposals.c.id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else from_row(row)


def all_under_way(connection: Connection, proposal: Proposal) -> tuple[Proposal, ...]:
    """List everything else that is approved or being called on the same node or instance."""
    same = [proposals.c.node_name == proposal.node_name] if proposal.node_name else []
    if proposal.instance_id:
        same.append(proposals.c.instance_id == proposal.instance_id)
    if not same:
        return ()
    query = (
        sa.select(*COLUMNS)
        .where(
            proposals.c.cluster == proposal.cluster,
            sa.or_(*same),
            proposals.c.id != proposal.id,
            proposals.c.action.not_in(_ASKING),
            proposals.c.status.in_(("approved", "executing")),
        )
        .order_by(proposals.c.decided_at, proposals.c.id)
    )
    return tuple(from_row(row) for row in connection.execute(query))
