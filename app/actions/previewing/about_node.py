"""Is it the machine that the case means, does it work, and who has cordoned it?"""

from __future__ import annotations

from app.actions.previewing.live import Live
from app.actions.previewing.parts import Check, State, listed
from app.actions.reaching import another_instance
from app.cluster.drift import is_another_machine
from app.cluster.ports import NodeState
from app.store.proposals import Proposal


def refusal(live: Live, proposal: Proposal) -> str | None:
    """Say why the action cannot be approved on what was read; None: it can."""
    state = live.state
    if live.gone or state is None:
        # Approving it is still possible and ends as "gone", or as the cluster answers then.
        return None
    if state.is_control_plane:
        return f"{state.name} is a control-plane node: it is never changed from here."
    if is_another_machine(state, proposal.node_uid) and not same_instance(state, proposal):
        return f"Another machine carries the name {state.name} now."
    return another_instance(state, proposal)


def same_instance(state: NodeState, proposal: Proposal) -> bool:
    """Tell whether the instance proves it to be the machine of the case under a new uid."""
    return bool(proposal.instance_id) and state.instance_id == proposal.instance_id


def about_node(live: Live, proposal: Proposal) -> list[Check]:
    """Say what was found of the node itself."""
    if live.dry_run:
        return [
            Check("u", f"Nothing was asked: no cluster is configured for {proposal.cluster}. "
                       "An approval is kept as a dry run and changes nothing"),
        ]  # fmt: skip
    state = live.state
    if state is None:
        kind: State = "x" if live.gone else "u"
        return [Check(kind, live.error or "The node could not be read.")]
    found = [_identity(state, proposal)]
    if state.is_control_plane:
        found.append(Check("x", "It is a control-plane node"))
    ready = {True: Check("t", "The node is Ready"), False: Check("f", "The node is not Ready")}
    found.append(
        Check("u", "Ready: the node does not say") if state.ready is None else ready[state.ready]
    )
    return found


def _identity(state: NodeState, proposal: Proposal) -> Check:
    other = another_instance(state, proposal)
    if other is not None:
        return Check("x", other)
    if same_instance(state, proposal):
        return Check("t", f"Instance {state.instance_id} as in the rank map, uid {state.uid}")
    if is_another_machine(state, proposal.node_uid):
        words = f"Another machine carries the name now: uid {state.uid}, was {proposal.node_uid}"
        return Check("x", words)
    return Check("u", f"Uid {state.uid}; the cluster does not tell the instance")


def about_cordon(live: Live, proposal: Proposal) -> list[Check]:
    """Say whose cordon is on the node, and whether pods can still come."""
    state = live.state
    if state is None:
        return []
    if state.unschedulable and state.cordoned_by_other:
        words = f"Already cordoned by someone else: {state.cordoned_by_other}"
        if proposal.action == "cordon":
            words += ". An approval is recorded as satisfied without change"
        return [Check("f", words)]
    ours = state.our_cordon
    if ours is not None:
        at = f" at {ours.at:%Y-%m-%d %H:%M:%S} UTC" if ours.at else ""
        return [Check("f", f"Cordoned from here by {ours.by or 'nobody named'}{at}")]
    if state.unschedulable:
        return [Check("f", "Unschedulable, and nobody left a note")]
    away = [one.key for one in state.taints if one.effect != "PreferNoSchedule"]
    if away:
        return [Check("f", f"Not cordoned; taints keep most pods away: {listed(away)}")]
    if proposal.destroys:
        return [Check("x", "Not cordoned: new pods can land on it until it goes")]
    return [Check("f", "Schedulable: new pods can land on it now")]


def about_lifting(live: Live) -> list[Check]:
    """Say what is there to be lifted."""
    state = live.state
    if state is None:
        return []
    if state.our_cordon is None and not state.has_our_taint:
        if state.unschedulable:
            words = f"The cordon is someone else’s ({state.cordoned_by_other}): it stays as it is"
            return [Check("f", words)]
        return [Check("f", "Nothing of ours is on the node")]
    found = [Check("t", "Our taint or note is on the node: it is ours to lift")]
    if state.cordoned_by_other:
        words = (
            f"Someone else cordoned it as well ({state.cordoned_by_other}): it stays unschedulable"
        )
        found.append(Check("f", words))
    return found
