"""How is the host of a TPU machine reported as computing wrong, and how far is the repair?

The unit is the slice: its hosts recover only together, so a report ends the work on all of them.
The machine can come back on the same host, repaired; the GPU or chip is what stays under watch.
"""

from __future__ import annotations

from datetime import timedelta

from app.actions import intent
from app.actions.orders.cordoning import not_the_approved, refused_at_a_look
from app.actions.orders.looking_at import OUTCOMES
from app.actions.orders.ports import Sight
from app.actions.reaching import port_of, provider_of
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.outcomes import outcome_of
from app.cluster.ports import ActionResult, Outcome
from app.cluster.provider.gke import OPERATION
from app.cluster.provider.ports import HostReporter
from app.context import Context
from app.store import ids
from app.store.proposals import Proposal

PROVIDER_ID = "provider_id"


class ReportHost:
    """Tells Compute Engine to repair the host."""

    stuck_after = timedelta(hours=2)
    look_every = timedelta(minutes=1)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look at the node once more, then report its host, once."""
        refused = refused_at_a_look(context, proposal)
        if refused is not None:
            return refused
        provider = provider_of(context, proposal.cluster)
        if not isinstance(provider, HostReporter):
            dry = provider.status().kind == "dry run"
            words = f"No project of Compute Engine is configured for {proposal.cluster}."
            kind = Outcome.DRY_RUN if dry else Outcome.REFUSED
            return ActionResult(kind, f"{words} Nothing was sent.")
        try:
            node = port_of(context, proposal.cluster).node(proposal.node_name or "")
        except ClusterNotConfigured as error:
            return ActionResult(Outcome.FAILED, f"{error.message} Nothing was sent.")
        except ClusterError as error:
            return outcome_of(error, proposal.node_name or "")
        if node.is_control_plane:
            words = f"{node.name} is a control-plane node: nothing is ordered for it from here."
            return ActionResult(Outcome.REFUSED, words, node)
        other = not_the_approved(node, proposal)
        if other is not None:
            return other
        kept = {PROVIDER_ID: node.provider_id or ""}
        held = intent.hold(context, proposal, kept)
        if held is not None:
            return held
        answer = provider.report_host(node.provider_id, proposal.why, ids.show(proposal.id))
        details = {**kept, **answer.details}
        return ActionResult(OUTCOMES[answer.answer], answer.message, node, False, details)

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read how far the report is; of a lost answer only the node's going tells something."""
        operation = str(proposal.details.get(OPERATION) or "")
        provider = provider_of(context, proposal.cluster)
        if operation and isinstance(provider, HostReporter):
            try:
                report = provider.look_report(proposal.details.get(PROVIDER_ID), operation)
            except ClusterError as error:
                return Sight(None, error.message)
            if report.status != "DONE":
                return Sight("waiting", f"The report is {report.status or 'under way'}.")
            if report.error:
                return Sight("failed", f"The host could not be reported: {report.error}.")
            return Sight("verified", "The host is reported; its repair is the provider’s.")
        return self._node(context, proposal)

    def _node(self, context: Context, proposal: Proposal) -> Sight:
        try:
            node = port_of(context, proposal.cluster).node(proposal.node_name or "")
        except NodeGone:
            words = "The node left the cluster; whether by this report is not known."
            return Sight(None, words)
        except ClusterError as error:
            return Sight(None, error.message)
        return Sight(None, f"{node.name} is there, and nothing shows a report about it.", node)
