"""How does an approved action reach its cluster and provider, and is it the same machine?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.cluster.drift import is_another_machine
from app.cluster.dry_run import DryRunCluster
from app.cluster.ports import ClusterPort, CordonRequest, NodeState
from app.cluster.provider.dry_run import DryRunProvider
from app.cluster.provider.ports import Machine, ProviderPort
from app.context import Context
from app.store import ids
from app.store.proposals import Proposal


def port_of(context: Context, cluster: str) -> ClusterPort:
    """Give the cluster of this name, a dry run where none is configured."""
    return context.clusters.get(cluster) or DryRunCluster(cluster)


def provider_of(context: Context, cluster: str) -> ProviderPort:
    """Give whoever owns the machines of this cluster, a dry run where none is configured."""
    return context.providers.get(cluster) or DryRunProvider(cluster)


def request_of(proposal: Proposal) -> CordonRequest:
    """Write down what an approval asks of the cluster."""
    return CordonRequest(
        node=proposal.node_name or "",
        expect_uid=proposal.node_uid,
        case=ids.show(proposal.case_id),
        proposal=ids.show(proposal.id),
        by=proposal.decided_by or "nobody",
        reason=proposal.why,
        at=proposal.decided_at or proposal.created_at,
        evidence_version=str(proposal.evidence_version),
    )


def another_instance(state: NodeState, proposal: Proposal) -> str | None:
    """Say that the name belongs to another instance than the case means; None: nothing says so."""
    if not proposal.instance_id or not state.instance_id:
        return None
    if state.instance_id == proposal.instance_id:
        return None
    return (
        f"Another machine carries the name {state.name} now: instance {state.instance_id}, "
        f"the case means {proposal.instance_id}."
    )


def may_be_its(state: NodeState, proposal: Proposal) -> bool:
    """Tell whether a reading is of the proposal's machine, by its instance, else by its uid.

    What was read of another machine under the name must never be kept as this one's: the next
    approval would be bound to it.
    """
    if proposal.instance_id and state.instance_id:
        return state.instance_id == proposal.instance_id
    return not is_another_machine(state, proposal.node_uid)


def another_machine(machine: Machine, proposal: Proposal) -> str | None:
    """Say that the instance is not what was approved; None: nothing says so.

    A machine that was moved to another cluster and back, or rebuilt under its id, was launched
    at another time.
    """
    seen, now = proposal.lineage.get("launched_at"), machine.launched_at
    if seen and now and str(seen) != now.isoformat():
        return f"{machine.instance_id} was launched at {now:%Y-%m-%d %H:%M:%S} UTC, not at {seen}."
    logical = proposal.lineage.get("logical_id")
    if logical and machine.logical_id and logical != machine.logical_id:
        return f"{machine.instance_id} is {machine.logical_id} now, it was {logical}."
    return None


def cordon_of(state: NodeState) -> str:
    """Name whose cordon a reading shows: "ours", "other" or "none"."""
    if state.our_cordon is not None and state.unschedulable:
        return "ours"
    return "other" if state.unschedulable else "none"


def describe(state: NodeState | None) -> Mapping[str, Any] | None:
    """Keep of a reading what a later reader of the audit needs."""
    if state is None:
        return None
    return {
        "name": state.name,
        "uid": state.uid,
        "unschedulable": state.unschedulable,
        "taints": [f"{taint.key}:{taint.effect}" for taint in state.taints],
        "cordon": cordon_of(state),
        "cordoned_by_other": state.cordoned_by_other,
        "resource_version": state.resource_version,
    }
