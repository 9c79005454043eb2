"""How is a machine replaced, by order or by label, and how is it seen that another one came?

A replacement destroys the machine and its volumes, takes 20 to 30 minutes as a rule, and has no
token that would make a second order harmless.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.actions.orders import looking_at, sending
from app.actions.orders.looking_at import Found
from app.actions.orders.machines import Successor, sent_at, successor
from app.actions.orders.ports import Sight
from app.actions.orders.sending import MachineOrder
from app.actions.reaching import port_of, provider_of
from app.cluster.errors import ClusterError, MachineGone
from app.cluster.label_orders import HEALTH_STATUS, PENDING_REPLACEMENT
from app.cluster.ports import ActionResult, LabelOrder, Outcome
from app.cluster.provider.ports import FAILURE, RUNNING, SHUTTING_DOWN, TESTING, Machine
from app.context import Context
from app.store import proposals
from app.store.proposals import Proposal

LEAVING = (SHUTTING_DOWN, "NotFound")
KARPENTER = "Karpenter"


class Replace:
    """Terminates the machine; another takes its place."""

    stuck_after = timedelta(minutes=90)
    look_every = timedelta(seconds=30)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look at node, machine and cluster once more, then order the replacement, once."""
        return sending.send(context, proposal, ORDER)

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read whether the old machine left and what came after it."""
        provider = provider_of(context, proposal.cluster)
        try:
            machine = provider.machine(proposal.instance_id or "")
        except MachineGone:
            return self._after(context, proposal)
        except ClusterError as error:
            return Sight(None, error.message)
        if machine.status in LEAVING:
            return Sight("waiting", f"{machine.instance_id} is {machine.status}.")
        return self._still_there(context, proposal, machine)

    def _still_there(self, context: Context, proposal: Proposal, machine: Machine) -> Sight:
        words = f"{machine.instance_id} is still there: {machine.status}."
        node = looking_at.node_or_none(context, proposal)
        if node is not None and node.labels.get(HEALTH_STATUS) == PENDING_REPLACEMENT:
            return Sight("waiting", f"{words} The platform has marked it for replacement.", node)
        over = looking_at.nothing_came(context, proposal, machine, self.stuck_after)
        return over or Sight(None, words, node)

    def _after(self, context: Context, proposal: Proposal) -> Sight:
        known = looking_at.kept(proposal)
        gone = f"{proposal.instance_id} is gone."
        try:
            found = successor(context, proposal, known, alone=_is_alone(context, proposal))
            fleet = provider_of(context, proposal.cluster).fleet()
        except ClusterError as error:
            return Sight("waiting", f"{gone} What came after it is not known: {error.message}")
        if found is not None:
            told = port_of(context, proposal.cluster).status().kind != "dry run"
            return _arrived(gone, found, kubernetes=told and fleet.orchestrator != "slurm")
        if fleet.autoscaler == KARPENTER:
            words = (
                f"{gone} With Karpenter nothing comes back by itself: a new machine is made only "
                "when pods wait for one."
            )
            return Sight("verified", words, details={"autoscaler": fleet.autoscaler})
        return Sight("waiting", f"{gone} No machine is known yet to have taken its place.")


def _platform_does(found: Found) -> ActionResult | None:
    """Say that the platform does it already; None: it does nothing that we can see."""
    machine, node = found.machine, found.node
    label = node.labels.get(HEALTH_STATUS) if node else None
    if label == PENDING_REPLACEMENT or machine.status in LEAVING:
        seen = f"{HEALTH_STATUS}={label}" if label == PENDING_REPLACEMENT else machine.status
        words = f"Already under way: the platform is replacing {machine.instance_id} ({seen})."
        return ActionResult(
            Outcome.UNDER_WAY, f"{words} Nothing was sent.", node, False, found.kept
        )
    if machine.status == TESTING:
        words = f"A deep health check of {machine.instance_id} is under way. Nothing was sent."
        return ActionResult(Outcome.REFUSED, words, node)
    return None


def _arrived(gone: str, found: Successor, *, kubernetes: bool) -> Sight:
    machine, node = found.machine, found.node
    words = f"{gone} {machine.instance_id} took its place"
    details: dict[str, Any] = {"new_instance_id": machine.instance_id, "linked_by": found.link.how}
    if machine.status == FAILURE:
        said = f": {machine.message}" if machine.message else ""
        return Sight("failed", f"{words}, and failed{said}.", node, details, found.link)
    if machine.status != RUNNING:
        return Sight("waiting", f"{words} and is {machine.status}.", node, details, found.link)
    if not kubernetes:
        return Sight("verified", f"{words} and runs.", node, details, found.link)
    if node is None or not node.ready:
        words = f"{words} and runs; Kubernetes does not show it as ready yet."
        return Sight("waiting", words, node, details, found.link)
    return Sight("verified", f"{words} as {node.name}, and is ready.", node, details, found.link)


def _is_alone(context: Context, proposal: Proposal) -> bool:
    """Tell whether no other machine of this cluster was ordered away since this order."""
    with context.store.reading() as connection:
        return not proposals.others_since(connection, proposal, ("replace",), sent_at(proposal))


ORDER = MachineOrder(
    "Replacement", LabelOrder.REPLACE, lambda provider, ids: provider.replace(ids), _platform_does
)
