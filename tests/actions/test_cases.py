"""What happens on nodes that are somebody else's, gone, shared, protected or replaced?"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.actions import verify
from tests.actions.fleet import NODES, SUSPECT, alarm, node, pod, rank_map, transient
from tests.actions.service import Service, until
from tests.doubles.kubernetes.double import KubernetesDouble

MAINTENANCE = {"ops.example.com/maintenance": "CHG-77 2026-02-28T08:00:00Z by storage team"}


def test_a_node_cordoned_by_someone_else_stays_theirs(make_service: Callable[..., Service]) -> None:
    others = [node(name) for name in NODES if name != SUSPECT]
    theirs = node(SUSPECT, annotations=MAINTENANCE, spec={"unschedulable": True})
    with KubernetesDouble({"nodes": [*others, theirs]}) as cluster:
        service = make_service(cluster)
        service.post(rank_map(), alarm())
        proposal = service.proposal()
        preview = service.person().get(f"/proposals/{proposal['id']}")
        assert "Already cordoned by someone else" in preview
        assert "CHG-77" in preview

        after = service.decide(proposal).json()
        assert after["status"] == "verified"
        assert after["result"] == "already_by_other"
        assert after["outcome"].startswith("Satisfied without change: ")
        assert "CHG-77" in after["outcome"]
        page = service.person().get(f"/proposals/{proposal['id']}")
        assert "satisfied without change" in page

        undo = f"/proposals/{proposal['id']}/undo"
        assert "it stays as it is" in service.person().get(undo)
        service.person().press(undo, undo, node_uid="", reason="")
        lifted = service.proposal("uncordon")
        service.settled(lifted)
        released = service.person().get(f"/proposals/{lifted['id']}")
        assert "stays cordoned by someone else" in released
        assert "CHG-77" in released
        assert cluster.node(SUSPECT)["spec"]["unschedulable"] is True
        assert cluster.calls == []


def test_a_node_that_is_gone_is_a_final_answer(service: Service, cluster: KubernetesDouble) -> None:
    cluster.remove(SUSPECT)
    proposal = service.proposal()
    preview = service.person().get(f"/proposals/{proposal['id']}")
    assert "The node is gone" in preview
    after = service.decide(proposal).json()
    assert after["status"] == "gone"
    assert "The node is gone" in after["outcome"]
    # What keeps evidence and watches suspects asks once for itself; then nobody asks any more.
    until(lambda: _is_quiet(cluster), "nobody asks for the node", 30)
    assert cluster.calls == []
    (case,) = service.read("/cases")["items"]
    assert case["alarms"] == 1


def _is_quiet(cluster: KubernetesDouble) -> bool:
    asked = len(cluster.requests)
    time.sleep(3)
    return len(cluster.requests) == asked


def test_replacing_a_shared_node_names_whom_it_would_hit(
    make_service: Callable[..., Service],
) -> None:
    pods = [
        pod("llama-953m-worker-1", "research"),
        pod("vit-huge-0", "vision"),
        pod("vit-huge-1", "vision"),
        pod("coredns-7d", "kube-system", "ReplicaSet", priority="system-cluster-critical"),
        pod("karpenter-5f", "kube-system", "ReplicaSet", priority="system-cluster-critical"),
        pod("nvidia-dcgm-abc", "kube-system", "DaemonSet"),
    ]
    with KubernetesDouble({"nodes": [node(name) for name in NODES]}) as cluster:
        service = make_service(cluster)
        service.post(rank_map(), alarm())
        service.post(
            rank_map("moe-7b", "2026-03-11T09:50:00Z"), alarm("moe-7b", "2026-03-11T10:00:00Z")
        )
        for one in pods:
            cluster.put("pods", one)  # after the alarm: the list is read at the look
        proposal = service.proposal("replace")
        page = service.person("approver").get(f"/proposals/{proposal['id']}")
        for name in ("llama-953m-worker-1", "vit-huge-0", "vit-huge-1", "coredns-7d"):
            assert name in page
        assert "nvidia-dcgm-abc" not in page
        assert "another team’s" in page
        assert "system" in page
        assert "local NVMe disks included" in page
        assert "Type the node’s name" in page
        rejected = service.decide(proposal, "reject", reason="vendor wants it in place")
        assert rejected.json()["status"] == "rejected"
        assert cluster.calls == []


def test_a_control_plane_node_is_refused_before_and_after_the_click(
    make_service: Callable[..., Service],
) -> None:
    label = {"node-role.kubernetes.io/control-plane": ""}
    others = [node(name) for name in NODES if name != SUSPECT]
    with KubernetesDouble({"nodes": [*others, node(SUSPECT, labels=label)]}) as cluster:
        service = make_service(cluster)
        service.post(rank_map(), alarm())
        proposal = service.proposal()
        page = service.person().get(f"/proposals/{proposal['id']}")
        assert "control-plane node" in page
        assert 'class="btn do"' not in page
        after = service.decide(proposal).json()
        assert after["status"] == "refused"
        assert "control-plane" in after["outcome"]
        assert cluster.calls == []


def test_another_machine_under_the_old_name_is_refused(
    service: Service, cluster: KubernetesDouble
) -> None:
    proposal = service.proposal()
    seen = service.person().form(f"/proposals/{proposal['id']}")["node_uid"]
    assert seen == cluster.node(SUSPECT)["metadata"]["uid"]
    cluster.remove(SUSPECT)
    cluster.put("nodes", node(SUSPECT))
    after = service.decide(proposal, node_uid=seen).json()
    assert after["status"] == "refused"
    assert "Another machine carries the name" in after["outcome"]
    assert seen in after["outcome"]
    assert cluster.calls == []


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_nothing_is_uncordoned_by_itself(
    make_service: Callable[..., Service], cluster: KubernetesDouble, kind: str
) -> None:
    service = make_service(cluster)
    raised = transient("llama-953m", "2026-03-02T10:15:00Z", 30, [13, 5], 21)
    raised["alarm"]["verdicts"][0]["kind"] = kind
    service.post(rank_map(), raised)
    service.decide(service.proposal())
    replay = {
        **{key: raised[key] for key in ("cluster", "namespace", "job", "attempt")},
        "kind": "replay", "time": "2026-03-02T12:00:00Z", "rank": 13, "step": 30,
        "witnesses": [21, 29], "replays": 20, "wrong": 0,
    }  # fmt: skip
    service.post(replay)
    (case,) = service.read("/cases")["items"]
    assert case["status"] == "open"
    assert case["alarms"] == 1
    assert cluster.node(SUSPECT)["spec"]["unschedulable"] is True
    assert len(cluster.changes("PATCH")) == 1
    assert service.proposals("uncordon") == []
    page = service.person().get(f"/cases/{case['id']}")
    assert "0 of 20 replays" in page
    assert "clears nothing" in page


def test_a_transient_that_recurs_under_other_names_asks_for_replacement(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster)
    service.post(
        rank_map(),
        transient("llama-953m", "2026-03-02T10:15:00Z", 30, [13, 5], 21),
        alarm(time="2026-03-04T10:00:00Z", step=90, nonfinite=[12], mismatched_pairs=[],
              culprits=[], suspect_window=[81, 90]),
        alarm(time="2026-03-05T10:00:00Z", step=95, nonfinite=[14], mismatched_pairs=[],
              culprits=[], suspect_window=[91, 95]),
        rank_map("moe-7b", "2026-03-11T09:50:00Z", order=(2, 1, 3, 4)),
        transient("moe-7b", "2026-03-11T10:00:00Z", 200, [5, 21], 13),
    )  # fmt: skip
    cases = service.read("/cases")["items"]
    mine = next(
        one for one in cases if one["gpu_uuid"].endswith("0002-1111-4222-8333-000000000005")
    )
    said = "transient before on 2026-03-02 (job llama-953m, rank 13), same GPU"
    assert said in mine["recurrence"]
    assert mine["headline"].startswith("Replace")
    page = service.person().get(f"/cases/{mine['id']}")
    assert said in page
    actions = {one["action"] for one in service.read(f"/cases/{mine['id']}")["proposals"]}
    assert "replace" in actions
    assert len(cases) == 3


def test_a_cordon_that_somebody_lifted_is_noted_on_the_case(
    service: Service, cluster: KubernetesDouble
) -> None:
    proposal = service.proposal()
    service.decide(proposal)

    def lift(stored: dict[str, object]) -> None:
        stored["spec"].pop("unschedulable")  # type: ignore[attr-defined]

    cluster.change(SUSPECT, lift)
    assert verify.watch_held_nodes(service.context) == 1
    assert verify.watch_held_nodes(service.context) == 0
    noted = service.audit()["node.drifted"]
    assert "by somebody, not from here" in noted.summary
    assert "uncordoned by somebody" in noted.summary
    page = service.person().get(f"/proposals/{proposal['id']}")
    assert "changed by somebody since" in page
    until(lambda: len(cluster.changes("PATCH")) == 1, "nothing was cordoned again by itself")
