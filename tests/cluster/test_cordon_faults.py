"""When the cluster fails, is the failure said plainly and the state told truly?"""

import time
from typing import Any

import pytest

from app.cluster.ports import ClusterPort, Outcome
from tests.cluster.conftest import NODE_1, NODE_2, PortOf, request
from tests.doubles.kubernetes import KubernetesDouble

READ = f"GET /api/v1/nodes/{NODE_1}"
PATCH = f"PATCH /api/v1/nodes/{NODE_1}"
LIMIT_S = 0.4

REFUSALS: list[tuple[int, Outcome, str]] = [
    (400, Outcome.REFUSED, "did not understand the request"),
    (401, Outcome.REFUSED, "does not accept our credentials"),
    (403, Outcome.REFUSED, "knows us but does not allow this"),
    (404, Outcome.GONE, f"The node is gone: the cluster knows no node {NODE_1}"),
    (415, Outcome.REFUSED, "does not take this kind of patch"),
    (422, Outcome.REFUSED, "finds the request invalid"),
    (429, Outcome.FAILED, "too busy and asks us to wait"),
    (500, Outcome.FAILED, "The cluster failed with 500"),
    (503, Outcome.FAILED, "The cluster failed with 503"),
]


@pytest.fixture
def hasty(double: KubernetesDouble, port_of: PortOf) -> ClusterPort:
    """Give a port that waits less than half a second for an answer."""
    return port_of(double, read_timeout_s=LIMIT_S)


@pytest.fixture
def before(double: KubernetesDouble) -> dict[str, Any]:
    """Give the node as it is before anything is tried."""
    return double.node(NODE_1)


@pytest.mark.parametrize(("status", "outcome", "words"), REFUSALS)
def test_the_reading_is_answered_with_an_error(
    double: KubernetesDouble, port: ClusterPort, status: int, outcome: Outcome, words: str
) -> None:
    double.set_fault(READ, status=status)
    result = port.cordon(request())
    assert result.outcome is outcome
    assert words in result.message
    assert double.calls == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("status", "outcome", "words"), REFUSALS)
def test_the_patch_is_answered_with_an_error(
    double: KubernetesDouble,
    port: ClusterPort,
    before: dict[str, Any],
    status: int,
    outcome: Outcome,
    words: str,
    dry_run: bool,
) -> None:
    double.set_fault(PATCH, status=status, dry_run=dry_run)
    result = port.cordon(request())
    assert result.outcome is outcome
    assert words in result.message
    assert double.node(NODE_1) == before
    assert len(double.changes()) == (0 if dry_run else 1)
    assert double.changes("POST") == []


def test_a_conflict_for_ever_ends(
    double: KubernetesDouble, port: ClusterPort, before: dict[str, Any]
) -> None:
    double.set_fault(PATCH, status=409, dry_run=False)
    result = port.cordon(request())
    assert result.outcome is Outcome.FAILED
    assert "changed by others 3 times" in result.message
    assert len(double.changes()) == 3
    assert double.node(NODE_1) == before


