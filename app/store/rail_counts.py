"""Which nodes did our actions take out of service, and what was approved lately?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import Instant
from app.store.tables import nodes, proposals
from witness.rules.rails import EFFECTS

# Somebody decided that it goes out, and it did not end in "nothing was done".
USED = ("approved", "executing", "accepted", "waiting", "verified", "unknown")
OPEN = ("approved", "executing", "accepted", "waiting", "unknown")
TOUCHING = tuple(
    sorted(name for name, effect in EFFECTS.items() if effect in ("holds", "destroys"))
)
DESTROYING = tuple(sorted(name for name, effect in EFFECTS.items() if effect == "destroys"))

NodeKey = tuple[str, str]
"""Cluster and name: no two machines of a cluster carry one name at one time."""


@dataclass(frozen=True, slots=True)
class Act:
    """One decided action, as far as the limits count it."""

    id: int
    action: str
    status: str
    cluster: str
    node_name: str | None
    instance_id: str | None
    decided_at: datetime | None
    claimed_at: datetime | None
    finished_at: datetime | None
    cordon: str | None  # whose cordon the node showed when it was read last
    cordon_read_at: datetime | None

    @property
    def node(self) -> NodeKey:
        """Name the node."""
        return self.cluster, self.node_name or self.instance_id or str(self.id)

    @property
    def destroys(self) -> bool:
        """Tell whether it destroys something."""
        return self.action in DESTROYING

    @property
    def is_settled_by_reading(self) -> bool:
        """Tell whether a later reading showed that nothing of a cordon stands any more."""
        if self.action != "cordon" or self.cordon_read_at is None or self.finished_at is None:
            return False
        return self.cordon_read_at > self.finished_at and self.cordon != "ours"

    def is_on(self, node: NodeKey, instance_id: str | None) -> bool:
        """Tell whether it is about this machine, under this or another name."""
        same_instance = self.cluster == node[0] and self.instance_id == instance_id
        return self.node == node or (instance_id is not None and same_instance)


_COLUMNS = (
    proposals.c.id, proposals.c.action, proposals.c.status, proposals.c.cluster,
    proposals.c.node_name, proposals.c.instance_id, proposals.c.decided_at,
    proposals.c.claimed_at, proposals.c.finished_at, nodes.c.cordon, nodes.c.cordon_read_at,
)  # fmt: skip
_FROM = proposals.outerjoin(nodes, nodes.c.id == proposals.c.node_id)


def _acts(rows: Iterable[Any]) -> tuple[Act, ...]:
    return tuple(Act(*row) for row in rows)


# Built once: they are asked several times for every decision.
_UNDER_WAY = sa.select(*_COLUMNS).select_from(_FROM).where(
    proposals.c.status.in_(OPEN), proposals.c.action.in_(TOUCHING)
)  # fmt: skip
_HELD = sa.select(*_COLUMNS).select_from(_FROM).where(
    proposals.c.status == "verified", proposals.c.action == "cordon", nodes.c.cordon == "ours"
)  # fmt: skip
_DECIDED = sa.select(*_COLUMNS).select_from(_FROM).where(
    proposals.c.decided_at > sa.bindparam("since", type_=Instant),
    proposals.c.status.in_(USED),
    proposals.c.action.in_(TOUCHING),
)  # fmt: skip


def out_now(connection: Connection) -> tuple[Act, ...]:
    """List what holds or destroys a node now, or may do so: an unknown outcome counts."""
    found = _acts(connection.execute(_UNDER_WAY)) + _acts(connection.execute(_HELD))
    return tuple(one for one in found if not one.is_settled_by_reading)


def decided_since(connection: Connection, since: datetime) -> tuple[Act, ...]:
    """List what was approved since a time and not refused before it was done."""
    return _acts(connection.execute(_DECIDED, {"since": since}))


def on_node(
    connection: Connection, cluster: str, name: str | None, instance_id: str | None
) -> tuple[Act, ...]:
    """List everything that was decided about a machine, by its name and by its instance."""
    same = [proposals.c.node_name == name] if name else []
    same += [proposals.c.instance_id == instance_id] if instance_id else []
    if not same:
        return ()
    query = sa.select(*_COLUMNS).select_from(_FROM).where(
        proposals.c.cluster == cluster,
        sa.or_(*same),
        proposals.c.status.in_((*USED, "failed")),
    )  # fmt: skip
    return _acts(connection.execute(query))


def clusters(connection: Connection, limit: int = 20) -> tuple[str, ...]:
    """Name the clusters in which something waits for a decision or is under way."""
    query = (
        sa.select(proposals.c.cluster)
        .where(proposals.c.status.in_(("proposed", *OPEN)))
        .distinct()
        .order_by(proposals.c.cluster)
        .limit(limit)
    )
    return tuple(row.cluster for row in connection.execute(query))
