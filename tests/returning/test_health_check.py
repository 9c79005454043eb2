"""Is a passed health check a fact beside the alarm, and never the end of it?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.actions import hardware_tests as testing
from app.actions import node_labels, writing
from app.actions.node_labels import STATUS_LABEL
from app.actions.orders.ports import TestSeen
from app.store import hardware_tests, proposals
from app.store.hardware_tests import Machine
from app.store.ids import read
from tests.actions.fleet import LAST_GPU_OF_SUSPECT, NODES, SUSPECT, alarm, node, rank_map
from tests.actions.fleet import transient as a_transient
from tests.actions.service import Service
from tests.cases.conftest import documents, raw
from tests.doubles.kubernetes.double import KubernetesDouble

AT = "2026-03-02T10:15:00Z"
BOTH = {
    "test_a_passed_check_is_a_fact_beside_three_alarms",
    "test_what_was_ordered_weighs_once_with_its_recall",
}


def one_verdict(kind: str) -> dict[str, Any]:
    """Raise an alarm whose pair was settled so."""
    raised = a_transient("llama-953m", AT, 30, [13, 5], 21)
    raised["alarm"]["verdicts"][0]["kind"] = kind
    return raised


@pytest.fixture
def passed() -> Iterator[KubernetesDouble]:
    """Run a cluster whose suspect node carries a passed deep health check."""
    nodes = [node(name) for name in NODES if name != SUSPECT]
    nodes.append(node(SUSPECT, labels={STATUS_LABEL: "Passed"}))
    with KubernetesDouble({"nodes": nodes}) as double:
        yield double


def ordered(service: Service, result: str, kind: str = "deep_health_check", **more: Any) -> bool:
    """Say what became of a test that was ordered for the suspect, in the engine's words."""
    shown = service.proposal(more.pop("of", "cordon"))
    seen = TestSeen(kind, result, "provider", f"It {result}.", ("InstanceStress",))  # type: ignore[arg-type]
    now = more.pop("now", datetime.now(UTC))

    def write(connection: Any) -> bool:
        proposal = proposals.get(connection, read(shown["id"]))
        assert proposal is not None
        settings = service.context.settings
        return testing.note(connection, settings, proposal, seen, now)

    return writing.write(service.context, write)


def the_case(service: Service) -> dict[str, Any]:
    """Read the only case."""
    (one,) = service.read("/cases")["items"]
    found: dict[str, Any] = service.read(f"/cases/{one['id']}")
    return found


@pytest.mark.parametrize("which", [None, 0, 1, 2])
def test_a_passed_check_is_a_fact_beside_three_alarms(
    make_service: Callable[..., Service], which: int | None
) -> None:
    """Case 58: a persistent verdict, a transient one, a culprit; one at a time, and all of them."""
    stored = json.loads(raw("58", "k8s.json"))
    rank_map_58, *raised = documents("58", "rankmap.json", "alarms.ndjson")
    chosen = raised if which is None else [raised[which]]
    with KubernetesDouble(stored) as cluster:
        service = make_service(cluster)
        posted = [{"kind": "alarm", **one} for one in chosen]
        service.post({"kind": "rank_map", **rank_map_58}, *posted)
        before = the_case(service)
        assert before["headline"].startswith("Replace" if which is None else "Cordon")
        assert node_labels.watch(service.context) == 1
        assert node_labels.watch(service.context) == 0

        after = the_case(service)
        assert after["status"] == "open"
        assert after["alarms"] == len(chosen)
        assert after["evidence_version"] == before["evidence_version"] + 1
        assert after["score"] == before["score"], "a label without a time weighs nothing"
        assert "clears nothing" in after["advice"]
        page = service.person().get(f"/cases/{after['id']}")
        assert "Health check passed" in page
        assert "Labels carry no time" in page
        wanted = {
            None: "Replace",  # three kinds on one GPU: it recurs
            1: "Release, or audit once more",
        }.get(which, "Keep quarantined, replace after review")
        assert after["headline"].startswith(wanted), after["headline"]
        assert cluster.calls == [], "nothing is done by itself"
        assert service.proposals("uncordon") == []
        assert service.read(f"/gpus/{after['gpu_uuid']}")["incidents"], "it stays in the history"


