"""Is a GKE node handed over for repair once, by label or by a report, and followed from there?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.actions.deciders import Decider
from app.actions.lineage import read_lineage
from app.actions.undo import ask_again
from app.cluster.label_orders import REPORT_STATUS
from app.cluster.provider import registry
from app.errors import Problem
from app.store import proposals
from app.store.proposals import Proposal
from tests.doubles.compute_engine import ComputeEngineDouble
from tests.orders.conftest import MakeYard
from tests.orders.yard import CLUSTER, Yard, instance

NAME = f"hyperpod-{instance(1)}"  # the yard's way to name nodes; here it is only a name
LABELS = {"cloud.google.com/gke-nodepool": "slice-a", "nvidia.com/gpu.present": "true"}
REFUSED = {"status": "refused"}
Set = Callable[..., Yard]


@pytest.fixture
def compute() -> Iterator[ComputeEngineDouble]:
    """Run a project with one machine."""
    with ComputeEngineDouble() as double:
        yield double


@pytest.fixture
def gke(make_yard: MakeYard, tmp_path: Path) -> Iterator[Set]:
    """Give a cluster of one GKE node, whose provider is Google."""
    with ExitStack() as stack:

        def make(entry: dict[str, Any], provider_id: str = "", **labels: str) -> Yard:
            yard = make_yard(machines=1)
            yard.kubernetes.change(NAME, lambda obj: _as_gke(obj, provider_id, labels))
            providers = registry.providers({CLUSTER: entry}, folder=tmp_path)
            stack.callback(providers.close)
            return replace(yard, context=replace(yard.context, providers=providers))

        yield make


def _as_gke(obj: dict[str, Any], provider_id: str, labels: dict[str, str]) -> None:
    obj["metadata"]["labels"] = {**LABELS, **labels}
    obj["spec"]["providerID"] = provider_id or "gce://my-project/us-east5-a/gpu-1"


def _approve(yard: Yard, way: str) -> Proposal:
    return yard.approve("replace", 1, way=way)


def test_a_gpu_node_is_labelled_and_followed_to_its_report(
    gke: Set, compute: ComputeEngineDouble
) -> None:
    yard = gke(compute.entry())
    sent = yard.run(_approve(yard, "gke_label"))
    assert sent.status == "accepted", sent.outcome
    labels = yard.kubernetes.node(NAME)["metadata"]["labels"]
    assert labels["cloud.google.com/fault-behavior"] == "SDC"
    for said, status in (
        ("PodsEvicted", "waiting"), ("OperationRUNNING", "waiting"), ("OperationDone", "verified"),
    ):  # fmt: skip
        yard.kubernetes.change(NAME, lambda obj, said=said: _label(obj, REPORT_STATUS, said))  # type: ignore[misc]
        yard.pass_time(15)
        assert yard.row(sent.id).status == status
    assert len(yard.kubernetes.changes()) == 1
    assert compute.reports == []


def test_a_report_that_fails_is_said_to_have_failed(gke: Set, compute: ComputeEngineDouble) -> None:
    yard = gke(compute.entry())
    sent = yard.run(_approve(yard, "gke_label"))
    yard.kubernetes.change(NAME, lambda obj: _label(obj, REPORT_STATUS, "ERROR"))
    yard.pass_time(15)
    assert yard.row(sent.id).status == "failed"


def test_the_label_is_not_for_tpus(gke: Set, compute: ComputeEngineDouble) -> None:
    yard = gke(compute.entry(), **{"cloud.google.com/gke-tpu-accelerator": "tpu7x"})
    sent = yard.run(_approve(yard, "gke_label"))
    assert sent.status == "refused"
    assert "for GPU machines only" in str(sent.outcome)


def test_a_host_is_reported_once_and_followed(gke: Set, compute: ComputeEngineDouble) -> None:
    yard = gke(compute.entry(), compute.provider_id())
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == "accepted", sent.outcome
    (report,) = compute.reports
    assert report["faultReasons"][0]["behavior"] == "SILENT_DATA_CORRUPTION"
    yard.pass_time(5)
    assert yard.row(sent.id).status == "waiting"
    compute.ends()
    yard.pass_time(15)
    assert yard.row(sent.id).status == "verified"
    assert len(compute.reports) == 1


def test_a_report_whose_answer_is_lost_is_unknown_and_not_sent_again(
    gke: Set, compute: ComputeEngineDouble
) -> None:
    yard = gke(compute.entry(), compute.provider_id())
    compute.cut_after = True
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == "unknown"
    yard.pass_time(60, step=20)
    assert yard.row(sent.id).status == "unknown"
    assert len(compute.reports) == 1


@pytest.mark.parametrize(
    ("refusal", "status"), [((403, "denied"), "refused"), ((429, "too many"), "refused"),
                            ((503, "backend"), "unknown")],
)  # fmt: skip
def test_each_no_is_what_it_is(
    gke: Set, compute: ComputeEngineDouble, refusal: tuple[int, str], status: str
) -> None:
    yard = gke(compute.entry(), compute.provider_id())
    compute.refuse = refusal
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == status, sent.outcome
    assert refusal[1] in str(sent.outcome)


@pytest.mark.parametrize(
    ("provider_id", "status"),
    [
        ("gce://my-project/us-east5-a/not-there", "gone"),
        ("gce://another-project/us-east5-a/slice-a-host-1", "refused"),
        ("aws:///usw2-az1/i-0c0ffee0000000001", "refused"),
    ],
)
def test_a_machine_that_is_gone_or_elsewhere_is_not_reported(
    gke: Set, compute: ComputeEngineDouble, provider_id: str, status: str
) -> None:
    yard = gke(compute.entry(), provider_id)
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == status, sent.outcome
    assert compute.reports == []


def test_the_node_says_in_which_way_where_nobody_chose(
    gke: Set, compute: ComputeEngineDouble
) -> None:
    tpu = {"cloud.google.com/gke-tpu-accelerator": "tpu7x"}
    yard = gke(compute.entry(), compute.provider_id(), **tpu)
    proposal = yard.approve("replace", 1)
    lineage = read_lineage(yard.context, proposal)
    assert lineage["way"] == "gke_host"
    yard.context.store.write(
        lambda c: proposals.move(c, proposal.id, ("approved",), {"lineage": dict(lineage)})
    )
    assert yard.run(proposal).status == "accepted"
    assert len(compute.reports) == 1


def test_a_cordon_of_one_host_proposes_those_of_its_slice(make_yard: MakeYard) -> None:
    yard = make_yard(machines=4)
    tpu = {
        "cloud.google.com/gke-nodepool": "slice-a", "cloud.google.com/gke-tpu-topology": "2x2x2",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice",
    }  # fmt: skip
    for number in (1, 2, 3):
        yard.kubernetes.change(f"hyperpod-{instance(number)}", lambda obj: _as_tpu(obj, tpu, "4"))
    alone = {**tpu, "cloud.google.com/gke-nodepool": "single"}
    yard.kubernetes.change(f"hyperpod-{instance(4)}", lambda obj: _as_tpu(obj, alone, "8"))
    assert yard.run(yard.approve("cordon", 1)).status == "verified"
    assert yard.run(yard.approve("cordon", 4)).status == "verified"
    with yard.context.store.reading() as connection:
        found = proposals.of_cases(connection, [1])[1]
    waiting = {one.node_name: one for one in found if one.status == "proposed"}
    assert set(waiting) == {f"hyperpod-{instance(number)}" for number in (2, 3)}
    assert all("one slice with" in one.why for one in waiting.values())
    assert {one.node_id for one in waiting.values()} == {2, 3}  # so they count as out of service
    refused = waiting[f"hyperpod-{instance(2)}"]
    yard.context.store.write(lambda c: proposals.move(c, refused.id, ("proposed",), REFUSED))
    again = ask_again(yard.context, refused.id, Decider("alice", "operator"))
    assert (again.node_name, again.status) == (refused.node_name, "proposed")
    with pytest.raises(Problem, match="asked for again already"):
        ask_again(yard.context, refused.id, Decider("alice", "operator"))


def _as_tpu(obj: dict[str, Any], labels: dict[str, str], chips: str) -> None:
    obj["metadata"]["labels"] = dict(labels)
    obj["status"]["allocatable"] = {"google.com/tpu": chips}


@pytest.mark.parametrize("way", ["gke_label", "gke_host"])
def test_a_name_that_came_back_with_another_machine_is_left_alone(
    gke: Set, compute: ComputeEngineDouble, way: str
) -> None:
    yard = gke(compute.entry(), compute.provider_id())
    for values, why in (
        ({"node_uid": "uid-of-the-machine-before"}, "Another machine carries the name"),
        ({"instance_id": None}, "Nothing says which machine was approved"),
    ):
        proposal = _approve(yard, way)
        yard.context.store.write(
            lambda c, p=proposal, v=values: proposals.move(c, p.id, ("approved",), v)  # type: ignore[misc]
        )
        sent = yard.run(proposal)
        assert sent.status == "refused", sent.outcome
        assert why in str(sent.outcome)
        yard.sagemaker.advance(minutes=1)
    assert compute.reports == []
    assert yard.kubernetes.changes() == []


def test_what_is_only_recorded_is_not_sent(gke: Set, compute: ComputeEngineDouble) -> None:
    yard = gke(compute.entry(mode="record"), compute.provider_id())
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == "refused"
    assert sent.result == "dry_run"
    assert compute.reports == []


def test_without_a_token_nothing_is_sent(
    gke: Set, compute: ComputeEngineDouble, tmp_path: Path
) -> None:
    yard = gke(compute.entry(token_file=str(tmp_path / "none")), compute.provider_id())
    sent = yard.run(_approve(yard, "gke_host"))
    assert sent.status == "failed"
    assert "cannot be read" in str(sent.outcome)
    assert compute.reports == []


def _label(obj: dict[str, Any], key: str, value: str) -> None:
    obj["metadata"]["labels"][key] = value
