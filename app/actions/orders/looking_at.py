"""What is looked at before a machine is touched, and what do the provider's answers become?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.actions.orders.machines import before, sent_at
from app.actions.orders.ports import Sight
from app.actions.reaching import another_instance, another_machine, port_of, provider_of
from app.cluster.drift import is_another_machine
from app.cluster.errors import ClusterError, ClusterNotConfigured, MachineGone, NodeGone
from app.cluster.outcomes import outcome_of
from app.cluster.ports import ActionResult, NodeState, Outcome
from app.cluster.provider.ports import RUNNING, Answer, Fleet, Machine, MachineAnswer
from app.context import Context
from app.store.proposals import Proposal
from witness.rules.identity import instance_id

BEFORE = "before"
OUTCOMES = {
    Answer.ACCEPTED: Outcome.ACCEPTED,
    Answer.UNDER_WAY: Outcome.UNDER_WAY,
    Answer.REFUSED: Outcome.REFUSED,
    Answer.GONE: Outcome.GONE,
    Answer.FAILED: Outcome.FAILED,
    Answer.UNKNOWN: Outcome.UNKNOWN,
    Answer.DRY_RUN: Outcome.DRY_RUN,
}


@dataclass(frozen=True, slots=True)
class Found:
    """Machine, cluster and node right before an order; `node` None: not in Kubernetes."""

    machine: Machine
    fleet: Fleet
    node: NodeState | None
    kept: Mapping[str, Any]


def look_before(context: Context, proposal: Proposal) -> Found | ActionResult:
    """Look at everything that an approval is bound to; an `ActionResult` says why not to order."""
    wanted = instance_id(None, proposal.instance_id, None)
    if wanted is None:
        words = "No instance id of the form i- and 8 or 17 hex digits is known. Nothing was sent."
        return ActionResult(Outcome.REFUSED, words)
    node = _node(context, proposal)
    if isinstance(node, ActionResult):
        return node
    provider = provider_of(context, proposal.cluster)
    try:
        machine = provider.machine(wanted)
        fleet = provider.fleet()
        members = provider.machines(machine.group)
    except MachineGone as error:
        if node is not None:
            # One "not found" beside a node that is there may be a slip; it ends nothing for good.
            words = f"{error.message} Kubernetes still shows {node.name}. Nothing was sent."
            return ActionResult(Outcome.FAILED, words, node, details={"retry": "offered"})
        return ActionResult(Outcome.GONE, f"The node is gone: {error.message}")
    except ClusterNotConfigured as error:
        kind = Outcome.DRY_RUN if provider.status().kind == "dry run" else Outcome.FAILED
        return ActionResult(kind, f"{error.message} Nothing was sent.", node)
    except ClusterError as error:
        return ActionResult(Outcome.FAILED, f"{error.message} Nothing was sent.", node)
    other = another_machine(machine, proposal)
    if other is not None:
        words = f"Another machine than the one approved: {other} Nothing was sent."
        return ActionResult(Outcome.REFUSED, words, node)
    return Found(machine, fleet, node, {BEFORE: before(machine, members) | _boot(node)})


def _boot(node: NodeState | None) -> dict[str, Any]:
    """Keep what changes with every start of a machine's kernel."""
    boot = boot_id(node)
    return {"boot_id": boot} if boot else {}


def boot_id(node: NodeState | None) -> str | None:
    """Give the id of the running kernel's start; None where the node does not tell."""
    info = (node.raw.get("status") or {}).get("nodeInfo") or {} if node else {}
    boot = info.get("bootID") if isinstance(info, Mapping) else None
    return str(boot) if boot else None


def _node(context: Context, proposal: Proposal) -> NodeState | ActionResult | None:
    """Read the node; None where Kubernetes is not asked, or does not know it any more.

    A node that has left Kubernetes may still be a machine of the provider's, and cost money.
    """
    if not proposal.node_name:
        return None
    try:
        node = port_of(context, proposal.cluster).node(proposal.node_name)
    except (ClusterNotConfigured, NodeGone):
        return None
    except ClusterError as error:
        return outcome_of(error, proposal.node_name)
    if is_another_machine(node, proposal.node_uid) and node.instance_id != proposal.instance_id:
        words = f"Another machine carries the name {node.name} now. Nothing was sent."
        return ActionResult(Outcome.REFUSED, words, node)
    other = another_instance(node, proposal)
    if other is not None:
        return ActionResult(Outcome.REFUSED, f"{other} Nothing was sent.", node)
    if node.is_control_plane:
        words = f"{node.name} is a control-plane node: nothing is ordered for it from here."
        return ActionResult(Outcome.REFUSED, f"{words} Nothing was sent.", node)
    return node


def label_does_nothing(found: Found) -> ActionResult:
    """Refuse to set a label on which nobody acts."""
    mode = found.fleet.node_recovery or "not known"
    words = f"The label does nothing: automatic node recovery is {mode}. Nothing was sent."
    return ActionResult(Outcome.REFUSED, words, found.node)


def node_or_none(context: Context, proposal: Proposal) -> NodeState | None:
    """Read the proposal's node where that is possible."""
    if not proposal.node_name:
        return None
    try:
        return port_of(context, proposal.cluster).node(proposal.node_name)
    except ClusterError:
        return None


def nothing_came(
    context: Context, proposal: Proposal, machine: Machine, lasts: timedelta
) -> Sight | None:
    """Say that what others had under way, and we never ordered, did not come about; None: it may.

    A machine that is in use can be in use for anything: without an end its node would stay closed
    to every other order.
    """
    old = context.now() - sent_at(proposal) > lasts
    if proposal.result != Outcome.UNDER_WAY or machine.status != RUNNING or not old:
        return None
    words = f"{machine.instance_id} runs: what was under way was something else, or came to nothing"
    return Sight("failed", f"{words}. Nothing was ordered from here.", details={"retry": "offered"})


def kept(proposal: Proposal) -> Mapping[str, Any]:
    """Give what was kept of the machine before the order; empty where nothing was.

    A worker that was killed between the order and its record leaves only what was approved.
    """
    found = proposal.details.get(BEFORE)
    return found if isinstance(found, Mapping) else proposal.lineage


def answered(answer: MachineAnswer, found: Found, what: str) -> ActionResult:
    """Turn the provider's answer for one machine into the outcome of an action."""
    outcome = OUTCOMES[answer.answer]
    details: dict[str, Any] = {**found.kept, **answer.details}
    if answer.code:
        details["code"] = answer.code
    if outcome is Outcome.FAILED:
        details["retry"] = "offered"
    return ActionResult(outcome, f"{what}: {answer.message}", found.node, False, details)
