"""Does the double's machine live as the platform's do, and does Kubernetes see it?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from app.cluster.errors import MachineGone
from app.cluster.provider.ports import Answer, ProviderPort, TestRequest
from tests.doubles.kubernetes import KubernetesDouble
from tests.doubles.kubernetes.resources import RESOURCES
from tests.doubles.sagemaker import Platform, SagemakerDouble
from tests.provider.conftest import IDS, PortTo, StartSagemaker

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
HEALTH = "sagemaker.amazonaws.com/node-health-status"
CHECK = "sagemaker.amazonaws.com/deep-health-check-status"
STRESS = ("InstanceStress",)
_NODES = next(one for one in RESOURCES if one.plural == "nodes")


@pytest.fixture
def kubernetes() -> Iterator[KubernetesDouble]:
    """Give an empty Kubernetes."""
    with KubernetesDouble() as double:
        yield double


def names(kubernetes: KubernetesDouble) -> set[str]:
    found = kubernetes.store.list(_NODES, "")
    return {node["metadata"]["name"] for node in found}


def labels(kubernetes: KubernetesDouble, instance_id: str) -> dict[str, str]:
    node: dict[str, Any] = kubernetes.node(f"hyperpod-{instance_id}")
    found: dict[str, str] = node["metadata"]["labels"]
    return found


def others(port: ProviderPort) -> list[str]:
    """Name the machines that were not there at the start."""
    return [one.instance_id for one in port.machines() if one.instance_id not in IDS]


def test_a_replacement_goes_and_a_new_machine_comes(
    sagemaker: SagemakerDouble, port: ProviderPort, kubernetes: KubernetesDouble
) -> None:
    Platform(sagemaker, kubernetes)
    old = port.machine(IDS[0])
    port.replace([IDS[0]])
    assert labels(kubernetes, IDS[0])[HEALTH] == "UnschedulablePendingReplacement"
    sagemaker.advance(minutes=7)
    with pytest.raises(MachineGone):
        port.machine(IDS[0])
    assert f"hyperpod-{IDS[0]}" not in names(kubernetes)
    (new,) = others(port)
    assert port.machine(new).status == "Pending"
    assert f"hyperpod-{new}" not in names(kubernetes)
    sagemaker.advance(minutes=17)
    machine = port.machine(new)
    assert (machine.status, machine.logical_id) == ("Running", old.logical_id)
    assert machine.host != old.host
    assert labels(kubernetes, new)[HEALTH] == "Schedulable"
    words = [one.words for one in port.events(new, LONG_AGO)]
    assert "is starting as part of instance replacement" in words[0]
    assert "completed successfully as part of instance replacement" in words[1]


def test_the_logical_id_is_kept_or_not(start: StartSagemaker, port_to: PortTo) -> None:
    double = start(keeps_logical_id=False)
    port = port_to(double)
    old = port.machine(IDS[0])
    port.replace([IDS[0]])
    double.advance(hours=1)
    assert port.machine(others(port)[0]).logical_id not in (None, old.logical_id)


def test_a_replacement_can_fail(
    sagemaker: SagemakerDouble, port: ProviderPort, kubernetes: KubernetesDouble
) -> None:
    Platform(sagemaker, kubernetes)
    sagemaker.cluster.replacement_fails = True
    port.replace([IDS[0]])
    sagemaker.advance(hours=1)
    (new,) = others(port)
    machine = port.machine(new)
    assert (machine.status, machine.message) == (
        "Failure", "Lifecycle scripts did not run successfully.",
    )  # fmt: skip
    assert f"hyperpod-{new}" not in names(kubernetes)


def test_a_group_that_checks_on_start_checks_the_new_machine(
    sagemaker: SagemakerDouble, port: ProviderPort, kubernetes: KubernetesDouble
) -> None:
    Platform(sagemaker, kubernetes)
    sagemaker.cluster.groups["gpu"].checks_on_start = STRESS
    port.replace([IDS[0]])
    sagemaker.advance(minutes=30)
    (new,) = others(port)
    assert port.machine(new).status == "DeepHealthCheckInProgress"
    assert labels(kubernetes, new)[CHECK] == "InProgress"
    sagemaker.advance(minutes=60)
    assert port.machine(new).status == "Running"
    assert labels(kubernetes, new)[CHECK] == "Passed"


def test_under_an_autoscaler_nothing_comes_back_until_pods_wait(
    start: StartSagemaker, port_to: PortTo
) -> None:
    double = start(autoscaler="Karpenter")
    port, old = port_to(double), double.node(IDS[0])
    port.replace([IDS[0]])
    double.advance(hours=3)
    assert others(port) == []
    double.pods_wait(old)
    double.advance(hours=1)
    assert len(others(port)) == 1


def test_under_slurm_the_same_host_name_comes_back(start: StartSagemaker, port_to: PortTo) -> None:
    double = start(orchestrator="Slurm", continuous=False)
    port = port_to(double)
    old = port.machine(IDS[0])
    port.replace([IDS[0]])
    double.advance(hours=1)
    new = port.machine(others(port)[0])
    assert (new.host, new.logical_id, old.logical_id) == (old.host, None, None)


def test_a_controller_is_neither_replaced_nor_tested(
    start: StartSagemaker, port_to: PortTo
) -> None:
    double = start(orchestrator="Slurm")
    double.add_group("head", slurm_role="Controller")
    double.add("i-0c0ffee1", "head")
    port = port_to(double)
    assert port.replace(["i-0c0ffee1"])[0].code == "InvalidInstanceStatus"
    assert port.test(TestRequest({"head": ("i-0c0ffee1",)}, STRESS))[0].answer is Answer.REFUSED


def test_a_label_is_an_order_only_where_recovery_is_automatic(
    start: StartSagemaker, kubernetes: KubernetesDouble
) -> None:
    for recovery, status in (("None", "Running"), ("Automatic", "ShuttingDown")):
        double = start(node_recovery=recovery)
        Platform(double, kubernetes)

        def order(node: dict[str, Any]) -> None:
            node["metadata"]["labels"][HEALTH] = "UnschedulablePendingReplacement"

        kubernetes.change(f"hyperpod-{IDS[0]}", order)
        double.advance(minutes=1)
        assert double.node(IDS[0]).status == status


CHECKED = [
    ("pass", "Running", "Passed", "Schedulable"),
    ("fail", "Running", "Failed", "Unschedulable"),
    ("silent", "Running", None, "Schedulable"),
    ("stuck", "DeepHealthCheckInProgress", "InProgress", "Unschedulable"),
    ("reboot", "Pending", "Failed", "UnschedulablePendingReboot"),
    ("replace", "ShuttingDown", "Failed", "UnschedulablePendingReplacement"),
]


@pytest.mark.parametrize(("ends", "status", "check", "health"), CHECKED)
def test_a_deep_health_check_ends_in_each_way(
    ends: str,
    status: str,
    check: str | None,
    health: str,
    sagemaker: SagemakerDouble,
    port: ProviderPort,
    kubernetes: KubernetesDouble,
) -> None:
    Platform(sagemaker, kubernetes)
    sagemaker.node(IDS[0]).check_ends = ends
    port.test(TestRequest({"gpu": IDS[:1]}, STRESS))
    assert port.machine(IDS[0]).status == "Running"  # accepted is not yet in progress
    sagemaker.advance(minutes=2)
    assert port.machine(IDS[0]).status == "DeepHealthCheckInProgress"
    assert labels(kubernetes, IDS[0])[CHECK] == "InProgress"
    sagemaker.advance(minutes=70)
    assert port.machine(IDS[0]).status == status
    assert labels(kubernetes, IDS[0]).get(CHECK) == check
    assert labels(kubernetes, IDS[0])[HEALTH] == health
    done = "InProgress" if ends == "stuck" else "Done"
    assert [one.status for one in port.test_runs(LONG_AGO)] == [done]


def test_a_busy_machine_is_skipped_and_that_looks_like_done(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.node(IDS[0]).busy = True
    port.test(TestRequest({"gpu": IDS[:1]}, STRESS))
    sagemaker.advance(minutes=11)
    assert port.machine(IDS[0]).status == "Running"
    assert [one.status for one in port.test_runs(LONG_AGO)] == ["Done"]


def test_a_second_request_can_be_merged_into_the_first(
    start: StartSagemaker, port_to: PortTo
) -> None:
    double = start(overlap="merge")
    port = port_to(double)
    for one in IDS[:2]:
        assert port.test(TestRequest({"gpu": (one,)}, STRESS))[0].answer is Answer.ACCEPTED
    (run,) = port.test_runs(LONG_AGO)
    assert run.machines == {"gpu": IDS[:2]}


def test_a_second_request_can_supersede_the_first(start: StartSagemaker, port_to: PortTo) -> None:
    double = start(overlap="supersede")
    port = port_to(double)
    for one in IDS[:2]:
        port.test(TestRequest({"gpu": (one,)}, STRESS))
        double.advance(seconds=1)
    newest, first = port.test_runs(LONG_AGO)
    assert (newest.status, first.status) == ("InProgress", "Superseded")
    assert newest.machines == {"gpu": IDS[:2]}
    double.advance(hours=2)
    assert [one.status for one in port.test_runs(LONG_AGO)] == ["Done", "Superseded"]


def test_a_request_for_a_whole_group_is_read_as_that(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    part = {"InstanceGroupName": "gpu", "DeepHealthChecks": list(STRESS)}
    sagemaker.checks.start([{**part, "InstanceIds": [IDS[0]]}, part])
    assert port.test_runs(LONG_AGO)[0].machines == {"gpu": ()}
