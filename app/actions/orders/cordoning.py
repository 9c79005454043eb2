"""How are a cordon and its undoing sent, and how is it seen that they stand?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.actions import slices
from app.actions.orders.ports import Sight
from app.actions.reaching import another_instance, port_of, request_of
from app.cluster.drift import is_another_machine
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.outcomes import outcome_of
from app.cluster.ports import ActionResult, NodeState, Outcome, Standing
from app.context import Context
from app.store.proposals import Proposal


def refused_at_a_look(context: Context, proposal: Proposal) -> ActionResult | None:
    """Read the node once more; None: nothing was found that forbids the order."""
    request = request_of(proposal)
    try:
        state = port_of(context, proposal.cluster).node(request.node)
    except ClusterNotConfigured:
        return None  # the order says the same in words, as a dry run or as a failure
    except ClusterError as error:
        return outcome_of(error, request.node)
    other = another_instance(state, proposal)
    if other is not None:
        return ActionResult(Outcome.REFUSED, f"{other} Nothing was changed.", state)
    return None


def not_the_approved(state: NodeState, proposal: Proposal) -> ActionResult | None:
    """Refuse what destroys on a node that is not certainly the approved one; None: it is.

    Names come back with another machine behind them: a node without a uid or an instance that was
    approved could be any.
    """
    if proposal.node_uid:
        if not is_another_machine(state, proposal.node_uid):
            return None
        words = f"Another machine carries the name {state.name} now."
    elif proposal.instance_id and state.instance_id == proposal.instance_id:
        return None
    else:
        words = f"Nothing says which machine was approved under the name {state.name}."
    return ActionResult(Outcome.REFUSED, f"{words} Nothing was sent.", state)


class Cordon:
    """Unschedulable, our taint, our note."""

    stuck_after = timedelta(minutes=5)
    look_every = timedelta(seconds=15)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Cordon the node, once."""
        refused = refused_at_a_look(context, proposal)
        if refused is not None:
            return refused
        return port_of(context, proposal.cluster).cordon(request_of(proposal))

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read whether the cordon stands; of an unknown outcome only its own note is proof."""
        request = request_of(proposal)
        check = port_of(context, proposal.cluster).verify_cordon(request)
        if check.standing is Standing.HOLDS and check.state is not None:
            ours = check.state.our_cordon
            if ours is not None and ours.proposal == request.proposal:
                rest = _rest_of_slice(context, proposal, check.state)
                return Sight("verified", check.message, check.state, rest)
        if check.standing in (Standing.GONE, Standing.REPLACED):
            return Sight("gone", check.message, check.state)
        return Sight(None, check.message, check.state)


def _rest_of_slice(context: Context, proposal: Proposal, state: NodeState) -> dict[str, Any]:
    """Name the other hosts of a TPU slice; nothing for any other node."""
    if not slices.is_of_many_hosts(state):
        return {}
    try:
        found = slices.others(state, port_of(context, proposal.cluster).nodes())
    except ClusterError:
        return {}  # the cordon stands all the same
    return {slices.SLICE: found} if found else {}


class Uncordon:
    """Our marks off the node, and nobody else's."""

    stuck_after = timedelta(minutes=5)
    look_every = timedelta(seconds=15)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Lift our cordon, once."""
        refused = refused_at_a_look(context, proposal)
        if refused is not None:
            return refused
        return port_of(context, proposal.cluster).uncordon(request_of(proposal))

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Read whether anything of ours is left on the node."""
        try:
            state = port_of(context, proposal.cluster).node(proposal.node_name or "")
        except NodeGone as error:
            return Sight("gone", error.message)
        except ClusterError as error:
            return Sight(None, error.message)
        if state.our_cordon is None and not state.has_our_taint:
            return Sight("verified", f"Nothing of ours is on {state.name}.", state)
        return Sight(None, f"Our cordon is still on {state.name}.", state)
