"""What would this action do to the cluster as it stands now, and what is not known?

Read live at every look; a cluster that does not answer is said plainly and never fails the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.actions import rails
from app.actions.execute import another_instance, port_of
from app.cluster.drift import is_another_machine
from app.cluster.errors import ClusterError, ClusterNotConfigured, NodeGone
from app.cluster.pods import by_namespace
from app.cluster.ports import ClusterPort, NodeState, PodOnNode
from app.context import Context
from app.store import proposals
from app.store.proposals import Proposal

# True, false in the way of the action, unknown, or a plain fact.
State = Literal["t", "x", "u", "f"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Live:
    """What the cluster said; `error` where it said nothing of use."""

    read_at: datetime
    state: NodeState | None
    error: str | None
    gone: bool
    dry_run: bool
    pods: Mapping[str, tuple[PodOnNode, ...]] | None  # None: not read
    pods_error: str | None
    left_out: int  # pods that come with every node, or have ended


@dataclass(frozen=True, slots=True)
class Preview:
    """Everything that a person sees before the click."""

    proposal: Proposal
    live: Live
    checks: tuple[Check, ...]
    refusal: str | None  # why there is no button to approve; None: there is one

    @property
    def node_uid(self) -> str:
        """Give the uid that an approval is bound to; empty where none was read."""
        return (self.live.state.uid or "") if self.live.state else ""


def preview(context: Context, proposal: Proposal) -> Preview:
    """Read the node of a proposal and judge what stands in the way."""
    port = port_of(context, proposal.cluster)
    live = _read(context, port, proposal)
    with context.store.reading() as connection:
        rail = rails.in_the_way(connection, proposal)
        braked = rails.brake(connection, proposal)
    checks = [*_about_node(live, proposal), *_about_cordon(live, proposal)]
    if proposal.action != "uncordon":
        checks.append(Check("x", braked.message) if braked else Check("t", "The brake is off"))
    if proposal.destroys:
        checks.append(
            Check("u", "NodeRecovery mode: unknown, this version does not ask the provider")
        )
    reasons = (_refusal(live, proposal), rail.message if rail else None)
    refusal = " ".join(_ended(reason) for reason in reasons if reason) or None
    return Preview(proposal, live, tuple(checks), refusal)


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _read(context: Context, port: ClusterPort, proposal: Proposal) -> Live:
    now = context.now()
    name = proposal.node_name
    if not name:
        return Live(now, None, "No node is known by name.", False, False, None, None, 0)
    try:
        state = port.node(name)
    except ClusterNotConfigured as error:
        dry = port.status().kind == "dry run"
        return Live(now, None, error.message, False, dry, None, error.message, 0)
    except NodeGone:
        words = f"The node is gone: the cluster knows no node {name}."
        return Live(now, None, words, True, False, None, None, 0)
    except ClusterError as error:
        return Live(now, None, error.message, False, False, None, error.message, 0)
    try:
        pods = port.pods_on(name)
    except ClusterError as error:
        return Live(now, state, None, False, False, None, error.message, 0)
    ending = by_namespace(pods)
    kept = sum(len(members) for members in ending.values())
    return Live(now, state, None, False, False, ending, None, len(pods) - kept)


def _refusal(live: Live, proposal: Proposal) -> str | None:
    """Say why the action cannot be approved on what was read; None: it can."""
    state = live.state
    if live.gone:
        # Approving it is still possible and ends as "gone": a final, recorded answer.
        return None
    if state is None:
        return None
    if state.is_control_plane:
        return f"{state.name} is a control-plane node: it is never changed from here."
    if is_another_machine(state, proposal.node_uid) and not _same_instance(state, proposal):
        return f"Another machine carries the name {state.name} now."
    return another_instance(state, proposal)


def _same_instance(state: NodeState, proposal: Proposal) -> bool:
    """Tell whether the instance proves it to be the machine of the case under a new uid."""
    return bool(proposal.instance_id) and state.instance_id == proposal.instance_id


def _about_node(live: Live, proposal: Proposal) -> list[Check]:
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
    if _same_instance(state, proposal):
        return Check("t", f"Instance {state.instance_id} as in the rank map, uid {state.uid}")
    if is_another_machine(state, proposal.node_uid):
        words = f"Another machine carries the name now: uid {state.uid}, was {proposal.node_uid}"
        return Check("x", words)
    return Check("u", f"Uid {state.uid}; the cluster does not tell the instance")


def _about_cordon(live: Live, proposal: Proposal) -> list[Check]:
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
    return [Check("f", "Schedulable: new pods can land on it now")]


def of_uncordon(context: Context, cordon: Proposal) -> Preview:
    """Look at a node whose cordon is to be lifted."""
    live = _read(context, port_of(context, cordon.cluster), cordon)
    checks = [*_about_node(live, cordon), *_about_lifting(live, cordon)]
    refusal = None
    with context.store.reading() as connection:
        other = proposals.under_way_on_node(connection, cordon)
    if other is not None:
        refusal = f"{rails.title(other)} was approved by {other.decided_by} and is not finished."
    return Preview(cordon, live, tuple(checks), refusal or _refusal(live, cordon))


def _about_lifting(live: Live, cordon: Proposal) -> list[Check]:
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
