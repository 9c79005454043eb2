"""How is a cordon of ours lifted, without ever lifting somebody else's?"""

from app.cluster.api import KubernetesApi
from app.cluster.cordon import ROUNDS, busy, refuse_other_machine
from app.cluster.errors import ClusterConflict, ClusterError, NodeGone
from app.cluster.marks import uncordon_patch
from app.cluster.node_access import get_node, patch_node
from app.cluster.node_events import EventKind, record_event
from app.cluster.outcomes import gone, outcome_of, settle_lost_answer
from app.cluster.ports import ActionResult, CordonRequest, NodeState, Outcome


def uncordon(api: KubernetesApi, request: CordonRequest) -> ActionResult:
    """Take our marks off the node of the request; never raises a cluster error."""
    try:
        for _ in range(ROUNDS):
            state = get_node(api, request.node)
            settled = settle_uncordon(state, request)
            if settled is not None:
                return settled
            try:
                return _change(api, state, request)
            except ClusterConflict:
                continue
    except ClusterError as error:
        return outcome_of(error, request.node)
    return busy(request.node)


def settle_uncordon(state: NodeState, request: CordonRequest) -> ActionResult | None:
    """Decide from one reading whether there is nothing of ours to lift; None: go on."""
    other = refuse_other_machine(state, request)
    if other is not None:
        return other
    ours = state.our_cordon
    if ours is not None and ours.case == request.case:
        return None
    if ours is not None:
        return ActionResult(
            Outcome.REFUSED,
            f"{state.name} is cordoned for another case, {ours.case}: lift it there. "
            "Nothing was changed.",
            state,
        )
    if state.has_our_taint:
        return ActionResult(
            Outcome.REFUSED,
            f"{state.name} carries our taint, but our note was removed by somebody, so that "
            "nothing says whose cordon it is. Nothing was changed: a person must look.",
            state,
        )
    if state.unschedulable:
        return ActionResult(
            Outcome.ALREADY_BY_OTHER,
            f"{state.name} stays cordoned by someone else ({state.cordoned_by_other}). "
            "The cordon was never ours: nothing was changed.",
            state,
        )
    return ActionResult(
        Outcome.ALREADY_OURS,
        f"{state.name} is not cordoned, and nothing of ours is on it. Nothing was sent.",
        state,
    )


def keeps_unschedulable(state: NodeState) -> str | None:
    """Say why the node must stay unschedulable when our marks go; None: it need not."""
    if not state.unschedulable:
        return None
    if state.cordoned_by_other:
        return f"cordoned by someone else since ({state.cordoned_by_other})"
    ours = state.our_cordon
    if ours is not None and ours.prev_unschedulable is not False:
        return "our note does not say that it was schedulable before"
    return None


def _change(api: KubernetesApi, state: NodeState, request: CordonRequest) -> ActionResult:
    """Send once, then prove; `ClusterConflict` passes through, since nothing was written."""
    kept = keeps_unschedulable(state)
    patch = uncordon_patch(state.raw, keep_unschedulable=kept is not None)
    patch_node(api, state.name, patch, dry_run=True)
    try:
        patched = patch_node(api, state.name, patch, dry_run=False)
    except ClusterError as error:
        if not error.maybe_applied:
            raise
        result = settle_lost_answer(
            lambda: get_node(api, request.node), state, _is_free_of_us, error
        )
    else:
        result = _prove(api, patched, request, kept)
    if result.outcome is not Outcome.CHANGED:
        return result
    return record_event(api, result, request, EventKind.UNCORDONED)


def _is_free_of_us(state: NodeState) -> bool:
    return state.our_cordon is None and not state.has_our_taint


def _prove(
    api: KubernetesApi, patched: NodeState, request: CordonRequest, kept: str | None
) -> ActionResult:
    """Read the node once more and say what is left on it."""
    words = f"{patched.name} is uncordoned: our taint and note are gone."
    details = {}
    if kept is not None:
        words = f"Our taint and note are off {patched.name}, but it stays unschedulable: {kept}."
        details = {"left_unschedulable": kept}
    try:
        after = get_node(api, request.node)
    except NodeGone:
        return gone(request.node, when="any more: it went right after it was uncordoned")
    except ClusterError as error:
        words = f"{words} It could not be read again to prove it: {error.message}"
        return ActionResult(
            Outcome.CHANGED, words, patched, details={**details, "proof": "missing"}
        )
    if not _is_free_of_us(after):
        words = f"{words} But on reading it again, something of ours is back on it."
        details["drift"] = "something of ours is on the node again"
    elif after.unschedulable and kept is None:
        words = f"{words} But on reading it again, somebody has cordoned it anew."
        details["drift"] = "cordoned anew by somebody"
    return ActionResult(Outcome.CHANGED, words, after, details=details)
