"""What was known of a machine when something was ordered for it, and which one came after it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.actions.orders.ports import Link
from app.actions.reaching import port_of, provider_of
from app.cluster.errors import ClusterError
from app.cluster.ports import NodeState
from app.cluster.provider.ports import Machine, ProviderEvent
from app.context import Context
from app.store.proposals import Proposal

KUBERNETES_NAME = "hyperpod-"
"""On EKS a node's name is this and the instance id."""
CLOCKS = timedelta(minutes=2)
"""By so much the provider's clock and ours may differ."""


@dataclass(frozen=True, slots=True)
class Successor:
    """The machine that came after another; `node` None where Kubernetes knows none yet."""

    link: Link
    machine: Machine
    node: NodeState | None


def before(machine: Machine, members: Sequence[Machine]) -> dict[str, Any]:
    """Keep what a later look needs: what it was, and who was there beside it."""
    return {
        "group": machine.group,
        "logical_id": machine.logical_id,
        "host": machine.host,
        "status": machine.status,
        "launched_at": machine.launched_at.isoformat() if machine.launched_at else None,
        # Thousands of ids in a row would be too many; a newer launch tells as much.
        "members": len(members),
        "newest_launch": max(
            (one.launched_at.isoformat() for one in members if one.launched_at), default=None
        ),
    }


def sent_at(proposal: Proposal) -> datetime:
    """Give a time before which the order had no effect."""
    return (proposal.claimed_at or proposal.decided_at or proposal.created_at) - CLOCKS


def successor(
    context: Context, proposal: Proposal, known: Mapping[str, Any], *, alone: bool
) -> Successor | None:
    """Find the machine that took the place of the proposal's; None: it has not come, or is unclear.

    `alone` tells that no other order is under way in this group: only then, and once the group is
    as large as before, the one new machine must be the successor. Raises what the provider raises.
    """
    provider = provider_of(context, proposal.cluster)
    old = proposal.instance_id or ""
    group = known.get("group")
    others = [one for one in provider.machines(group) if one.instance_id != old]
    new = [one for one in others if one.launched_at and one.launched_at >= sent_at(proposal)]
    found = _by_logical_id(known, others) or _by_host(known, new)
    if found is None:
        found = _by_event(provider.events(None, sent_at(proposal)), old, others)
    if found is None and alone and len(new) == 1 and _is_full(known, others):
        found = new[0], "only_new_one"
    if found is None:
        return None
    machine, how = found
    node = _node_of(context, proposal, machine)
    link = Link(old, machine.instance_id, how, proposal.node_name, node.name if node else None)
    return Successor(link, machine, node)


def _is_full(known: Mapping[str, Any], others: Sequence[Machine]) -> bool:
    """Tell whether the group is as large again as before the order.

    One short, the new machine may be in the place of another that the platform replaced by itself.
    Where nothing was kept before the order, not even the group, nobody can tell.
    """
    return bool(known.get("group")) and len(others) >= int(known.get("members") or len(others) + 1)


def _by_logical_id(known: Mapping[str, Any], others: Sequence[Machine]) -> Any:
    logical = known.get("logical_id")
    if not logical:
        return None
    return next(((one, "logical_id") for one in others if one.logical_id == logical), None)


def _by_host(known: Mapping[str, Any], new: Sequence[Machine]) -> Any:
    """On Slurm the replacement keeps the host name; elsewhere a host name is never used again."""
    host = known.get("host")
    if not host:
        return None
    return next(((one, "same_name") for one in new if one.host == host), None)


def _by_event(events: Sequence[ProviderEvent], old: str, others: Sequence[Machine]) -> Any:
    """Read the link out of an event that names both."""
    known = {one.instance_id: one for one in others}
    for event in events:
        if old not in event.words and event.instance_id != old:
            continue
        named = [one for key, one in known.items() if key in event.words]
        if len(named) == 1:
            return named[0], "event"
    return None


def _node_of(context: Context, proposal: Proposal, machine: Machine) -> NodeState | None:
    port = port_of(context, proposal.cluster)
    try:
        return port.node(f"{KUBERNETES_NAME}{machine.instance_id}")
    except ClusterError:
        return None
