"""Is everything that the provider says about a cluster and its machines read, and nothing more?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.cluster.errors import (
    ClusterError,
    ClusterFailed,
    ClusterNotConfigured,
    ClusterRefused,
    ClusterTimeout,
    ClusterUnreachable,
    MachineGone,
)
from app.cluster.provider.ports import ProviderPort, TestRequest
from app.cluster.provider.reading import slurm_role
from tests.doubles.sagemaker import Fault, SagemakerDouble, throttled
from tests.provider.conftest import IDS, PortTo, StartSagemaker

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_cluster_tells_how_it_recovers_scales_and_patches(
    start: StartSagemaker, port_to: PortTo
) -> None:
    double = start(autoscaler="Karpenter")
    night = datetime(2026, 3, 8, 2, 0, tzinfo=UTC)
    double.add_group("gpu-2", patching="WhenIdle", next_patch=night)
    double.add_group("checked", checks_on_start=("InstanceStress", "InstanceConnectivity"))
    fleet = port_to(double).fleet()
    assert (fleet.name, fleet.id, fleet.status) == ("alpine", "4k2xq9mlunpa", "InService")
    assert (fleet.orchestrator, fleet.node_recovery) == ("eks", "Automatic")
    assert (fleet.continuous, fleet.autoscaler) == (True, "Karpenter")
    gpu, patched, checked = (fleet.group(name) for name in ("gpu", "gpu-2", "checked"))
    assert gpu is not None
    assert (gpu.current, gpu.target, gpu.instance_type) == (4, 4, "ml.p5.48xlarge")
    assert (gpu.patching, gpu.next_patch_at, gpu.checks_on_start) == (None, None, ())
    assert patched is not None
    assert (patched.patching, patched.next_patch_at) == ("WhenIdle", night)
    assert checked is not None
    assert checked.checks_on_start == ("InstanceStress", "InstanceConnectivity")
    assert fleet.group("other") is None
    json.dumps(fleet.raw)  # what is kept as evidence has to be plain


def test_what_a_cluster_does_not_say_is_none(start: StartSagemaker, port_to: PortTo) -> None:
    fleet = port_to(start(orchestrator=None, node_recovery=None, continuous=False)).fleet()
    assert (fleet.orchestrator, fleet.node_recovery, fleet.autoscaler) == (None, None, None)
    assert fleet.continuous is False


def test_a_slurm_cluster_says_which_group_controls_it(
    start: StartSagemaker, port_to: PortTo
) -> None:
    double = start(orchestrator="Slurm", continuous=False)
    double.add_group("head", slurm_role="Controller")
    fleet = port_to(double).fleet()
    assert fleet.orchestrator == "slurm"
    assert [slurm_role(fleet, name) for name in ("head", "gpu", "none", None)] == [
        "Controller", None, None, None,
    ]  # fmt: skip


def test_a_cluster_is_also_found_by_its_arn(sagemaker: SagemakerDouble, port_to: PortTo) -> None:
    arn = sagemaker.cluster.arn
    entry = {"cluster": arn, "region": None}
    assert port_to(sagemaker, **entry).fleet().name == "alpine"


def test_a_machine_is_described(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    sagemaker.node(IDS[1]).message = "an earlier failure"
    machine = port.machine(IDS[1])
    assert (machine.instance_id, machine.group, machine.status) == (IDS[1], "gpu", "Running")
    assert machine.message == "an earlier failure"
    assert machine.logical_id == sagemaker.node(IDS[1]).logical_id
    assert machine.host == sagemaker.node(IDS[1]).host
    assert (machine.zone, machine.instance_type) == ("us-west-2a", "ml.p5.48xlarge")
    assert machine.launched_at == sagemaker.node(IDS[1]).launched
    json.dumps(machine.raw)


@pytest.mark.parametrize("form", ["ResourceNotFound", "ValidationException"])
def test_a_missing_machine_is_gone_in_either_form(
    form: str, start: StartSagemaker, port_to: PortTo
) -> None:
    port = port_to(start(missing_as=form))
    with pytest.raises(MachineGone, match="knows no machine i-0c0ffee0000000099"):
        port.machine("i-0c0ffee0000000099")


@pytest.mark.parametrize("form", ["ResourceNotFound", "ValidationException"])
def test_a_missing_cluster_is_no_missing_machine(
    form: str, start: StartSagemaker, port_to: PortTo
) -> None:
    port = port_to(start(missing_as=form), cluster="other")
    for ask in (lambda: port.machine(IDS[0]), port.fleet, port.machines):
        with pytest.raises(ClusterRefused, match="knows no such cluster"):
            ask()


def test_a_machine_that_cannot_be_told_from_a_missing_cluster_is_not_called_gone(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(Fault("DescribeCluster", 500))
    with pytest.raises(ClusterFailed):
        port.machine("i-0c0ffee0000000099")


def test_a_machine_with_the_status_not_found_is_gone(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.node(IDS[0]).status = "NotFound"
    with pytest.raises(MachineGone):
        port.machine(IDS[0])


def test_the_name_of_a_node_is_not_asked_for(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    with pytest.raises(ClusterRefused, match="is no instance id"):
        port.machine(f"hyperpod-{IDS[0]}")
    assert sagemaker.requests == []


def test_all_machines_are_read_page_by_page_and_a_group_is_exactly_that(
    start: StartSagemaker, port_to: PortTo
) -> None:
    ids = tuple(f"i-0c0ffee00000{number:05x}" for number in range(23))
    double = start(ids, page_limit=10)
    double.add_group("gpu-2")
    double.add("i-0c0ffee1", "gpu-2")
    port = port_to(double)
    assert len(port.machines()) == 24
    assert len(double.calls_of("ListClusterNodes")) == 3
    assert {one.instance_id for one in port.machines("gpu")} == set(ids)
    assert [one.instance_id for one in port.machines("gpu-2")] == ["i-0c0ffee1"]


def test_events_come_in_order_and_in_pairs(sagemaker: SagemakerDouble, port: ProviderPort) -> None:
    sagemaker.cluster.replacement_fails = True
    assert port.events(None, LONG_AGO) == ()
    port.replace([IDS[0]])
    sagemaker.advance(hours=1)
    events = port.events(None, LONG_AGO)
    assert [one.level for one in events] == ["Info", "Info", "Error", "Error"]
    assert [one.at for one in events] == sorted(one.at for one in events)
    assert events[2].words == events[3].words
    assert events[2].id != events[3].id
    assert [one.words for one in port.events(IDS[0], LONG_AGO)] == [
        f"Instance {IDS[0]} terminated."
    ]
    assert port.events(None, sagemaker.clock.now() + timedelta(minutes=5)) == ()


def test_a_cluster_that_keeps_no_events_has_none(start: StartSagemaker, port_to: PortTo) -> None:
    assert port_to(start(continuous=False)).events(None, LONG_AGO) == ()


def test_events_that_are_refused_are_not_called_none(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(Fault("ListClusterEvents", 400, "AccessDeniedException", "not you"))
    with pytest.raises(ClusterRefused, match="does not allow us this"):
        port.events(None, LONG_AGO)


def test_requests_for_checks_are_listed_with_what_was_asked_for(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    before = sagemaker.clock.now()
    assert port.test_runs(before) == ()
    port.test(TestRequest({"gpu": IDS[:2]}, ("InstanceStress",)))
    (run,) = port.test_runs(before)
    assert (run.status, run.created_at) == ("InProgress", before)
    assert (run.machines, run.checks) == ({"gpu": IDS[:2]}, ("InstanceStress",))
    sagemaker.advance(hours=2)
    assert port.test_runs(before)[0].status == "Done"
    assert port.test_runs(sagemaker.clock.now()) == ()


FAILURES: list[tuple[Fault, type[ClusterError], str]] = [
    (throttled("*"), ClusterFailed, "asks for fewer requests"),
    (Fault("*", 503, "ServiceUnavailable"), ClusterFailed, "SageMaker failed"),
    (Fault("*", html=True), ClusterFailed, "SageMaker failed"),
    (Fault("*", 200, html=True), ClusterFailed, "cannot be read"),
    (Fault("*", half=True), ClusterFailed, "cannot be read"),
    (Fault("*", 400, "AccessDeniedException", "no"), ClusterRefused, "does not allow us"),
    (Fault("*", 400, "ExpiredTokenException", "old"), ClusterRefused, "our credentials"),
    (Fault("*", reset=True), ClusterUnreachable, "connection broke"),
    (Fault("*", hang=True), ClusterTimeout, "No answer from SageMaker within 0.3 s"),
]


@pytest.mark.parametrize(("fault", "kind", "words"), FAILURES)
def test_every_way_of_failing_is_told_in_words(
    fault: Fault, kind: type[ClusterError], words: str, start: StartSagemaker, port_to: PortTo
) -> None:
    double = start()
    port = port_to(double, read_timeout_s=0.3)
    double.set_fault(fault)
    asks = (port.fleet, lambda: port.machine(IDS[0]), port.machines)
    for ask in asks[:2] if fault.hang else asks:
        with pytest.raises(kind, match=words):
            ask()


def test_a_question_is_asked_again_after_a_failure_that_passes(
    sagemaker: SagemakerDouble, port: ProviderPort
) -> None:
    sagemaker.set_fault(Fault("DescribeCluster", 500, times=1))
    assert port.fleet().name == "alpine"
    assert len(sagemaker.calls_of("DescribeCluster")) == 2


def test_a_machine_that_nobody_listens_at_is_unreachable(
    start: StartSagemaker, port_to: PortTo
) -> None:
    port = port_to(start(), endpoint_url="http://127.0.0.1:1")
    with pytest.raises(ClusterUnreachable):
        port.fleet()


def test_without_credentials_nothing_is_asked(
    sagemaker: SagemakerDouble, port: ProviderPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    with pytest.raises(ClusterNotConfigured, match="No AWS credentials"):
        port.fleet()
    assert sagemaker.requests == []
