"""Does a cordon of ours still stand as it was set, and if not, what is missing?"""

from app.cluster.ports import CordonCheck, CordonRequest, NodeState, Standing


def cordon_drift(state: NodeState, expected: CordonRequest | None = None) -> tuple[str, ...]:
    """Say in words what differs from a full cordon of ours; empty where it stands.

    Without `expected` any case of ours will do.
    """
    found: list[str] = []
    if not state.unschedulable:
        rest = "our taint is still there" if state.has_our_taint else "our taint is gone too"
        found.append(f"uncordoned by somebody: {rest}")
    elif not state.has_our_taint:
        found.append("our taint was removed by somebody: the node is still unschedulable")
    ours = state.our_cordon
    if ours is None:
        found.append("our note was removed from the node")
    elif expected is not None and ours.case != expected.case:
        found.append(f"the note on the node names another case, {ours.case}")
    if state.cordoned_by_other and ours is not None:
        found.append(f"cordoned anew by somebody else ({state.cordoned_by_other})")
    return tuple(found)


def is_another_machine(state: NodeState, expect_uid: str | None) -> bool:
    """Tell whether the name now belongs to another node object than the case means."""
    return bool(expect_uid) and bool(state.uid) and state.uid != expect_uid


def check_cordon(state: NodeState, request: CordonRequest) -> CordonCheck:
    """Judge one reading of the node against the cordon that was approved."""
    if is_another_machine(state, request.expect_uid):
        return CordonCheck(
            Standing.REPLACED,
            f"Another machine carries the name {state.name} now: the cordon went with the old one.",
            state,
        )
    drift = cordon_drift(state, request)
    if not drift:
        return CordonCheck(
            Standing.HOLDS, f"{state.name} is cordoned for case {request.case}.", state
        )
    if state.our_cordon is None and not state.has_our_taint:
        if state.unschedulable:
            words = f"{state.name} is unschedulable by someone else ({state.cordoned_by_other})."
            return CordonCheck(Standing.BY_OTHER, words, state, drift)
        words = f"Nothing of our cordon is left on {state.name}: work can be scheduled there."
        return CordonCheck(Standing.LIFTED, words, state, drift)
    words = f"The cordon of {state.name} does not stand as it was set: {'; '.join(drift)}."
    return CordonCheck(Standing.DRIFTED, words, state, drift)
