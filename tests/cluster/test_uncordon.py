"""Is our cordon lifted, only ours, and only what is still ours of it?"""

from typing import Any

from app.cluster.ports import ClusterPort, Outcome
from tests.cluster.conftest import NODE_1, request
from tests.doubles.kubernetes import KubernetesDouble


def by_other(node: dict[str, Any]) -> None:
    """Uncordon and cordon anew, as another client does through the API."""
    node["spec"]["unschedulable"] = True
    for entry in node["metadata"]["managedFields"]:
        entry["fieldsV1"].get("f:spec", {}).pop("f:unschedulable", None)
    node["metadata"]["managedFields"].append(
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-03-02T09:00:00Z",
            "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
        }
    )


def test_undo_brings_the_node_back_as_it_was(double: KubernetesDouble, port: ClusterPort) -> None:
    others = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    double.change(NODE_1, lambda node: node["spec"].update(taints=others))
    before = double.node(NODE_1)
    port.cordon(request())
    result = port.uncordon(request(by="bob"))
    assert result.outcome is Outcome.CHANGED
    assert result.message == f"{NODE_1} is uncordoned: our taint and note are gone."
    assert result.event_written
    after = double.node(NODE_1)
    assert after["spec"] == before["spec"]
    assert not after["metadata"].get("annotations")
    assert [event["reason"] for event in double.events()] == [
        "SDCSuspectCordoned",
        "SDCSuspectUncordoned",
    ]
    assert double.events()[1]["type"] == "Normal"


def test_a_second_undo_sends_nothing(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    port.uncordon(request())
    sent = len(double.calls)
    result = port.uncordon(request())
    assert result.outcome is Outcome.ALREADY_OURS
    assert "nothing of ours is on it" in result.message
    assert len(double.calls) == sent


def test_a_foreign_cordon_that_came_after_ours_stays(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    double.change(NODE_1, by_other)
    result = port.uncordon(request())
    assert result.outcome is Outcome.CHANGED
    assert "stays unschedulable: cordoned by someone else since" in result.message
    assert "kubectl at 2026-03-02 09:00:00 UTC" in result.details["left_unschedulable"]
    node = double.node(NODE_1)
    assert node["spec"]["unschedulable"] is True
    assert "taints" not in node["spec"]
    assert not node["metadata"].get("annotations")


def test_a_note_that_does_not_say_what_was_before_keeps_the_node_out(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    key = "silent-witness.dev/prev-unschedulable"
    double.change(NODE_1, lambda node: node["metadata"]["annotations"].pop(key))
    result = port.uncordon(request())
    assert "does not say that it was schedulable before" in result.message
    assert double.node(NODE_1)["spec"]["unschedulable"] is True


def test_what_a_foreign_uncordon_left_is_cleared(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    double.change(NODE_1, lambda node: node["spec"].pop("unschedulable"))
    assert port.uncordon(request()).outcome is Outcome.CHANGED
    assert "taints" not in double.node(NODE_1)["spec"]


def test_a_cordon_for_another_case_is_not_lifted(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    sent = len(double.calls)
    result = port.uncordon(request(case="C-9"))
    assert result.outcome is Outcome.REFUSED
    assert "cordoned for another case, C-7" in result.message
    assert len(double.calls) == sent


def test_a_taint_without_its_note_is_left_to_a_person(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    double.change(NODE_1, lambda node: node["metadata"].pop("annotations"))
    result = port.uncordon(request())
    assert result.outcome is Outcome.REFUSED
    assert "a person must look" in result.message
    assert double.node(NODE_1)["spec"]["unschedulable"] is True


def test_another_machine_is_not_uncordoned(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    result = port.uncordon(request(expect_uid="11111111-0000-4000-8000-000000000001"))
    assert result.outcome is Outcome.REFUSED
    assert double.node(NODE_1)["spec"]["unschedulable"] is True


def test_a_node_that_went_is_final(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    double.remove(NODE_1)
    assert port.uncordon(request()).outcome is Outcome.GONE


def test_a_lost_answer_is_settled_by_reading(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    path = f"PATCH /api/v1/nodes/{NODE_1}"
    double.set_fault(path, dry_run=False, reset=True, apply_first=True)
    result = port.uncordon(request())
    assert result.outcome is Outcome.CHANGED
    assert "unschedulable" not in double.node(NODE_1)["spec"]
    assert len(double.changes()) == 2
