"""How is a node cordoned in our name: once, provably, and never over somebody else's cordon?"""

from app.cluster.api import KubernetesApi
from app.cluster.drift import cordon_drift, is_another_machine
from app.cluster.errors import ClusterConflict, ClusterError, NodeGone
from app.cluster.marks import cordon_patch
from app.cluster.node_access import get_node, patch_node
from app.cluster.node_events import EventKind, record_event
from app.cluster.outcomes import gone, outcome_of, settle_lost_answer
from app.cluster.ports import ActionResult, CordonRequest, NodeState, Outcome

ROUNDS = 3
"""Readings after a conflict before we give up; kubelets write to a node every few seconds."""


def cordon(api: KubernetesApi, request: CordonRequest) -> ActionResult:
    """Cordon the node of the request, or say why not; never raises a cluster error."""
    try:
        for _ in range(ROUNDS):
            state = get_node(api, request.node)
            settled = settle_cordon(state, request)
            if settled is not None:
                return settled
            try:
                return _change(api, state, request)
            except ClusterConflict:
                # Nothing was written: look at the node again and decide again from the start.
                continue
    except ClusterError as error:
        return outcome_of(error, request.node)
    return busy(request.node)


def busy(name: str) -> ActionResult:
    """Say that the node changed under our hands every time."""
    return ActionResult(
        Outcome.FAILED,
        f"{name} was changed by others {ROUNDS} times while we were deciding. "
        "Nothing was changed by us.",
    )


def refuse_other_machine(state: NodeState, request: CordonRequest) -> ActionResult | None:
    """Refuse where the name belongs to another node object than the case means."""
    if not is_another_machine(state, request.expect_uid):
        return None
    return ActionResult(
        Outcome.REFUSED,
        f"Another machine carries the name {state.name} now (uid {state.uid}, the case means "
        f"{request.expect_uid}). Nothing was changed.",
        state,
    )


def settle_cordon(state: NodeState, request: CordonRequest) -> ActionResult | None:
    """Decide from one reading whether there is nothing to send; None: go on."""
    other = refuse_other_machine(state, request)
    if other is not None:
        return other
    if state.is_control_plane:
        return ActionResult(
            Outcome.REFUSED,
            f"{state.name} is a control-plane node: it is never cordoned from here. "
            "Nothing was changed.",
            state,
        )
    ours = state.our_cordon
    if state.unschedulable and state.cordoned_by_other:
        return ActionResult(
            Outcome.ALREADY_BY_OTHER,
            f"{state.name} is already cordoned by someone else ({state.cordoned_by_other}). "
            "Nothing was changed; the cordon stays theirs.",
            state,
        )
    if ours is not None and not cordon_drift(state):
        by = f" by {ours.by}" if ours.by else ""
        return ActionResult(
            Outcome.ALREADY_OURS,
            f"{state.name} is already cordoned for case {ours.case}{by}. Nothing was sent.",
            state,
        )
    return None


def _change(api: KubernetesApi, state: NodeState, request: CordonRequest) -> ActionResult:
    """Rehearse, send once, prove; `ClusterConflict` passes through, since nothing was written."""
    patch = cordon_patch(state.raw, request)
    rehearsed = patch_node(api, state.name, patch, dry_run=True)
    missing = cordon_drift(rehearsed, request)
    if missing:
        return ActionResult(
            Outcome.REFUSED,
            f"The cluster would not keep the cordon of {state.name} ({'; '.join(missing)}). "
            "Nothing was changed.",
            state,
        )
    try:
        patched = patch_node(api, state.name, patch, dry_run=False)
    except ClusterError as error:
        if not error.maybe_applied:
            raise
        result = settle_lost_answer(
            lambda: get_node(api, request.node),
            state,
            lambda after: is_done(after, request),
            error,
        )
    else:
        result = prove(api, patched, request)
    if result.outcome is not Outcome.CHANGED:
        return result
    return record_event(api, result, request, EventKind.CORDONED)


def is_done(state: NodeState, request: CordonRequest) -> bool:
    """Tell whether the node shows exactly the cordon of this request."""
    ours = state.our_cordon
    return ours is not None and ours.proposal == request.proposal and not cordon_drift(state)


def prove(api: KubernetesApi, patched: NodeState, request: CordonRequest) -> ActionResult:
    """Read the node once more: what counts is what the cluster keeps, not what it answered."""
    words = f"{patched.name} is cordoned for case {request.case}."
    try:
        after = get_node(api, request.node)
    except NodeGone:
        return gone(request.node, when="any more: it went right after it was cordoned")
    except ClusterError as error:
        return ActionResult(
            Outcome.CHANGED,
            f"{words} It could not be read again to prove it: {error.message}",
            patched,
            details={"proof": "missing"},
        )
    drift = cordon_drift(after, request)
    if drift:
        return ActionResult(
            Outcome.CHANGED,
            f"{words} But on reading it again: {'; '.join(drift)}.",
            after,
            details={"drift": "; ".join(drift)},
        )
    return ActionResult(Outcome.CHANGED, words, after)
