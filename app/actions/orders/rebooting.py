"""How is a machine restarted, and how is it seen that it was? A restart repairs nothing."""

from __future__ import annotations

from datetime import timedelta

from app.actions.orders import looking_at, sending
from app.actions.orders.looking_at import Found, boot_id
from app.actions.orders.ports import Sight
from app.actions.orders.sending import MachineOrder
from app.actions.reaching import provider_of
from app.cluster.errors import ClusterError, MachineGone
from app.cluster.label_orders import HEALTH_STATUS, PENDING_REBOOT, PENDING_REPLACEMENT
from app.cluster.ports import ActionResult, LabelOrder, NodeState, Outcome
from app.cluster.provider.ports import RUNNING, SHUTTING_DOWN, TESTING
from app.context import Context
from app.store.proposals import Proposal

SEEN_DOWN = "seen_down"
# Other things that are done to a machine: they tell nothing of a restart.
NOT_DOWN = (TESTING, "SystemUpdating", "AttachInProgress", "DetachInProgress")


class Reboot:
    """Restarts the machine; what is in memory is lost, volumes stay."""

    stuck_after = timedelta(minutes=45)
    look_every = timedelta(seconds=30)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Look at node, machine and cluster once more, then order the restart, once."""
        return sending.send(context, proposal, ORDER)

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read whether the kernel started anew; a machine that merely runs proves nothing."""
        try:
            machine = provider_of(context, proposal.cluster).machine(proposal.instance_id or "")
        except MachineGone:
            words = f"{proposal.instance_id} is gone: it was replaced or taken away, not restarted."
            return Sight("gone", words)
        except ClusterError as error:
            return Sight(None, error.message)
        node = looking_at.node_or_none(context, proposal)
        if machine.status != RUNNING:
            down = {} if machine.status in NOT_DOWN else {SEEN_DOWN: True}
            return Sight("waiting", f"{machine.instance_id} is {machine.status}.", node, down)
        sight = _running(proposal, machine.instance_id, node)
        over = looking_at.nothing_came(context, proposal, machine, self.stuck_after)
        return over if over is not None and sight.status is None else sight


def _running(proposal: Proposal, instance: str, node: NodeState | None) -> Sight:
    known, now = looking_at.kept(proposal).get("boot_id"), boot_id(node)
    if known and now and known != now:
        if node is not None and node.ready:
            words = f"{instance} started anew and is ready. A restart is no repair."
            return Sight("verified", words, node)
        return Sight("waiting", f"{instance} started anew and is not ready yet.", node)
    if node is not None and node.labels.get(HEALTH_STATUS) == PENDING_REBOOT:
        return Sight("waiting", f"{instance} is marked for a reboot.", node)
    if proposal.details.get(SEEN_DOWN) and not known:
        words = f"{instance} was seen down and runs again. A restart is no repair."
        return Sight("verified", words, node)
    return Sight(None, f"{instance} runs, and nothing shows that it started anew.", node)


def _platform_does(found: Found) -> ActionResult | None:
    """Say that the platform does something already; None: it does nothing that we can see."""
    machine, node = found.machine, found.node
    label = node.labels.get(HEALTH_STATUS) if node else None
    if label == PENDING_REBOOT:
        words = f"Already under way: the platform is restarting {machine.instance_id}."
        return ActionResult(
            Outcome.UNDER_WAY, f"{words} Nothing was sent.", node, False, found.kept
        )
    if label == PENDING_REPLACEMENT or machine.status == SHUTTING_DOWN:
        words = f"The platform is replacing {machine.instance_id}. Nothing was sent."
        return ActionResult(Outcome.REFUSED, words, node)
    if machine.status == TESTING:
        words = f"A deep health check of {machine.instance_id} is under way. Nothing was sent."
        return ActionResult(Outcome.REFUSED, words, node)
    return None


ORDER = MachineOrder(
    "Reboot", LabelOrder.REBOOT, lambda provider, ids: provider.reboot(ids), _platform_does
)
