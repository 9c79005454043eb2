"""Which actions are proposed, decided, under way or done, and who may take the next step?

Every change of state is a compare-and-set: the row changes only if it still stands where the
caller saw it, so of any number of simultaneous decisions exactly one is kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import proposals

PENDING = ("proposed",)
UNDER_WAY = ("approved", "executing", "accepted", "waiting")
ENDED = (
    "verified", "refused", "failed", "gone", "unknown", "rejected", "superseded", "expired",
)  # fmt: skip
UNDOES = ("uncordon",)
DESTROYS = frozenset({"replace", "deep_health_check", "reboot"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action on one node, from the proposal to its outcome."""

    id: int
    case_id: int
    action: str
    ordinal: int
    cluster: str
    node_id: int | None
    node_name: str | None
    node_uid: str | None  # None: the node has not been read live yet
    instance_id: str | None
    gpu_uuid: str | None
    status: str
    evidence_version: int
    table_version: str
    why: str
    blocked: str | None  # None: it can be approved
    recommended_by: str
    created_at: datetime
    expires_at: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    decision_reason: str | None
    claimed_by: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    outcome: str | None
    parameters: Mapping[str, Any]  # how it is carried out; empty: the action needs nothing more
    policy: str | None  # version of the rails that it was approved under; None: not approved yet
    lineage: Mapping[str, Any]  # the machine that was approved, as it was read live
    execute_by: datetime | None  # not sent by then: never sent
    batch_id: int | None
    next_look_at: datetime | None  # when its effect is looked for next; None: nothing to look for
    looks: int
    details: Mapping[str, Any]

    @property
    def destroys(self) -> bool:
        """Tell whether something is lost that cannot be brought back."""
        return self.action in DESTROYS

    @property
    def result(self) -> str | None:
        """Name how the call to the cluster ended, finer than the status; None before that."""
        result = self.details.get("outcome")
        return None if result is None else str(result)

    def is_expired(self, now: datetime) -> bool:
        """Tell whether it waited for too long to be decided."""
        return self.status == "proposed" and self.expires_at is not None and now >= self.expires_at


COLUMNS = tuple(proposals.c)
NAMES = tuple(column.name for column in COLUMNS)
JSON_COLUMNS = ("parameters", "lineage", "details")


def from_row(row: Any) -> Proposal:
    """Build a proposal from a row that begins with its columns."""
    values = dict(zip(NAMES, row[: len(COLUMNS)], strict=True))
    for name in JSON_COLUMNS:
        values[name] = json.loads(values[name]) if values[name] else {}
    return Proposal(**values)


def get(connection: Connection, proposal_id: int) -> Proposal | None:
    """Read one proposal."""
    row = connection.execute(sa.select(*COLUMNS).where(proposals.c.id == proposal_id)).first()
    return None if row is None else from_row(row)


def of_cases(connection: Connection, case_ids: Collection[int]) -> dict[int, tuple[Proposal, ...]]:
    """Read all proposals of some cases, the oldest of each case first."""
    rows = connection.execute(
        sa.select(*COLUMNS)
        .where(proposals.c.case_id.in_(case_ids))
        .order_by(proposals.c.created_at, proposals.c.action, proposals.c.ordinal)
    )
    grouped: dict[int, list[Proposal]] = {}
    for row in rows:
        one = from_row(row)
        grouped.setdefault(one.case_id, []).append(one)
    return {case_id: tuple(members) for case_id, members in grouped.items()}


def add(connection: Connection, values: Mapping[str, Any]) -> None:
    """Keep a new proposal."""
    row = dict(values)
    for name in JSON_COLUMNS:
        row[name] = json.dumps(row[name]) if row.get(name) else None
    connection.execute(proposals.insert().values(row))


def next_ordinal(connection: Connection, case_id: int, action: str) -> int:
    """Number the next proposal of this action in this case."""
    newest = connection.execute(
        sa.select(sa.func.max(proposals.c.ordinal)).where(
            proposals.c.case_id == case_id, proposals.c.action == action
        )
    ).scalar_one()
    return 1 if newest is None else int(newest) + 1


