"""In which way is a replacement carried out, where nobody chose one?

GKE replaces no machine by name: a GPU node is labelled for repair, a TPU host is reported. What the
node itself says decides, and is kept with the approval.
"""

from __future__ import annotations

from dataclasses import replace

from app.cluster.label_orders import TPU
from app.cluster.ports import NodeState
from app.store.proposals import Proposal

POOL = "cloud.google.com/gke-nodepool"
WAY = "way"
API = "api"


def of_node(state: NodeState | None) -> str | None:
    """Name the way that a node needs; None: nothing about it asks for another than the API."""
    if state is None or POOL not in state.labels:
        return None
    return "gke_host" if TPU in state.labels else "gke_label"


def way_of(proposal: Proposal) -> str:
    """Name the way of an action: as was asked for, else as the approved machine needs it."""
    return str(proposal.parameters.get(WAY) or proposal.lineage.get(WAY) or API)


def as_needed(proposal: Proposal, state: NodeState | None) -> Proposal:
    """Show a replacement that nobody chose a way for in the way that its node needs."""
    way = of_node(state)
    if proposal.action != "replace" or way is None or proposal.parameters.get(WAY):
        return proposal
    return replace(proposal, parameters={**proposal.parameters, WAY: way})
