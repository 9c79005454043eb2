"""Which nodes do we hold, and what was read of a node last?"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.proposals import COLUMNS, Proposal, from_row
from app.store.tables import nodes, proposals

NOT_SENT = ("already_ours", "already_by_other")


def lock(connection: Connection, node_id: int) -> None:
    """Keep other decisions about this node out until the commit."""
    connection.execute(sa.select(nodes.c.id).where(nodes.c.id == node_id).with_for_update())


def note(
    connection: Connection, node_id: int, uid: str | None, cordon: str | None, at: datetime
) -> None:
    """Keep what a live reading showed: cordon is "none", "ours", "other"; None: no such node."""
    row: dict[str, object] = {"cordon": cordon, "cordon_read_at": at}
    if uid is not None:
        row["uid"] = uid
    connection.execute(nodes.update().where(nodes.c.id == node_id).values(row))


def of_name(connection: Connection, cluster: str, name: str) -> int | None:
    """Find the node that carried a name last; None: no job ever told of it."""
    row = connection.execute(
        sa.select(nodes.c.id)
        .where(nodes.c.cluster == cluster, nodes.c.name == name)
        .order_by(nodes.c.last_seen_at.desc(), nodes.c.id)
        .limit(1)
    ).first()
    return None if row is None else int(row.id)


def held(connection: Connection, limit: int) -> tuple[Proposal, ...]:
    """List, for each node that shows our cordon, the newest cordon of ours that was sent.

    One that was found to stand already carries the name of the case before it.
    """
    rows = connection.execute(
        sa.select(*COLUMNS)
        .join(nodes, nodes.c.id == proposals.c.node_id)
        .where(
            nodes.c.cordon == "ours",
            proposals.c.action == "cordon",
            proposals.c.status.in_(("verified", "accepted")),
        )
        .order_by(proposals.c.finished_at.desc(), proposals.c.id)
        .limit(limit)
    )
    newest: dict[int | None, Proposal] = {}
    for row in rows:
        one = from_row(row)
        before = newest.get(one.node_id)
        if before is None or (before.result in NOT_SENT and one.result not in NOT_SENT):
            newest[one.node_id] = one
    return tuple(newest.values())


def count(connection: Connection) -> int:
    """Count the nodes that showed our cordon when they were read last."""
    return int(
        connection.execute(
            sa.select(sa.func.count(sa.distinct(proposals.c.node_id)))
            .join(nodes, nodes.c.id == proposals.c.node_id)
            .where(
                nodes.c.cordon == "ours",
                proposals.c.action == "cordon",
                proposals.c.status.in_(("verified", "accepted")),
            )
        ).scalar_one()
    )