def test_a_label_that_was_seen_to_change_has_a_time(
    make_service: Callable[..., Service], passed: KubernetesDouble
) -> None:
    service = make_service(passed)
    service.post(rank_map(), one_verdict("transient"))

    def say(value: str) -> None:
        def put(stored: dict[str, Any]) -> None:
            stored["metadata"]["labels"][STATUS_LABEL] = value

        passed.change(SUSPECT, put)

    say("InProgress")
    node_labels.watch(service.context)
    assert "Health check is running" in the_case(service)["advice"]
    say("Passed")
    assert node_labels.watch(service.context) == 1
    case = the_case(service)
    assert case["headline"].startswith("Release, or audit once more")
    say("Failed")
    assert node_labels.watch(service.context) == 1
    case = the_case(service)
    assert case["headline"].startswith("Replace")
    machine = Machine("alpine", None, SUSPECT.removeprefix("hyperpod-"))
    with service.context.store.reading() as connection:
        found = hardware_tests.newest_of(connection, machine, None)
    assert [one.result for one in found] == ["failed", "passed"]
    assert all(one.begun_at for one in found)


def test_a_label_of_another_machine_is_not_the_suspects(
    make_service: Callable[..., Service], passed: KubernetesDouble
) -> None:
    service = make_service(passed)
    service.post(rank_map(), one_verdict("transient"))

    def rebuild(stored: dict[str, Any]) -> None:
        stored["spec"]["providerID"] = (
            "aws:///usw2-az1/sagemaker/cluster/hyperpod-4k2xq9mlunp-i-0c0ffee0000000099"
        )
        stored["metadata"]["name"] = SUSPECT

    passed.change(SUSPECT, rebuild)
    assert node_labels.watch(service.context) == 0


def test_what_was_ordered_weighs_once_with_its_recall(make_service: Callable[..., Service]) -> None:
    service = make_service()
    service.post(rank_map(), alarm())
    before = the_case(service)
    assert ordered(service, "running")
    assert the_case(service)["evidence_version"] == before["evidence_version"]
    assert ordered(service, "passed")
    assert not ordered(service, "passed")
    assert not ordered(service, "running")
    after = the_case(service)
    assert after["evidence_version"] == before["evidence_version"] + 1
    assert (round(before["score"]["p"], 2), round(after["score"]["p"], 2)) == (0.82, 0.78)
    page = service.person().get(f"/cases/{after['id']}")
    assert "Test passed: deep health check, recall 0.25" in page
    gpu = service.read(f"/gpus/{LAST_GPU_OF_SUSPECT}")
    assert round(gpu["p_faulty"], 2) == 0.78


def test_a_check_from_before_the_newest_alarm_releases_nobody(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    service.post(rank_map(), one_verdict("transient"))
    long_ago = datetime(2026, 3, 2, 11, tzinfo=UTC)
    assert ordered(service, "passed", now=long_ago)
    assert the_case(service)["headline"].startswith("Release")
    later = (long_ago + timedelta(days=1)).isoformat()
    service.post(
        alarm(time=later, step=90, nonfinite=[13], mismatched_pairs=[], culprits=[],
              suspect_window=[81, 90])
    )  # fmt: skip
    case = the_case(service)
    assert not case["headline"].startswith("Release")
    assert "before the newest alarm" in service.person().get(f"/cases/{case['id']}")


def test_a_failed_check_outweighs_a_label_without_a_time(
    make_service: Callable[..., Service], passed: KubernetesDouble
) -> None:
    service = make_service(passed)
    service.post(rank_map(), one_verdict("transient"))
    assert ordered(service, "failed")
    assert node_labels.watch(service.context) == 1
    assert the_case(service)["headline"].startswith("Replace")


def test_a_program_reads_tests_and_checklist(make_service: Callable[..., Service]) -> None:
    service = make_service()
    service.post(rank_map(), one_verdict("transient"))
    ordered(service, "passed")
    replay = {**alarm(time="2026-03-02T12:00:00Z"), "kind": "replay", "rank": 13, "step": 30,
              "witnesses": [21, 29], "replays": 20, "wrong": 0}  # fmt: skip
    service.post({key: value for key, value in replay.items() if key != "alarm"})
    case = the_case(service)
    (test,) = case["tests"]
    assert (test["kind"], test["result"], test["recall_assumed"]) == (
        "deep_health_check", "passed", 0.25,
    )  # fmt: skip
    back = case["return_to_service"]
    assert back["before_release"] == "true"
    states = {one["code"]: one["state"] for one in back["items"]}
    assert states == {
        "replays": "true", "test": "true", "probation": "not known", "watch": "not known",
    }  # fmt: skip
    page = service.person().get(f"/cases/{case['id']}")
    assert "Return to service" in page
    assert "20 replays without an error bound its rate at 15% only." in page
