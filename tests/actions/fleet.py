"""What does a small fleet post and look like: four nodes of eight GPUs, one job, its alarms?"""

from __future__ import annotations

from typing import Any

NODES = tuple(f"hyperpod-i-0c0ffee000000000{number}" for number in range(1, 5))
SUSPECT = NODES[1]
LAST_GPU_OF_SUSPECT = "GPU-a0000002-1111-4222-8333-000000000005"


def gpu(node: int, index: int) -> str:
    """Name a GPU; nodes count from 1."""
    return f"GPU-a000000{node}-1111-4222-8333-00000000000{index}"


def envelope(kind: str, job: str = "llama-953m", time: str = "", **more: Any) -> dict[str, Any]:
    """Begin a document."""
    return {
        "kind": kind,
        "cluster": "alpine",
        "namespace": "research",
        "job": job,
        "attempt": 1,
        "time": time,
        **more,
    }


def rank_map(
    job: str = "llama-953m",
    time: str = "2026-03-02T10:00:00Z",
    order: tuple[int, ...] = (1, 2, 3, 4),
) -> dict[str, Any]:
    """Place 32 ranks on the nodes, in the given order of nodes."""
    ranks = [
        {
            "rank": rank,
            "node": NODES[order[rank // 8] - 1],
            "instance_id": NODES[order[rank // 8] - 1].removeprefix("hyperpod-"),
            "gpu_uuid": gpu(order[rank // 8], rank % 8),
        }
        for rank in range(32)
    ]
    return envelope("rank_map", job, time, world_size=32, ranks=ranks)


def alarm(
    job: str = "llama-953m", time: str = "2026-03-02T10:15:00Z", **said: Any
) -> dict[str, Any]:
    """Raise an alarm; without more it names rank 13 as culprit at step 30."""
    document: dict[str, Any] = {
        "step": 30,
        "check": "compute",
        "nonfinite": [],
        "mismatched_pairs": [[13, 5], [21, 13]],
        "culprits": [13],
        "verdicts": [],
        "suspect_window": [21, 30],
        "last_audit_pass": 20,
        "last_weight_check_pass": 20,
    }
    return envelope("alarm", job, time, reporter_rank=0, alarm=document | said)


def transient(job: str, time: str, step: int, pair: list[int], third: int) -> dict[str, Any]:
    """Raise an alarm whose one pair turned out to be transient on its target."""
    verdict = {"pair": pair, "third": third, "suspect": pair[0], "kind": "transient"}
    return alarm(
        job,
        time,
        step=step,
        mismatched_pairs=[pair],
        culprits=[],
        verdicts=[verdict],
        suspect_window=[step - 9, step],
        last_audit_pass=step - 10,
        last_weight_check_pass=step - 10,
    )


def node(name: str, **more: Any) -> dict[str, Any]:
    """Give a GPU node as a cluster stores it; `labels`, `annotations`, `spec` are added."""
    instance = name.removeprefix("hyperpod-")
    return {
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.present": "true", **more.get("labels", {})},
            "annotations": more.get("annotations", {}),
            "creationTimestamp": "2026-02-01T00:00:00Z",
        },
        "spec": {
            "providerID": f"aws:///usw2-az1/sagemaker/cluster/hyperpod-4k2xq9mlunp-{instance}",
            **more.get("spec", {}),
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"nvidia.com/gpu": "8"},
        },
    }


def pod(
    name: str, namespace: str, owner: str = "Job", on: str = SUSPECT, priority: str | None = None
) -> dict[str, Any]:
    """Give a running pod."""
    spec: dict[str, Any] = {"nodeName": on, "containers": [{"name": "c", "image": "i"}]}
    if priority:
        spec["priorityClassName"] = priority
    reference = {
        "apiVersion": "batch/v1",
        "kind": owner,
        "name": name.rsplit("-", 1)[0],
        "uid": "x",
        "controller": True,
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [reference]},
        "spec": spec,
        "status": {"phase": "Running"},
    }