def move(
    connection: Connection,
    proposal_id: int,
    from_statuses: Collection[str],
    values: Mapping[str, Any],
    *,
    claimed_by: str | None = None,
    looks: int | None = None,
) -> bool:
    """Change a proposal only if it stands in one of the statuses; tell whether it changed.

    `claimed_by` also asks that the row is still claimed by that worker, `looks` that nobody has
    looked for its effect meanwhile.
    """
    row = dict(values)
    for name in JSON_COLUMNS:
        if name in row:
            row[name] = json.dumps(row[name])
    statement = proposals.update().where(
        proposals.c.id == proposal_id, proposals.c.status.in_(from_statuses)
    )
    if claimed_by is not None:
        statement = statement.where(proposals.c.claimed_by == claimed_by)
    if looks is not None:
        statement = statement.where(proposals.c.looks == looks)
    return connection.execute(statement.values(row)).rowcount == 1


def waiting_for_execution(connection: Connection, limit: int = 20) -> tuple[int, ...]:
    """List approved proposals that nobody has claimed, the oldest decision first."""
    return _waiting(connection, sa.true(), limit)


def undoing_waits(connection: Connection, limit: int = 20) -> tuple[int, ...]:
    """List the same of what undoes, which stands behind nothing else."""
    return _waiting(connection, proposals.c.action.in_(UNDOES), limit)


def _waiting(connection: Connection, which: sa.ColumnElement[bool], limit: int) -> tuple[int, ...]:
    rows = connection.execute(
        sa.select(proposals.c.id)
        .where(proposals.c.status == "approved", which)
        .order_by(proposals.c.decided_at, proposals.c.id)
        .limit(limit)
    )
    return tuple(row.id for row in rows)


def executing(connection: Connection) -> tuple[Proposal, ...]:
    """List what some worker has claimed and not yet recorded."""
    rows = connection.execute(sa.select(*COLUMNS).where(proposals.c.status == "executing"))
    return tuple(from_row(row) for row in rows)


def expired(connection: Connection, now: datetime, limit: int = 200) -> tuple[Proposal, ...]:
    """List proposals that waited for a decision for too long."""
    rows = connection.execute(
        sa.select(*COLUMNS)
        .where(proposals.c.status == "proposed", proposals.c.expires_at <= now)
        .order_by(proposals.c.created_at)
        .limit(limit)
    )
    return tuple(from_row(row) for row in rows)


def under_way_on_node(connection: Connection, proposal: Proposal) -> Proposal | None:
    """Find another action that is decided and not finished on the same node."""
    row = connection.execute(
        sa.select(*COLUMNS)
        .where(
            proposals.c.status.in_(("approved", "executing")),
            proposals.c.cluster == proposal.cluster,
            proposals.c.node_name == proposal.node_name,
            proposals.c.id != proposal.id,
        )
        .limit(1)
    ).first()
    return None if row is None else from_row(row)


def newest_action_on_node(connection: Connection, cluster: str, node_name: str) -> Proposal | None:
    """Find the newest cordon or uncordon of a node that was sent, whatever case it belongs to."""
    row = connection.execute(
        sa.select(*COLUMNS)
        .where(
            proposals.c.cluster == cluster,
            proposals.c.node_name == node_name,
            proposals.c.action.in_(("cordon", "uncordon")),
            proposals.c.status.in_(("verified", "accepted", "unknown")),
        )
        .order_by(proposals.c.finished_at.desc(), proposals.c.id)
        .limit(1)
    ).first()
    return None if row is None else from_row(row)


def due_for_a_look(
    connection: Connection, now: datetime, limit: int, without: Collection[str] = ()
) -> tuple[tuple[int, str], ...]:
    """List what was ordered and is to be looked for now, with its cluster, the longest due first.

    `without` names clusters that are left out.
    """
    rows = connection.execute(
        sa.select(proposals.c.id, proposals.c.cluster)
        .where(
            proposals.c.status.in_(("accepted", "waiting", "unknown")),
            proposals.c.next_look_at <= now,
            proposals.c.cluster.not_in(without),
        )
        .order_by(proposals.c.next_look_at, proposals.c.id)
        .limit(limit)
    )
    return tuple((row.id, row.cluster) for row in rows)


def others_since(
    connection: Connection, proposal: Proposal, actions: Collection[str], since: datetime
) -> int:
    """Count other orders of some kinds for the same cluster that were sent since a time."""
    return int(
        connection.execute(
            sa.select(sa.func.count()).where(
                proposals.c.cluster == proposal.cluster,
                proposals.c.action.in_(actions),
                proposals.c.status.in_(("executing", "accepted", "waiting", "verified", "unknown")),
                proposals.c.claimed_at >= since,
                proposals.c.id != proposal.id,
            )
        ).scalar_one()
    )
