"""How much of each limit does one more action use, by what the store knows at this moment?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.store import node_places, rail_counts
from app.store.connection import Connection
from app.store.node_places import FleetRead, Place
from app.store.proposals import Proposal
from app.store.rail_counts import Act, NodeKey
from witness.rules.rail_policy import RailPolicy
from witness.rules.rails import Counts, effect_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# The attempts of a row that a worker took up, whatever came of it afterwards.
_TRIED = ("executing", "accepted", "waiting", "verified", "unknown", "failed")


@dataclass(frozen=True, slots=True)
class Seen:
    """Counts with what they rest on."""

    counts: Counts
    place: Place | None
    fleet: FleetRead | None  # None: never read, or too long ago


@dataclass(frozen=True, slots=True)
class Asked:
    """One more action on one node; a node None: nothing in particular, so everything counts."""

    cluster: str
    action: str
    node_name: str | None = None
    instance_id: str | None = None
    proposal_id: int = 0

    @property
    def node(self) -> NodeKey:
        """Name the node as the counts do."""
        return self.cluster, self.node_name or self.instance_id or str(self.proposal_id)


def asked_of(proposal: Proposal) -> Asked:
    """Give what a proposal asks for."""
    return Asked(
        proposal.cluster, proposal.action, proposal.node_name, proposal.instance_id, proposal.id
    )


def count(connection: Connection, asked: Asked, policy: RailPolicy, now: datetime) -> Seen:
    """Count what is out of service beside the node that is asked for."""
    cluster, name, instance_id = asked.cluster, asked.node_name, asked.instance_id
    others = _others(rail_counts.out_now(connection), asked)
    lately = _others(rail_counts.decided_since(connection, now - DAY), asked)
    mine = rail_counts.on_node(connection, cluster, name, instance_id)
    place = node_places.of_node(connection, cluster, name, instance_id)
    fleet = node_places.fleet(connection, cluster)
    if fleet is not None and now - fleet.read_at > timedelta(hours=policy.fleet_hours):
        fleet = None
    ours = {one.node[1] for one in others if one.cluster == cluster}
    out = node_places.out_of_service(connection, cluster, ours)
    out.pop(asked.node[1], None)
    beside = [one for one in mine if one.id != asked.proposal_id]
    counts = Counts(
        out=_nodes(others),
        out_in_cluster=len(ours | set(out)),
        destroying_in_cluster=_nodes(
            one for one in others if one.destroys and one.cluster == cluster
        ),
        fleet=fleet.gpu_nodes if fleet else None,
        dry_run=fleet is not None and fleet.source == "dry run",
        last_hour=_nodes(one for one in lately if one.decided_at and one.decided_at > now - HOUR),
        last_day=_nodes(lately),
        attempts=_attempts(beside, asked.action, policy, now),
        rests_minutes=_rests(beside, now),
        **_where(place, out),
    )
    return Seen(counts, place, fleet)


def _others(acts: Iterable[Act], asked: Asked) -> list[Act]:
    return [one for one in acts if not one.is_on(asked.node, asked.instance_id)]


def _nodes(acts: Iterable[Act]) -> int:
    return len({one.node for one in acts})


def _where(place: Place | None, out: Mapping[str, Place]) -> dict[str, Any]:
    """Count the nodes out of service that share a group, a zone or a closer domain."""
    if place is None:
        return {}
    found: dict[str, Any] = {}
    if place.instance_group is not None:
        found["group"] = place.instance_group
        found["out_in_group"] = sum(
            one.instance_group == place.instance_group for one in out.values()
        )
    if place.zone is not None:
        found["zone"] = place.zone
        found["out_in_zone"] = sum(one.zone == place.zone for one in out.values())
    domains = []
    if place.network is not None:
        used = sum(one.network == place.network for one in out.values())
        domains.append((f"the network node {place.network}", used))
    if place.rack is not None:
        used = sum(one.rack == place.rack for one in out.values())
        domains.append((f"the rack {place.rack}", used))
    found["domains"] = tuple(domains) or None
    return found


def _attempts(acts: Iterable[Act], action: str, policy: RailPolicy, now: datetime) -> int:
    since = now - timedelta(hours=policy.attempts_hours)
    return sum(
        one.action == action
        and one.status in _TRIED
        and one.claimed_at is not None
        and one.claimed_at > since
        for one in acts
    )


def _rests(acts: Iterable[Act], now: datetime) -> float | None:
    """Count the minutes since something destroyed the node, or may have; None: nothing did."""
    ended = [
        one.finished_at or one.claimed_at or one.decided_at
        for one in acts
        if effect_of(one.action) == "destroys"
        and one.status in ("accepted", "waiting", "verified", "unknown")
    ]
    times = [one for one in ended if one is not None]
    return (now - max(times)).total_seconds() / 60 if times else None
