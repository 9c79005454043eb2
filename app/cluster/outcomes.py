"""Which outcome does an error leave behind, and what can one more reading still settle?"""

from collections.abc import Callable

from app.cluster.errors import (
    ClusterConflict,
    ClusterError,
    ClusterRefused,
    NodeGone,
)
from app.cluster.ports import ActionResult, NodeState, Outcome

_TOO_MANY = 429
_GATEWAY = (502, 504)
"""Answers of something in between: the request may still be on its way to the server."""


def gone(name: str, *, when: str = "") -> ActionResult:
    """Say that the node does not exist: final."""
    after = f" {when}" if when else ""
    return ActionResult(Outcome.GONE, f"The node is gone: the cluster knows no node {name}{after}.")


def outcome_of(error: ClusterError, name: str) -> ActionResult:
    """Give the outcome of an error that certainly changed nothing."""
    if isinstance(error, NodeGone):
        return gone(name)
    kind = Outcome.FAILED
    if isinstance(error, ClusterRefused) and not isinstance(error, ClusterConflict):
        # "Too busy" is no decision about this node; it can be asked again by a person.
        kind = Outcome.FAILED if error.status == _TOO_MANY else Outcome.REFUSED
    details = {} if error.status is None else {"status": str(error.status)}
    if error.retry_after is not None:
        details["retry_after_s"] = f"{error.retry_after:g}"
    return ActionResult(kind, f"{error.message} Nothing was changed.", details=details)


def settle_lost_answer(
    read: Callable[[], NodeState],
    before: NodeState,
    is_done: Callable[[NodeState], bool],
    error: ClusterError,
) -> ActionResult:
    """Read the node once more after a patch whose answer was lost, and say what is certain.

    The patch was bound to the version that was read before it. If the node has another version
    now and does not show the change, the patch can never be taken any more. With the version
    unchanged it may still be on its way, unless the server itself answered that it failed.
    """
    try:
        after = read()
    except NodeGone:
        return gone(before.name, when="any more; whether the change reached it is not known")
    except ClusterError as second:
        return ActionResult(
            Outcome.UNKNOWN,
            f"{error.message} Reading the node again did not help: {second.message} "
            "Whether the change was made is not known.",
            before,
        )
    if before.uid and after.uid != before.uid:
        return gone(before.name, when="with this uid any more: another machine carries the name")
    if is_done(after):
        return ActionResult(
            Outcome.CHANGED,
            f"{error.message} The node itself shows that the change was made.",
            after,
            details={"answer": "lost"},
        )
    moved = after.resource_version != before.resource_version
    answered = error.status is not None and error.status not in _GATEWAY
    if moved or answered:
        why = "it was changed by somebody else meanwhile" if moved else "the cluster gave up"
        return ActionResult(
            Outcome.FAILED, f"{error.message} The node was not changed by us: {why}.", after
        )
    return ActionResult(
        Outcome.UNKNOWN,
        f"{error.message} The node does not show the change, but it may still be on its way.",
        after,
    )
