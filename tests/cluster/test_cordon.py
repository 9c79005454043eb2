"""Is a node cordoned once, provably, in our name, and never over somebody else's cordon?"""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cluster.marks import ALL_ANNOTATIONS, stamp
from app.cluster.ports import ClusterPort, Outcome
from app.cluster.registry import clusters
from tests.cluster.conftest import (
    AT,
    DATA,
    NODE_1,
    NODE_2,
    NODE_4,
    UID_1,
    PortOf,
    StartDouble,
    request,
    user,
)
from tests.doubles.careless_kubernetes import CarelessKubernetes
from tests.doubles.kubernetes import KubernetesDouble, Rule

OUR_TAINT = {"key": "silent-witness.dev/sdc-suspect", "value": "true", "effect": "NoSchedule"}


def test_a_cordon_is_rehearsed_sent_once_and_proven(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    result = port.cordon(request(expect_uid=UID_1))
    assert result.outcome is Outcome.CHANGED
    assert result.message == f"{NODE_1} is cordoned for case C-7."
    assert result.event_written
    assert result.state is not None
    assert result.state.unschedulable
    assert result.state.has_our_taint
    assert [(c.method, c.path, c.dry_run) for c in double.calls] == [
        ("PATCH", f"/api/v1/nodes/{NODE_1}", True),
        ("PATCH", f"/api/v1/nodes/{NODE_1}", False),
        ("POST", "/api/v1/namespaces/default/events", False),
    ]
    rehearsal, real = double.calls[:2]
    assert rehearsal.body == real.body
    assert real.body["metadata"]["resourceVersion"] == "1"
    assert real.query["fieldManager"] == "silent-witness"
    last_read = [call.path for call in double.requests if call.method == "GET"]
    assert last_read == [f"/api/v1/nodes/{NODE_1}"] * 2


def test_what_is_written_says_who_when_why_and_on_what(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    node = double.node(NODE_1)
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["taints"] == [OUR_TAINT]
    assert node["metadata"]["annotations"] == {
        "silent-witness.dev/case": "C-7",
        "silent-witness.dev/proposal": "P-1",
        "silent-witness.dev/by": "alice@example.com",
        "silent-witness.dev/at": "2026-03-01T10:15:00.000000Z",
        "silent-witness.dev/evidence": "e41",
        "silent-witness.dev/reason": "rank 13: ring 2/2 mismatched at 10:15, step 30",
        "silent-witness.dev/prev-unschedulable": "false",
    }
    assert not any(key.startswith("silent-witness") for key in node["metadata"]["labels"])


def test_other_taints_and_fields_stay(double: KubernetesDouble, port: ClusterPort) -> None:
    others = [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
    ]
    double.change(NODE_1, lambda node: node["spec"].update(taints=others))
    before = double.node(NODE_1)
    port.cordon(request())
    after = double.node(NODE_1)
    assert after["spec"]["taints"] == [*others, OUR_TAINT]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["status"] == before["status"]


def test_a_second_cordon_sends_nothing(double: KubernetesDouble, port: ClusterPort) -> None:
    port.cordon(request())
    sent = len(double.calls)
    result = port.cordon(request(proposal="P-2", case="C-9"))
    assert result.outcome is Outcome.ALREADY_OURS
    assert "already cordoned for case C-7 by alice@example.com" in result.message
    assert len(double.calls) == sent


def test_a_cordon_by_someone_else_satisfies_and_stays_theirs(
    start: StartDouble, port_of: PortOf
) -> None:
    double = start("already_cordoned")
    port = port_of(double)
    before = double.node(NODE_2)
    result = port.cordon(request(NODE_2))
    assert result.outcome is Outcome.ALREADY_BY_OTHER
    assert "already cordoned by someone else (CHG-77" in result.message
    released = port.uncordon(request(NODE_2))
    assert released.outcome is Outcome.ALREADY_BY_OTHER
    assert "stays cordoned by someone else (CHG-77" in released.message
    assert double.calls == []
    assert double.node(NODE_2) == before


def test_a_cordon_through_kubectl_names_its_hand(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    def by_kubectl(node: dict[str, Any]) -> None:
        node["spec"]["unschedulable"] = True
        node["metadata"]["managedFields"] = [
            {
                "manager": "kubectl",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-02-28T08:00:00Z",
                "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
            }
        ]

    double.change(NODE_1, by_kubectl)
    result = port.cordon(request())
    assert result.outcome is Outcome.ALREADY_BY_OTHER
    assert "set through kubectl at 2026-02-28 08:00:00 UTC" in result.message
    assert double.calls == []


def test_another_machine_under_the_name_is_refused(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    result = port.cordon(request(expect_uid="11111111-0000-4000-8000-000000000001"))
    assert result.outcome is Outcome.REFUSED
    assert "Another machine carries the name" in result.message
    assert double.calls == []


def test_a_node_that_is_gone_is_final(start: StartDouble, port_of: PortOf) -> None:
    double = start("node_gone")
    result = port_of(double).cordon(request(NODE_2))
    assert result.outcome is Outcome.GONE
    assert result.message == f"The node is gone: the cluster knows no node {NODE_2}."
    assert len(double.requests) == 1
    assert double.calls == []


def test_a_control_plane_node_is_refused(start: StartDouble, port_of: PortOf) -> None:
    double = start("shared_node")
    result = port_of(double).cordon(request(NODE_4))
    assert result.outcome is Outcome.REFUSED
    assert "is a control-plane node" in result.message
    assert double.calls == []


@pytest.mark.parametrize(
    "name", ["", "..", ".", "a/b", "a/../b", "A", "a b", "a?x=1", "\u202ea", "-a"]
)
def test_what_cannot_be_a_node_name_reaches_no_server(
    double: KubernetesDouble, port: ClusterPort, name: str
) -> None:
    result = port.cordon(request(name))
    assert result.outcome is Outcome.REFUSED
    assert "cannot be the name of a Kubernetes node" in result.message
    assert double.requests == []


def test_a_foreign_uncordon_is_mended_by_a_new_approval(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    port.cordon(request())
    double.change(NODE_1, lambda node: node["spec"].pop("unschedulable"))
    result = port.cordon(request(proposal="P-2"))
    assert result.outcome is Outcome.CHANGED
    assert double.node(NODE_1)["spec"]["unschedulable"] is True
    assert double.node(NODE_1)["metadata"]["annotations"]["silent-witness.dev/proposal"] == "P-2"
    assert len(double.node(NODE_1)["spec"]["taints"]) == 1


def test_a_cluster_that_drops_our_taint_is_seen_in_the_rehearsal(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    """As an admission rule would that strips taints it does not know."""
    stripped = {"kind": "Node", **double.node(NODE_1)}
    stripped["spec"] = {**stripped["spec"], "unschedulable": True}
    double.set_fault(f"PATCH /api/v1/nodes/{NODE_1}", dry_run=True, status=200, body=stripped)
    result = port.cordon(request())
    assert result.outcome is Outcome.REFUSED
    assert "would not keep the cordon" in result.message
    assert double.changes() == []


def test_a_heartbeat_in_between_is_read_and_decided_again(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    double.set_fault(f"PATCH /api/v1/nodes/{NODE_1}", dry_run=False, status=409, times=2)
    result = port.cordon(request())
    assert result.outcome is Outcome.CHANGED
    assert [call.status for call in double.changes()] == [409, 409, 200]


def test_an_unwelcome_change_in_between_is_not_overwritten(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    """Somebody cordons between our reading and our patch: the conflict shows it."""
    real = double.faults.pick

    def cordon_first(asked: Any) -> Any:
        if asked.method == "PATCH" and "dryRun" not in asked.query:
            double.change(NODE_1, lambda node: node["spec"].update(unschedulable=True))
        return real(asked)

    double._network.fault_for = cordon_first
    result = port.cordon(request())
    assert result.outcome is Outcome.ALREADY_BY_OTHER
    assert [call.status for call in double.changes()] == [409]
    assert "annotations" not in double.node(NODE_1)["metadata"] or not any(
        key in double.node(NODE_1)["metadata"]["annotations"] for key in ALL_ANNOTATIONS
    )


def test_the_event_falls_back_to_the_newer_group(start: StartDouble, port_of: PortOf) -> None:
    rules = user(
        Rule(["get", "patch"], ["nodes"]),
        Rule(["create"], ["events"], groups=["events.k8s.io"]),
    )
    double = start(users=rules)
    result = port_of(double, token="limited").cordon(request())
    assert result.event_written
    event = double.events()[0]
    assert event["eventTime"] == "2026-03-01T10:15:00.000000Z"
    assert event["metadata"]["namespace"] == "kube-system"
    assert event["involvedObject"]["uid"] == UID_1
    assert [call.status for call in double.calls if call.method == "POST"] == [403, 201]


def test_an_event_that_fails_does_not_fail_the_cordon(start: StartDouble, port_of: PortOf) -> None:
    double = start(users=user(Rule(["get", "patch"], ["nodes"])))
    result = port_of(double, token="limited").cordon(request())
    assert result.outcome is Outcome.CHANGED
    assert not result.event_written
    assert result.details["event"].startswith("not written: The cluster knows us but")
    assert double.node(NODE_1)["spec"]["unschedulable"] is True


def test_a_long_reason_is_cut_for_annotation_and_event(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    result = port.cordon(request(reason="é" * 5000))
    assert result.event_written
    annotations = double.node(NODE_1)["metadata"]["annotations"]
    assert len(annotations["silent-witness.dev/reason"]) == 1000
    assert len(double.events()[0]["message"].encode()) <= 1024


def test_a_moment_has_six_digits_and_utc() -> None:
    assert stamp(AT) == "2026-03-01T10:15:00.000000Z"
    assert stamp(AT.replace(microsecond=7)) == "2026-03-01T10:15:00.000007Z"


def test_a_server_without_dry_run_versions_or_managers(tmp_path: Path) -> None:
    with CarelessKubernetes(DATA / "already_cordoned.json") as server:
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(config))
        port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
        assert port.cordon(request()).outcome is Outcome.CHANGED
        assert port.cordon(request()).outcome is Outcome.ALREADY_OURS
        node = server.nodes[NODE_1]
        assert node["spec"]["unschedulable"] is True
        assert node["spec"]["taints"] == [OUR_TAINT]
        assert all("labels" not in body["metadata"] for m, _, body in server.calls if m == "PATCH")
        other = port.cordon(request(NODE_2))
        assert other.outcome is Outcome.ALREADY_BY_OTHER
        assert "CHG-77" in other.message
        assert port.uncordon(request()).outcome is Outcome.CHANGED
        assert "unschedulable" not in server.nodes[NODE_1]["spec"]
        assert server.nodes[NODE_1]["metadata"]["annotations"] == {}
        assert port.uncordon(request(NODE_2)).outcome is Outcome.ALREADY_BY_OTHER
        assert not any(path.endswith(NODE_2) for _, path, _ in server.calls)
