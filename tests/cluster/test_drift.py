"""Is it seen and said when a cordon of ours no longer stands?"""

from collections.abc import Callable
from typing import Any

import pytest

from app.cluster.drift import cordon_drift
from app.cluster.ports import ClusterPort, Standing
from tests.cluster.conftest import NODE_1, request
from tests.cluster.test_uncordon import by_other
from tests.doubles.kubernetes import KubernetesDouble

Edit = Callable[[dict[str, Any]], Any]


def foreign_uncordon(node: dict[str, Any]) -> None:
    del node["spec"]["unschedulable"]


def taint_taken_off(node: dict[str, Any]) -> None:
    del node["spec"]["taints"]


def note_taken_off(node: dict[str, Any]) -> None:
    del node["metadata"]["annotations"]


def all_gone(node: dict[str, Any]) -> None:
    foreign_uncordon(node)
    taint_taken_off(node)
    note_taken_off(node)


def theirs_now(node: dict[str, Any]) -> None:
    taint_taken_off(node)
    note_taken_off(node)
    by_other(node)


CHANGES: list[tuple[Edit, Standing, str]] = [
    (foreign_uncordon, Standing.DRIFTED, "uncordoned by somebody: our taint is still there"),
    (taint_taken_off, Standing.DRIFTED, "our taint was removed by somebody"),
    (note_taken_off, Standing.DRIFTED, "our note was removed from the node"),
    (by_other, Standing.DRIFTED, "cordoned anew by somebody else (set through kubectl"),
    (all_gone, Standing.LIFTED, "Nothing of our cordon is left"),
    (theirs_now, Standing.BY_OTHER, "unschedulable by someone else (set through kubectl"),
]


@pytest.mark.parametrize(("edit", "standing", "words"), CHANGES)
def test_what_was_changed_is_said(
    double: KubernetesDouble, port: ClusterPort, edit: Edit, standing: Standing, words: str
) -> None:
    port.cordon(request())
    double.change(NODE_1, edit)
    check = port.verify_cordon(request())
    assert check.standing is standing
    assert words in check.message
    assert check.drift
    assert check.state is not None
    assert check.drift == cordon_drift(check.state, request())


def test_a_full_cordon_holds(port: ClusterPort) -> None:
    port.cordon(request())
    check = port.verify_cordon(request())
    assert check.standing is Standing.HOLDS
    assert check.drift == ()


def test_a_heartbeat_is_no_drift(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    double.change(NODE_1, lambda node: node["status"]["conditions"][0].update(reason="x"))
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    double.change(NODE_1, lambda node: node["spec"]["taints"].append(taint))
    assert port.verify_cordon(request()).standing is Standing.HOLDS


def test_another_case_on_the_node_is_drift(port: ClusterPort) -> None:
    port.cordon(request(case="C-8"))
    check = port.verify_cordon(request())
    assert check.standing is Standing.DRIFTED
    assert "names another case, C-8" in check.message


def test_a_replaced_machine_is_no_drift_but_another_node(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    double.remove(NODE_1)
    double.put("nodes", {"metadata": {"name": NODE_1}, "spec": {}})
    check = port.verify_cordon(request(expect_uid="00000000-0000-4000-8000-000000000001"))
    assert check.standing is Standing.REPLACED


def test_a_node_that_went_and_a_silent_cluster(double: KubernetesDouble, port: ClusterPort) -> None:
    double.set_fault("GET *", status=500)
    assert port.verify_cordon(request()).standing is Standing.UNKNOWN
    double.clear_faults()
    double.remove(NODE_1)
    check = port.verify_cordon(request())
    assert check.standing is Standing.GONE
    assert "knows no node" in check.message
