"""How is a platform told by a label to replace, restart or report a node: once, and provably?

Such a label is an order, not a note: the platform evicts what runs there within seconds. A label
that the platform has set itself is never written over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.cluster.api import KubernetesApi
from app.cluster.cordon import ROUNDS, busy, refuse_other_machine
from app.cluster.errors import ClusterConflict, ClusterError
from app.cluster.marks import stamp, version_of
from app.cluster.node_access import get_node, patch_node
from app.cluster.node_events import EventKind, record_event
from app.cluster.outcomes import outcome_of, settle_lost_answer
from app.cluster.ports import (
    OUR_PREFIX,
    ActionResult,
    CordonRequest,
    LabelOrder,
    NodeState,
    Outcome,
)

HEALTH_STATUS = "sagemaker.amazonaws.com/node-health-status"
PENDING_REPLACEMENT = "UnschedulablePendingReplacement"
PENDING_REBOOT = "UnschedulablePendingReboot"
SCHEDULABLE = "Schedulable"
FAULT_BEHAVIOR = "cloud.google.com/fault-behavior"
REPORT_STATUS = "cloud.google.com/report-and-replace-status"
TPU = "cloud.google.com/gke-tpu-accelerator"

ORDER = OUR_PREFIX + "order"
"""Annotation: which proposal set the label, so that a lost answer can be settled by reading."""


@dataclass(frozen=True, slots=True)
class _Label:
    key: str
    value: str
    free: tuple[str | None, ...]  # what may stand there before; anything else is the platform's
    done: str  # in a sentence after the node's name


_LABELS: Mapping[LabelOrder, _Label] = {
    LabelOrder.REPLACE: _Label(
        HEALTH_STATUS, PENDING_REPLACEMENT, (None, SCHEDULABLE), "is labelled for replacement"
    ),
    LabelOrder.REBOOT: _Label(
        HEALTH_STATUS, PENDING_REBOOT, (None, SCHEDULABLE), "is labelled for a reboot"
    ),
    LabelOrder.REPORT_SDC: _Label(
        FAULT_BEHAVIOR, "SDC", (None,), "is labelled as computing wrong, for repair by the provider"
    ),
}


def order_by_label(api: KubernetesApi, request: CordonRequest, order: LabelOrder) -> ActionResult:
    """Set the label of an order, or say why not; never raises a cluster error."""
    label = _LABELS[order]
    try:
        for _ in range(ROUNDS):
            state = get_node(api, request.node)
            settled = _settle(state, request, label)
            if settled is not None:
                return settled
            try:
                return _change(api, state, request, label)
            except ClusterConflict:
                continue
    except ClusterError as error:
        return outcome_of(error, request.node)
    return busy(request.node)


def _settle(state: NodeState, request: CordonRequest, label: _Label) -> ActionResult | None:
    """Decide from one reading whether the order may go out; None: it may."""
    other = refuse_other_machine(state, request)
    if other is not None:
        return other
    if state.is_control_plane:
        words = f"{state.name} is a control-plane node: nothing is ordered for it from here."
        return ActionResult(Outcome.REFUSED, f"{words} Nothing was changed.", state)
    now = state.labels.get(label.key)
    if now == label.value:
        words = f"{state.name} carries {label.key}={now} already: nothing was sent."
        return ActionResult(Outcome.UNDER_WAY, words, state)
    if now not in label.free:
        words = f"The platform has marked {state.name} itself ({label.key}={now})."
        return ActionResult(Outcome.REFUSED, f"{words} Its label is not written over.", state)
    if label.key == FAULT_BEHAVIOR and TPU in state.labels:
        words = f"{state.name} is a TPU node, and this label is for GPU machines only."
        return ActionResult(Outcome.REFUSED, f"{words} Nothing was changed.", state)
    return None


def _patch(raw: Mapping[str, Any], request: CordonRequest, label: _Label) -> dict[str, Any]:
    said = f"proposal {request.proposal} case {request.case} by {request.by} at {stamp(request.at)}"
    return {
        "metadata": version_of(raw)
        | {"labels": {label.key: label.value}, "annotations": {ORDER: said}}
    }


def _shows(state: NodeState, request: CordonRequest, label: _Label) -> bool:
    mine = state.annotations.get(ORDER, "").startswith(f"proposal {request.proposal} ")
    return mine and state.labels.get(label.key) == label.value


def _change(
    api: KubernetesApi, state: NodeState, request: CordonRequest, label: _Label
) -> ActionResult:
    """Rehearse, send once, prove; `ClusterConflict` passes through, since nothing was written."""
    patch = _patch(state.raw, request, label)
    rehearsed = patch_node(api, state.name, patch, dry_run=True)
    if not _shows(rehearsed, request, label):
        words = f"The cluster would not keep {label.key}={label.value} on {state.name}."
        return ActionResult(Outcome.REFUSED, f"{words} Nothing was changed.", state)
    try:
        patched = patch_node(api, state.name, patch, dry_run=False)
    except ClusterError as error:
        if not error.maybe_applied:
            raise
        result = settle_lost_answer(
            lambda: get_node(api, request.node),
            state,
            lambda after: _shows(after, request, label),
            error,
        )
        return _as_order(api, result, request)
    words = f"{patched.name} {label.done} ({label.key}={label.value})."
    try:
        after = get_node(api, request.node)
    except ClusterError:
        after = patched  # also of a node that went at once: the order was taken, and is followed
    return _as_order(api, ActionResult(Outcome.CHANGED, words, after), request)


def _as_order(api: KubernetesApi, result: ActionResult, request: CordonRequest) -> ActionResult:
    """Say that what was written is an order whose effect is still to come."""
    if result.outcome is Outcome.GONE:
        # The node went while the answer was lost: whether by the order is seen by what follows.
        return replace(result, outcome=Outcome.UNKNOWN)
    if result.outcome is not Outcome.CHANGED:
        return result
    told = record_event(api, result, request, EventKind.ORDERED)
    return ActionResult(
        Outcome.ACCEPTED, told.message, told.state, told.event_written, told.details
    )
