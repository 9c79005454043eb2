"""How is a GPU node of GKE handed over for repair, and how is it seen how far that is?

The label makes the provider evict the node, report its host and repair it, which takes days; the
machine's local disks are lost. TPU hosts are reported another way, by the slice.
"""

from __future__ import annotations

from datetime import timedelta

from app.actions import intent
from app.actions.orders.cordoning import not_the_approved, refused_at_a_look
from app.actions.orders.ports import Sight
from app.actions.reaching import port_of, request_of
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.label_orders import FAULT_BEHAVIOR, REPORT_STATUS
from app.cluster.outcomes import outcome_of
from app.cluster.ports import ActionResult, LabelOrder
from app.context import Context
from app.store.proposals import Proposal

DONE = "OperationDone"
ENDED_BADLY = ("error", "fail")


class ReportByLabel:
    """Labels the node as computing wrong; the provider does the rest."""

    stuck_after = timedelta(hours=2)  # the report takes 10 to 12 minutes, the repair days
    look_every = timedelta(minutes=1)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look at the node once more, then set the label, once."""
        refused = refused_at_a_look(context, proposal)
        if refused is not None:
            return refused
        port = port_of(context, proposal.cluster)
        try:
            other = not_the_approved(port.node(proposal.node_name or ""), proposal)
        except ClusterNotConfigured:
            other = None  # the order says so in words
        except ClusterError as error:
            other = outcome_of(error, proposal.node_name or "")
        # A worker that slept, and whose row was given up meanwhile, sends nothing.
        held = other or intent.hold(context, proposal, {})
        return held or port.order(request_of(proposal), LabelOrder.REPORT_SDC)

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read how far the provider says that it is."""
        try:
            state = port_of(context, proposal.cluster).node(proposal.node_name or "")
        except NodeGone:
            if proposal.status == "waiting":
                words = "The node left the cluster after it was reported: its host is in repair."
                return Sight("verified", words)
            return Sight("gone", f"The cluster knows no node {proposal.node_name}.")
        except ClusterError as error:
            return Sight(None, error.message)
        if proposal.node_uid and state.uid != proposal.node_uid:
            words = (
                f"Another machine carries the name {state.name} now: the old one was taken away."
            )
            return Sight("verified" if proposal.status == "waiting" else "gone", words, state)
        said = state.labels.get(REPORT_STATUS)
        if said is None:
            word = "carries" if FAULT_BEHAVIOR in state.labels else "does not carry"
            return Sight(None, f"{state.name} {word} the label; no progress is shown.", state)
        if said == DONE:
            words = f"The host of {state.name} is reported ({said}). Its repair takes days."
            return Sight("verified", words, state)
        if said.lower().startswith(ENDED_BADLY):
            return Sight("failed", f"The provider could not report {state.name}: {said}.", state)
        return Sight("waiting", f"The provider reports {state.name}: {said}.", state)
