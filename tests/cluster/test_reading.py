"""Is what a cluster says of nodes and pods read as it is meant?"""

import json

import pytest

from app.cluster.errors import ClusterRefused, NodeGone
from app.cluster.node_state import read_node
from app.cluster.pods import by_namespace, read_pod
from app.cluster.ports import ClusterPort, PodOnNode
from tests.cluster.conftest import DATA, NODE_1, NODE_2, NODE_4, PortOf, StartDouble
from tests.doubles.kubernetes import KubernetesDouble

SHAPES = json.loads((DATA / "node_shapes.json").read_text())


@pytest.mark.parametrize("shape", SHAPES, ids=[str(n) for n in range(len(SHAPES))])
def test_an_instance_id_is_read_only_in_its_own_form(shape: dict[str, str | None]) -> None:
    raw = {"metadata": {"name": shape["node"]}, "spec": {"providerID": shape["provider_id"]}}
    assert read_node(raw).instance_id == shape["expected_instance_id"]


def test_a_node_is_read_whole(double: KubernetesDouble, port: ClusterPort) -> None:
    state = port.node(NODE_1)
    assert state.name == NODE_1
    assert state.uid == "00000000-0000-4000-8000-000000000001"
    assert state.instance_id == "i-0c0ffee0000000001"
    assert state.ready is True
    assert state.health_status == "Schedulable"
    assert state.is_gpu_node
    assert not state.is_control_plane
    assert state.our_cordon is None
    assert state.cordoned_by_other is None
    assert state.created_at is not None
    assert state.created_at.isoformat() == "2026-02-01T00:00:00+00:00"
    assert state.raw["status"]["images"] == [{"names": None, "sizeBytes": 393898239}]


@pytest.mark.parametrize(
    ("status", "ready"), [("True", True), ("False", False), ("Unknown", None), (None, None)]
)
def test_a_silent_kubelet_is_neither_ready_nor_not(status: str | None, ready: bool | None) -> None:
    conditions = [{"type": "Ready", "status": status}] if status else []
    assert read_node({"status": {"conditions": conditions}}).ready is ready


def test_all_nodes_come_over_several_pages(start: StartDouble, port_of: PortOf) -> None:
    double = start()
    for number in range(600):
        double.put("nodes", {"metadata": {"name": f"n{number:04}"}, "spec": {}})
    port = port_of(double)
    names = [state.name for state in port.nodes()]
    assert len(names) == len(set(names)) == 604
    pages = [call for call in double.requests if call.path == "/api/v1/nodes"]
    assert len(pages) == 3


def test_pods_are_grouped_and_daemons_are_no_victims(start: StartDouble, port_of: PortOf) -> None:
    double = start("shared_node")
    daemon = {
        "metadata": {
            "name": "dcgm-exporter-x",
            "namespace": "gpu-operator",
            "ownerReferences": [{"kind": "DaemonSet", "name": "dcgm-exporter"}],
        },
        "spec": {"nodeName": NODE_2},
        "status": {"phase": "Running"},
    }
    double.put("pods", daemon)
    pods = port_of(double).pods_on(NODE_2)
    lost = by_namespace(pods)
    assert list(lost) == ["kube-system", "research", "vision"]
    assert [pod.name for pod in lost["research"]] == ["llama-953m-worker-1", "llama-953m-worker-9"]
    assert [pod.name for pod in lost["vision"]] == ["vit-huge-0", "vit-huge-1"]
    assert [pod.name for pod in lost["kube-system"]] == ["coredns-7d-abc", "karpenter-5f-xyz"]
    assert all(pod.system for pod in lost["kube-system"])
    assert not any(pod.system for pod in (*lost["vision"], *lost["research"]))
    assert {pod.job for pod in lost["research"]} == {"llama-953m-worker"}
    exporter = next(pod for pod in pods if pod.name == "dcgm-exporter-x")
    assert exporter.daemonset
    assert "gpu-operator" not in lost


def test_only_pods_of_the_node_are_asked_for(start: StartDouble, port_of: PortOf) -> None:
    double = start("shared_node")
    assert port_of(double).pods_on(NODE_1) == ()
    assert double.requests[-1].query["fieldSelector"] == f"spec.nodeName={NODE_1}"


def test_a_node_name_cannot_widen_the_selector(double: KubernetesDouble, port: ClusterPort) -> None:
    with pytest.raises(ClusterRefused):
        port.pods_on("a,spec.nodeName!=b")
    assert double.requests == []


def pod(**metadata: object) -> PodOnNode:
    return read_pod({"metadata": {"name": "p", **metadata}, "status": {"phase": "Running"}})


def test_the_job_of_a_pod_is_found_by_label_before_owner() -> None:
    owner = [{"kind": "Job", "name": "made-by-a-controller"}]
    assert pod(labels={"HPJob": "llama"}, ownerReferences=owner).job == "llama"
    assert pod(ownerReferences=owner).job == "made-by-a-controller"
    assert pod(ownerReferences=[{"kind": "ReplicaSet", "name": "web"}]).job is None
    marked = pod(labels={"jobset.sigs.k8s.io/jobset-name": "tpu", "team": "x"})
    assert marked.job == "tpu"
    assert marked.job_labels == {"jobset.sigs.k8s.io/jobset-name": "tpu"}


def test_static_and_finished_pods_are_no_victims() -> None:
    mirror = pod(annotations={"kubernetes.io/config.mirror": "x"})
    assert not mirror.ends_with_node
    done = read_pod({"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}})
    assert not done.ends_with_node
    assert pod().ends_with_node


def test_a_control_plane_node_is_known_by_its_label(start: StartDouble, port_of: PortOf) -> None:
    port = port_of(start("shared_node"))
    assert port.node(NODE_4).is_control_plane
    assert not port.node(NODE_2).is_control_plane


def test_no_node_is_an_error_of_its_own(port: ClusterPort) -> None:
    with pytest.raises(NodeGone):
        port.node("not-there")


def test_the_first_nodes_of_a_selection_come_in_one_request(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    found = port.some_nodes({"nvidia.com/gpu.present": "true"}, 3)
    assert [one.name[-1] for one in found.nodes] == ["1", "2", "3"]
    assert found.more
    assert len(double.requests) == 1
    assert not port.some_nodes({"nvidia.com/gpu.present": "true"}, 4).more
    assert port.some_nodes({"nvidia.com/gpu.present": "no"}, 4).nodes == ()


def test_where_a_pod_keeps_data_and_what_it_asks_for() -> None:
    read = read_pod(
        {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {"resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4"}}},
                    {"resources": {"requests": {"nvidia.com/mig-1g.10gb": 2}}},
                ],
                "volumes": [
                    {"name": "a", "emptyDir": {}},
                    {"name": "b", "emptyDir": {"medium": "Memory"}},
                    {"name": "c", "hostPath": {"path": "/mnt/nvme"}},
                    {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "e", "nfs": {"server": "s", "path": "/"}},
                    {"name": "f", "configMap": {"name": "x"}},
                    {"name": "g", "secret": {"secretName": "x"}},
                    "odd",
                ],
            },
            "status": {"phase": "Running", "startTime": "2026-03-02T10:00:00Z"},
        }
    )
    kinds = [(one.name, one.kind) for one in read.volumes]
    assert kinds == [
        ("a", "disk"), ("b", "memory"), ("c", "path"), ("d", "claim"), ("e", "network"),
    ]  # fmt: skip
    assert (read.volumes[2].path, read.volumes[3].claim) == ("/mnt/nvme", "data")
    assert read.accelerators == 10
    assert read.started_at is not None
    assert pod().volumes == ()
    assert pod().accelerators == 0
