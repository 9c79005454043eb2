"""How soon after its approval does a replacement reach the provider, with all that is read before?

The floor is the same calls, bare, through the real client against the same double, in the same run.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.approvals import widen
from tests.bench.report import Report, quantile
from tests.bench.server import Server
from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker import Platform, SagemakerDouble

CLUSTER, MACHINES, PER_NODE = "alpine", 200, 8
REPLACE = "BatchReplaceClusterNodes"
SIGN = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Let GPUs recur so that replacements are proposed, approve each, and see its order arrive."""
    tries = 20 if quick else 60
    with _outside() as (sagemaker, kubernetes), tempfile.TemporaryDirectory(dir=folder) as name:
        here = Path(name)
        config = kubernetes.kubeconfig(here / "kubeconfig", context=CLUSTER)
        server = Server(
            here,
            clusters=json.dumps({CLUSTER: {"kubeconfig": str(config), "context": CLUSTER}}),
            providers=json.dumps({CLUSTER: sagemaker.entry()}),
            four_eyes="false",
        )
        try:
            widen(here)
            for job in ("first", "again"):
                _fill(server, job, tries)
            waiting = _replacements(server)[:tries]
            called = [_called(server, sagemaker, one) for one in waiting]
        finally:
            server.close()
        bare = _bare(sagemaker, tries)
    for share, named in ((0.5, "p50"), (0.99, "p99")):
        ours, floor = quantile(called, share), quantile(bare, share)
        report.add(
            "orders",
            f"replacement approved -> order made, {len(called)} times: {named}",
            f"{ours * 1000:.0f} ms",
            f"the same calls, bare, {floor * 1000:.0f} ms",
            ours / floor,
        )


@contextmanager
def _outside() -> Iterator[tuple[SagemakerDouble, KubernetesDouble]]:
    """Start both doubles, and sign as nobody in particular, also in the server's process."""
    before = {key: os.environ.get(key) for key in SIGN}
    os.environ.update(SIGN)
    try:
        machines = map(_instance, range(MACHINES))
        with SagemakerDouble(machines) as sagemaker, KubernetesDouble({"nodes": []}) as kubernetes:
            Platform(sagemaker, kubernetes)
            yield sagemaker, kubernetes
    finally:
        for key, text in before.items():
            if text is None:
                del os.environ[key]
            else:
                os.environ[key] = text


def _instance(number: int) -> str:
    return f"i-{number:017x}"


def _fill(server: Server, job: str, alarms: int) -> None:
    """Post one job on all machines, and an alarm for the first GPU of some."""
    named = {"cluster": CLUSTER, "namespace": "research", "job": job, "attempt": 1}
    ranks = [
        {
            "rank": rank,
            "node": f"hyperpod-{_instance(rank // PER_NODE)}",
            "instance_id": _instance(rank // PER_NODE),
            "gpu_uuid": f"GPU-{rank // PER_NODE:08x}-0000-4000-8000-{rank % PER_NODE:012x}",
        }
        for rank in range(MACHINES * PER_NODE)
    ]
    server.post("rank-maps", {**named, "world_size": len(ranks), "ranks": ranks})
    for number in range(alarms):
        rank, step = number * PER_NODE, 100 + 10 * number
        before, after = (rank - PER_NODE) % len(ranks), (rank + PER_NODE) % len(ranks)
        alarm = {
            "check": "compute", "step": step, "mismatched_pairs": [[rank, before], [after, rank]],
            "culprits": [rank], "last_audit_pass": step - 10,
        }  # fmt: skip
        server.post("alarms", {**named, "reporter_rank": 0, "alarm": alarm})


def _replacements(server: Server) -> list[dict[str, Any]]:
    status, text, _ = server.request("GET", "/api/v1/proposals?status=proposed&limit=500")
    assert status == 200, text
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return [one for one in items if one["action"] == "replace"]


def _called(server: Server, sagemaker: SagemakerDouble, proposal: dict[str, Any]) -> float:
    """Approve a replacement; give the seconds until the order came in."""
    before = len(sagemaker.calls)
    body = json.dumps({"evidence_version": proposal["evidence_version"]}).encode()
    began = time.time()
    path = f"/api/v1/proposals/{proposal['id']}/approve"
    status, said, _ = server.request("POST", path, body, **{"Content-Type": "application/json"})
    assert status == 200, said
    deadline = time.monotonic() + 30
    while len(sagemaker.calls) == before:
        assert time.monotonic() < deadline, "the order is made"
        time.sleep(0.002)
    return sagemaker.calls[before].at - began


def _bare(sagemaker: SagemakerDouble, tries: int) -> list[float]:
    """Make the calls that an approval makes, with nothing around them."""
    from botocore.config import Config
    from botocore.session import Session

    client = Session().create_client(
        "sagemaker",
        sagemaker.cluster.region,
        endpoint_url=sagemaker.url,
        config=Config(retries={"total_max_attempts": 1}),
    )
    took = []
    for number in range(tries):
        one = _instance(MACHINES - 1 - number)
        began = time.time()
        client.describe_cluster_node(ClusterName=CLUSTER, NodeId=one)
        client.describe_cluster(ClusterName=CLUSTER)
        pages = client.get_paginator("list_cluster_nodes").paginate(
            ClusterName=CLUSTER, PaginationConfig={"PageSize": 100}
        )
        assert sum(len(page["ClusterNodeSummaries"]) for page in pages) > 0
        client.batch_replace_cluster_nodes(ClusterName=CLUSTER, NodeIds=[one])
        took.append(sagemaker.calls[-1].at - began)
    return took
