"""Do two operators, or an operator and another client, ever change a node twice?"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.cluster.ports import ActionResult, CordonRequest, Outcome
from tests.cluster.conftest import NODE_1, NODE_2, PortOf, StartDouble, request
from tests.doubles.kubernetes import KubernetesDouble

ROUNDS = 20


def at_once(*calls: Callable[[], ActionResult]) -> list[ActionResult]:
    """Make calls at the same moment and give their results."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], ActionResult]) -> ActionResult:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def applied(double: KubernetesDouble) -> int:
    """Count the real patches that the server took."""
    return sum(call.status == 200 for call in double.changes())


def test_of_two_cordons_at_once_one_changes_the_node(start: StartDouble, port_of: PortOf) -> None:
    for number in range(ROUNDS):
        double = start()
        first, second = port_of(double), port_of(double)
        requests: list[CordonRequest] = [
            request(by=name, proposal=f"P-{number}-{name}") for name in ("alice", "bob")
        ]
        results = at_once(
            lambda port=first, one=requests[0]: port.cordon(one),  # type: ignore[misc]
            lambda port=second, one=requests[1]: port.cordon(one),  # type: ignore[misc]
        )
        assert sorted(result.outcome for result in results) == [
            Outcome.ALREADY_OURS,
            Outcome.CHANGED,
        ]
        assert applied(double) == 1
        winner = results[0] if results[0].outcome is Outcome.CHANGED else results[1]
        assert winner.state is not None
        written = double.node(NODE_1)["metadata"]["annotations"]["silent-witness.dev/by"]
        assert winner.state.annotations["silent-witness.dev/by"] == written
        assert len(double.events()) == 1


def test_a_cordon_and_an_undo_at_once_leave_no_half_cordon(
    start: StartDouble, port_of: PortOf
) -> None:
    for _ in range(ROUNDS):
        double = start()
        port = port_of(double)
        port.cordon(request())
        at_once(lambda p=port: p.uncordon(request()), lambda p=port: p.cordon(request()))  # type: ignore[misc]
        node = double.node(NODE_1)
        marks = (
            bool(node["spec"].get("unschedulable")),
            bool(node["spec"].get("taints")),
            bool(node["metadata"].get("annotations")),
        )
        assert len(set(marks)) == 1


def test_different_nodes_do_not_wait_for_each_other(start: StartDouble, port_of: PortOf) -> None:
    double = start()
    port = port_of(double)
    results = at_once(
        lambda: port.cordon(request(NODE_1)), lambda: port.cordon(request(NODE_2, proposal="P-2"))
    )
    assert [result.outcome for result in results] == [Outcome.CHANGED, Outcome.CHANGED]
