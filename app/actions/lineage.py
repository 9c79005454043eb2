"""Which machine exactly is it that an approval is about?"""

from __future__ import annotations

from collections.abc import Mapping

from app.actions import ways
from app.actions.reaching import port_of, provider_of
from app.cluster.errors import ClusterError
from app.cluster.ports import NodeState
from app.cluster.provider.ports import Machine
from app.context import Context
from app.store.proposals import Proposal

Lineage = Mapping[str, str]
"""node, node_uid, instance_id, logical_id, launched_at (ISO), way; unknown ones are left out."""


def lineage_of(
    proposal: Proposal, state: NodeState | None = None, machine: Machine | None = None
) -> Lineage:
    """Put together what was read of a machine; what was not read is not in it."""
    launched = machine.launched_at if machine else None
    known = {
        "node": proposal.node_name,
        "node_uid": (state.uid if state else None) or proposal.node_uid,
        "instance_id": proposal.instance_id or (state.instance_id if state else None),
        "logical_id": machine.logical_id if machine else None,
        "launched_at": launched.isoformat() if launched else None,
        ways.WAY: ways.of_node(state) if proposal.action == "replace" else None,
    }
    return {name: value for name, value in known.items() if value}


def read_lineage(context: Context, proposal: Proposal) -> Lineage:
    """Read a machine now, at its cluster and at its provider; one that is silent adds nothing."""
    state: NodeState | None = None
    machine: Machine | None = None
    if proposal.node_name:
        try:
            state = port_of(context, proposal.cluster).node(proposal.node_name)
        except ClusterError:
            state = None
    if proposal.instance_id:
        try:
            machine = provider_of(context, proposal.cluster).machine(proposal.instance_id)
        except ClusterError:
            machine = None
    return lineage_of(proposal, state, machine)
