"""What has to be true at every call and after every step of a random walk?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from app.context import Context
from app.errors import Problem
from app.store import ids, proposals, rail_policy, run_settings, vetoes
from app.store.connection import Connection
from app.store.proposals import Proposal
from app.store.rail_counts import USED
from app.store.tables import proposals as table
from tests.approvals.house import CLUSTER
from tests.approvals.world import World
from witness.rules.rails import effect_of

STANDING = sa.select(table.c.id, table.c.status, table.c.action)
ENDINGS = {"accepted", "waiting", "verified", "refused", "failed", "gone", "unknown"}
LEGAL = {
    "proposed": {"approved", "rejected", "expired", "superseded"},
    "approved": {"executing", "refused", "superseded"},
    "executing": ENDINGS,
    "accepted": {"waiting", "verified", "refused", "failed", "gone", "unknown"},
    "waiting": {"verified", "refused", "failed", "gone", "unknown"},
    "unknown": ENDINGS - {"unknown"},
}


def _reachable(start: str) -> frozenset[str]:
    found, left = {start}, [start]
    while left:
        for one in LEGAL.get(left.pop(), set()) - found:
            found.add(one)
            left.append(one)
    return frozenset(found)


REACHABLE = {
    name: _reachable(name) for name in (*LEGAL, *ENDINGS, "rejected", "expired", "superseded")
}


class Checks:
    """Holds what is true of every walk."""

    def __init__(self, context: Context, world: World, connection: Connection) -> None:
        self.context = context
        self.world = world
        self.connection = connection
        self.called: dict[int, tuple[str, str, datetime]] = {}
        self.before: dict[int, str] = {}
        self.undos = 0

    def call(self, action: str, shown: str, node: str) -> None:
        """Hold what is true when something is sent."""
        row = proposals.get(self.connection, ids.read(shown))
        assert row is not None
        assert row.status == "executing", row.status
        assert row.id not in self.called, "a second call for one proposal"
        assert row.action == action
        self.called[row.id] = (action, node, row.decided_at or self.world.time)
        if effect_of(action) == "undoes":
            return
        brake = run_settings.brake(self.connection)
        assert not brake.pulled, "sent while the brake is pulled"
        assert row.decided_at is not None
        if brake.changed_at is not None:
            assert row.decided_at > brake.changed_at, "an old queue runs after the release"
        assert row.execute_by is not None
        assert self.world.time <= row.execute_by, "a stale approval was sent"
        now = self.world.time
        veto = vetoes.holding(self.connection, CLUSTER, node, row.instance_id, now)
        assert veto is None, "sent against a veto"
        self._caps(row, node)

    def _caps(self, row: Proposal, node: str) -> None:
        limits = rail_policy.read(self.connection)
        out = {one.name for one in self.world.boxes.values() if one.ours or one.ordered}
        assert len(out | {node}) <= limits.max_nodes, "more out than the cap"
        ordered = {one.name for one in self.world.boxes.values() if one.ordered}
        if row.destroys:
            share = max(1, int(limits.max_destroyed_share * len(self.world.boxes) + 1e-9))
            assert len(ordered | {node}) <= max(share, 2), "more destroyed than the share"
        since = self.world.time - timedelta(hours=1)
        lately = {
            place
            for row_id, (action, place, at) in self.called.items()
            if effect_of(action) != "undoes" and at > since and self._counts(row_id)
        }
        assert len(lately | {node}) <= limits.max_per_hour, "more in an hour than the cap"

    def _counts(self, row_id: int) -> bool:
        row = proposals.get(self.connection, row_id)
        return row is not None and row.status in USED

    def after(self, step: str) -> None:
        """Hold what is true between two steps."""
        rows = list(self.connection.execute(STANDING))
        now = {row.id: row.status for row in rows}
        for row_id, status in now.items():
            before = self.before.get(row_id, "proposed")
            assert status in REACHABLE[before] or row_id not in self.before, (step, before, status)
        self.before = now
        waits = any(row.status == "approved" and row.action != "uncordon" for row in rows)
        if waits:
            pulled = run_settings.brake(self.connection).pulled
            assert not pulled, "something waits to be sent while the brake is pulled"
        assert "executing" not in now.values(), "a claim that nobody holds was not given up"

    def undone(self, cordon: Proposal, lift: Callable[[Proposal], Problem | None]) -> None:
        """Hold that a cordon can be lifted, whatever the rails say, unless it was already."""
        problem = lift(cordon)
        self.undos += problem is None
        if problem is None or problem.code == "already_decided":
            return
        same = sa.or_(
            table.c.node_name == cordon.node_name, table.c.instance_id == cordon.instance_id
        )
        on_its_way = self.connection.execute(
            sa.select(table.c.id).where(
                table.c.action == "uncordon", table.c.status.in_(("approved", "executing")), same
            )
        ).first()
        assert problem.code == "node_busy", problem.message
        assert on_its_way is not None, problem.message