def test_too_busy_tells_the_pause_and_does_not_take_it(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    double.set_fault(PATCH, status=429, retry_after=30, dry_run=False)
    begun = time.monotonic()
    result = port.cordon(request())
    assert time.monotonic() - begun < 3
    assert "It asks for a pause of 30 s." in result.message
    assert result.details["retry_after_s"] == "30"
    assert len(double.changes()) == 1


@pytest.mark.parametrize("how", [{"hang": True}, {"reset": True}, {"delay_s": 2 * LIMIT_S}])
@pytest.mark.parametrize("call", ["GET *", "PATCH *"])
def test_before_anything_was_sent_for_real_it_has_failed(
    double: KubernetesDouble,
    hasty: ClusterPort,
    before: dict[str, Any],
    call: str,
    how: dict[str, Any],
) -> None:
    double.set_fault(call, times=1, **how)
    begun = time.monotonic()
    result = hasty.cordon(request())
    assert time.monotonic() - begun < LIMIT_S + 1.5
    assert result.outcome is Outcome.FAILED
    assert result.message.endswith("Nothing was changed.")
    assert double.changes() == []
    assert double.node(NODE_1) == before


@pytest.mark.parametrize(
    "how", [{"hang": True}, {"reset": True}, {"status": 500}, {"status": 502}, {"status": 504}]
)
def test_an_answer_that_is_lost_after_the_change_is_settled_by_reading(
    double: KubernetesDouble, hasty: ClusterPort, how: dict[str, Any]
) -> None:
    double.set_fault(PATCH, dry_run=False, apply_first=True, **how)
    result = hasty.cordon(request())
    assert result.outcome is Outcome.CHANGED
    assert result.message.endswith("The node itself shows that the change was made.")
    assert result.event_written
    assert double.node(NODE_1)["spec"]["unschedulable"] is True
    assert len(double.changes()) == 1


@pytest.mark.parametrize("how", [{"hang": True}, {"reset": True}, {"status": 502}, {"status": 504}])
def test_an_answer_that_is_lost_without_a_change_is_unknown(
    double: KubernetesDouble, hasty: ClusterPort, before: dict[str, Any], how: dict[str, Any]
) -> None:
    """The patch may still be on its way: nobody can say that it will not be taken."""
    double.set_fault(PATCH, dry_run=False, **how)
    result = hasty.cordon(request())
    assert result.outcome is Outcome.UNKNOWN
    assert "may still be on its way" in result.message
    assert double.node(NODE_1) == before
    assert len(double.changes()) == 1
    assert not result.event_written


def test_a_late_change_after_the_limit_is_unknown_and_then_seen(
    double: KubernetesDouble, hasty: ClusterPort
) -> None:
    double.set_fault(PATCH, dry_run=False, delay_s=2 * LIMIT_S)
    assert hasty.cordon(request()).outcome is Outcome.UNKNOWN
    deadline = time.monotonic() + 5
    while not double.node(NODE_1)["spec"].get("unschedulable") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert hasty.verify_cordon(request()).standing == "holds"


def test_a_patch_that_can_no_longer_be_taken_has_failed(
    double: KubernetesDouble, hasty: ClusterPort
) -> None:
    """A heartbeat after our patch was lost: its version is stale, so it can never be taken."""
    pick = double.faults.pick

    def heartbeat_on_reset(asked: Any) -> Any:
        fault = pick(asked)
        if fault is not None:
            double.change(NODE_1, lambda node: node["metadata"]["labels"].update(beat="1"))
        return fault

    double._network.fault_for = heartbeat_on_reset
    double.set_fault(PATCH, dry_run=False, reset=True)
    result = hasty.cordon(request())
    assert result.outcome is Outcome.FAILED
    assert "was not changed by us" in result.message
    assert len(double.changes()) == 1


def test_unknown_when_the_node_cannot_be_read_again(
    double: KubernetesDouble, hasty: ClusterPort
) -> None:
    double.set_fault(PATCH, dry_run=False, reset=True, apply_first=True)
    double.set_fault(READ, skip=1, status=503)
    result = hasty.cordon(request())
    assert result.outcome is Outcome.UNKNOWN
    assert "Whether the change was made is not known." in result.message


def test_a_node_that_went_while_the_answer_was_lost_is_gone(
    double: KubernetesDouble, hasty: ClusterPort
) -> None:
    double.set_fault(PATCH, dry_run=False, reset=True)
    double.set_fault(READ, skip=1, status=404)
    assert hasty.cordon(request()).outcome is Outcome.GONE


def test_a_change_that_cannot_be_proven_says_so(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    double.set_fault(READ, skip=1, status=500)
    result = port.cordon(request())
    assert result.outcome is Outcome.CHANGED
    assert "could not be read again to prove it" in result.message
    assert result.details["proof"] == "missing"


def test_a_change_that_is_undone_at_once_says_so(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    """As an automatic patching would, which uncordons every node that it has done."""
    lifted = {"kind": "Node", **double.node(NODE_1)}
    double.set_fault(READ, skip=1, status=200, body=lifted)
    result = port.cordon(request())
    assert result.outcome is Outcome.CHANGED
    assert "uncordoned by somebody" in result.details["drift"]


def test_an_answer_that_drips_is_cut_off(double: KubernetesDouble, hasty: ClusterPort) -> None:
    double.set_fault(PATCH, dry_run=False, drip_s=0.05)
    begun = time.monotonic()
    result = hasty.cordon(request())
    assert time.monotonic() - begun < 3
    assert result.outcome is Outcome.CHANGED
    assert "was not complete after 0.4 s" in result.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html>sign in</html>", "not with JSON"),
        ([], "not with JSON"),
        ({}, "something that is no node"),
        ({"kind": "Node", "metadata": {"name": NODE_2}}, "about another node"),
    ],
)
def test_an_answer_about_something_else_is_no_node(
    double: KubernetesDouble, port: ClusterPort, body: Any, words: str
) -> None:
    double.set_fault(READ, status=200, body=body)
    result = port.cordon(request())
    assert result.outcome is Outcome.FAILED
    assert words in result.message
    assert double.calls == []


def test_a_redirect_is_not_followed(double: KubernetesDouble, port: ClusterPort) -> None:
    double.set_fault(PATCH, status=302, dry_run=False)
    result = port.cordon(request())
    assert result.outcome is Outcome.REFUSED
    assert "answers with a redirect (302)" in result.message
    assert len(double.changes()) == 1


def test_an_event_that_hangs_holds_nobody_twice(
    double: KubernetesDouble, hasty: ClusterPort
) -> None:
    double.set_fault("POST *", hang=True)
    begun = time.monotonic()
    result = hasty.cordon(request())
    assert time.monotonic() - begun < 2 * LIMIT_S + 1
    assert result.outcome is Outcome.CHANGED
    assert result.details["event"].startswith("not written: No answer from the cluster")
    assert len(double.changes("POST")) == 1


def test_a_node_of_odd_shape_is_read_all_the_same(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    odd = {
        "kind": "Node",
        "metadata": {"name": NODE_1, "labels": None, "managedFields": [1], "annotations": []},
        "spec": {"taints": "x", "unschedulable": "yes"},
        "status": {"conditions": {"a": 1}, "capacity": None},
    }
    double.set_fault(READ, status=200, body=odd)
    state = port.node(NODE_1)
    assert state.ready is None
    assert state.taints == ()
    assert not state.unschedulable
