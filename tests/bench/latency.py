"""How soon is a posted alarm on the docket, and an approved cordon in the cluster?"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.store import ids
from tests.bench.approvals import widen
from tests.bench.browser import Browser
from tests.bench.report import Report, quantile
from tests.bench.server import Server
from tests.doubles.kubernetes.double import KubernetesDouble

CLUSTER, NODES, PER_NODE = "alpine", 64, 8
VISIBLE_AIM_S = 2.0


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Post alarms that open cases, wait for each on the docket, then approve each cordon."""
    tries = 20 if quick else 50
    with tempfile.TemporaryDirectory(dir=folder) as name, KubernetesDouble(fleet()) as double:
        here = Path(name)
        config = double.kubeconfig(here / "kubeconfig", context=CLUSTER)
        clusters = {CLUSTER: {"kubeconfig": str(config), "context": CLUSTER}}
        server = Server(here, clusters=json.dumps(clusters))
        try:
            widen(here)
            server.post("rank-maps", _map())
            browser = Browser(server)
            visible = [_visible(server, browser, number) for number in range(tries)]
            browser.close()
            patched = [_patched(server, double, one) for one in _proposals(server)[:tries]]
        finally:
            server.close()
    for what, took, aim in (
        ("post -> on the docket fragment", visible, VISIBLE_AIM_S),
        ("approve -> node patched in the Kubernetes double", patched, None),
    ):
        p50, p99 = quantile(took, 0.5), quantile(took, 0.99)
        report.add(
            "latency",
            f"{what}, {len(took)} times: p50 / p99",
            f"{p50 * 1000:.0f} / {p99 * 1000:.0f} ms",
            aim=f"<= {aim:g} s" if aim else "",
            met=p99 <= aim if aim else None,
        )


def fleet() -> dict[str, Any]:
    """Describe the nodes of the cluster."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "nodes": [
            {
                "metadata": {"name": _node(number), "labels": {}, "annotations": {}},
                "spec": {"providerID": f"aws:///use1-az1/i-{number:017x}"},
                "status": ready,
            }
            for number in range(NODES)
        ]
    }


def _node(number: int) -> str:
    return f"hyperpod-i-{number:017x}"


def _uuid(rank: int) -> str:
    return f"GPU-{rank // PER_NODE:08x}-0000-4000-8000-{rank % PER_NODE:012x}"


def _named() -> dict[str, Any]:
    return {"cluster": CLUSTER, "namespace": "research", "job": "llm", "attempt": 1}


def _map() -> dict[str, Any]:
    ranks = [
        {"rank": rank, "node": _node(rank // PER_NODE), "gpu_uuid": _uuid(rank)}
        for rank in range(NODES * PER_NODE)
    ]
    return {**_named(), "world_size": len(ranks), "gpus_per_node": PER_NODE, "ranks": ranks}


def _visible(server: Server, browser: Browser, number: int) -> float:
    """Post an alarm against a GPU of a node of its own; give the seconds until its case shows."""
    rank = number * PER_NODE
    before, after = (rank - PER_NODE) % (NODES * PER_NODE), (rank + PER_NODE) % (NODES * PER_NODE)
    alarm = {
        "check": "compute",
        "step": 100 + 10 * number,
        "mismatched_pairs": [[rank, before], [after, rank]],
        "culprits": [rank],
        "last_audit_pass": 90 + 10 * number,
    }
    case = ids.show(ids.derive("case", "gpu", ids.derive("gpu", _uuid(rank)), 1)).encode()
    began = time.perf_counter()
    server.post("alarms", {**_named(), "reporter_rank": 0, "alarm": alarm})
    _until(lambda: case in browser.get("/fragment/docket")[1], "the case is on the docket")
    return time.perf_counter() - began


def _proposals(server: Server) -> list[dict[str, Any]]:
    status, text, _ = server.request("GET", "/api/v1/proposals?status=proposed&limit=200")
    assert status == 200, text
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return [one for one in items if one["action"] == "cordon"]


def _patched(server: Server, double: KubernetesDouble, proposal: dict[str, Any]) -> float:
    """Approve a cordon; give the seconds until its PATCH, the real one, has an answer."""
    before = len(double.changes())
    body = json.dumps({"evidence_version": proposal["evidence_version"]}).encode()
    began = time.time()
    status, said, _ = server.request(
        "POST",
        f"/api/v1/proposals/{proposal['id']}/approve",
        body,
        **{"Content-Type": "application/json"},
    )
    assert status == 200, said
    _until(lambda: len(double.changes()) > before, "the node is patched")
    return double.changes()[before].at.timestamp() - began


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it did not come about within 30 s that {what}")
        time.sleep(0.002)
