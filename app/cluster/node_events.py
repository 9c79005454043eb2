"""How does a person who looks at the node with kubectl learn what was done to it, and why?

Events live about an hour and are no record of ours: one that fails never fails the action.
"""

import socket
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from app.cluster.api import KubernetesApi
from app.cluster.errors import ClusterError, ClusterTimeout, ClusterUnreachable
from app.cluster.marks import stamp
from app.cluster.ports import ActionResult, CordonRequest, NodeState

CONTROLLER = "silent-witness.dev/service"
CORE_PATH = "/api/v1/namespaces/default/events"
# events.k8s.io refuses an Event about a node, which has no namespace, in `default`, and takes it
# in kube-system (measured against 1.20.2); the older core Event is taken in `default`.
NEWER_PATH = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
NOTE_LIMIT = 1024
"""Bytes that a server takes as an Event's message."""


class EventKind(StrEnum):
    """The reason that stands in the Event."""

    CORDONED = "SDCSuspectCordoned"  # a Warning: the node is out of service
    UNCORDONED = "SDCSuspectUncordoned"  # Normal: the node is back
    ORDERED = "SDCSuspectOrdered"  # a Warning: the platform was told to act on the node


_ACTIONS = {
    EventKind.CORDONED: "Cordon",
    EventKind.UNCORDONED: "Uncordon",
    EventKind.ORDERED: "Order",
}
_TYPES = {
    EventKind.CORDONED: "Warning",
    EventKind.UNCORDONED: "Normal",
    EventKind.ORDERED: "Warning",
}
_DONE = {
    EventKind.CORDONED: "Cordoned",
    EventKind.UNCORDONED: "Uncordoned",
    EventKind.ORDERED: "Ordered",
}


def record_event(
    api: KubernetesApi, result: ActionResult, request: CordonRequest, kind: EventKind
) -> ActionResult:
    """Write an Event about the node of the result; say in the result whether it was taken."""
    if result.state is None:
        return result
    failures = []
    for path, body in (
        (CORE_PATH, core_event(result.state, request, kind)),
        (NEWER_PATH, newer_event(result.state, request, kind)),
    ):
        try:
            api.post(path, body)
        except ClusterError as error:
            failures.append(error.message)
            if isinstance(error, ClusterTimeout | ClusterUnreachable):
                break  # The second form would only make a person wait twice as long.
            continue
        return replace(result, event_written=True)
    told = {"event": "not written: " + " Then: ".join(failures)}
    return replace(result, details={**result.details, **told})


def note(request: CordonRequest, kind: EventKind) -> str:
    """Say what was done, for which case, by whom and why, within the server's limit."""
    words = f"{_DONE[kind]} by {request.by} for case {request.case}: {request.reason}"
    return words.encode()[:NOTE_LIMIT].decode("utf-8", "ignore")


def core_event(state: NodeState, request: CordonRequest, kind: EventKind) -> dict[str, Any]:
    """Build a core v1 Event."""
    moment = stamp(request.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "silent-witness-", "namespace": "default"},
        "involvedObject": _reference(state),
        "reason": kind.value,
        "message": note(request, kind),
        "type": _TYPES[kind],
        # Times of this older kind have whole seconds.
        "firstTimestamp": moment[:19] + "Z",
        "lastTimestamp": moment[:19] + "Z",
        "count": 1,
        "source": {"component": CONTROLLER},
    }


def newer_event(state: NodeState, request: CordonRequest, kind: EventKind) -> dict[str, Any]:
    """Build an events.k8s.io/v1 Event; its time needs exactly six fractional digits."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": "silent-witness-", "namespace": "kube-system"},
        "eventTime": stamp(request.at),
        "reportingController": CONTROLLER,
        "reportingInstance": (socket.gethostname() or "service")[:128],
        "action": _ACTIONS[kind],
        "reason": kind.value,
        "regarding": _reference(state),
        "note": note(request, kind),
        "type": _TYPES[kind],
    }


def _reference(state: NodeState) -> Mapping[str, Any]:
    uid = {"uid": state.uid} if state.uid else {}
    return {"apiVersion": "v1", "kind": "Node", "name": state.name, **uid}
