"""With five hundred cases at once: is the docket usable, and how soon is a call made?

The floor is one bare PATCH of a node against the same double, in the same run.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.store import rail_policy
from app.store.database import connect, writing
from tests.bench.browser import Browser
from tests.bench.report import Report, quantile
from tests.bench.server import Server
from tests.doubles.kubernetes.double import ADMIN_TOKEN, KubernetesDouble
from witness.rules.rail_policy import RailPolicy

CLUSTER, NODES, PER_NODE = "alpine", 500, 8
TOGETHER = 100
# More than a person would allow: what is measured here is the way of one approval.
WIDE = RailPolicy(
    version=1, max_nodes=10_000, max_share=1.0, max_destroyed_share=1.0, max_per_group=10_000,
    max_per_zone=10_000, max_per_domain=10_000, max_per_hour=10_000, max_per_day=10_000,
    brake_storm_nodes=100_000, brake_half_job_nodes=10_000, brake_digest_cases=10_000,
)  # fmt: skip


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Open 500 cases, read the pages, approve cordons one by one and many at once."""
    tries = 20 if quick else 100
    with tempfile.TemporaryDirectory(dir=folder) as name, KubernetesDouble(fleet()) as double:
        here = Path(name)
        config = double.kubeconfig(here / "kubeconfig", context=CLUSTER)
        clusters = {CLUSTER: {"kubeconfig": str(config), "context": CLUSTER}}
        server = Server(here, clusters=json.dumps(clusters))
        try:
            widen(here)
            fill(server)
            browser = Browser(server)
            floor = [browser.get("/healthz")[2] for _ in range(20)]
            for path in ("/", "/approvals", "/fragment/docket"):
                took = [browser.get(path)[2] for _ in range(20)]
                _pages(report, path, took, floor)
            browser.close()
            bare = [_bare_patch(double, number) for number in range(tries)]
            waiting = waiting_cordons(server)
            called = [_called(server, double, one) for one in waiting[:tries]]
            _calls(report, called, bare)
            many = _together(server, double, waiting[tries : tries + TOGETHER])
        finally:
            server.close()
    for what, seconds in many.items():
        report.add(
            "approvals",
            f"{TOGETHER} cordons decided together: {what}",
            f"{seconds:.2f} s",
            "bare PATCH, p50, so often",
            seconds / (quantile(bare, 0.5) * TOGETHER),
        )


def widen(folder: Path) -> None:
    """Put limits in force that hold nothing back."""
    engine = connect(f"sqlite:///{folder / 'witness.db'}")
    with writing(engine).begin() as connection:
        rail_policy.keep(connection, WIDE, by="bench", at=datetime.now(UTC))
    engine.dispose()


def _pages(report: Report, path: str, took: list[float], floor: list[float]) -> None:
    p50, p99 = quantile(took, 0.5), quantile(took, 0.99)
    report.add(
        "approvals",
        f"{NODES} open cases: GET {path}, {len(took)} times: p50 / p99",
        f"{p50 * 1000:.0f} / {p99 * 1000:.0f} ms",
        f"GET /healthz {quantile(floor, 0.5) * 1000:.1f} ms",
        p50 / quantile(floor, 0.5),
    )


def _calls(report: Report, called: list[float], bare: list[float]) -> None:
    for quantile_of, name in ((0.5, "p50"), (0.99, "p99")):
        ours, floor = quantile(called, quantile_of), quantile(bare, quantile_of)
        report.add(
            "approvals",
            f"approve -> call made, {len(called)} times: {name}",
            f"{ours * 1000:.0f} ms",
            f"bare PATCH {floor * 1000:.1f} ms",
            ours / floor,
        )


def fleet() -> dict[str, Any]:
    """Describe the nodes of the cluster."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"nvidia.com/gpu.present": "true", "topology.kubernetes.io/zone": "usw2-az1"}
    return {
        "nodes": [
            {
                "metadata": {"name": _node(number), "labels": labels, "annotations": {}},
                "spec": {"providerID": f"aws:///usw2-az1/i-{number:017x}"},
                "status": ready,
            }
            for number in range(NODES + 1)
        ]
    }


def _node(number: int) -> str:
    return f"hyperpod-i-{number:017x}"


def fill(server: Server) -> None:
    """Post one job on all nodes and an alarm for each of them."""
    named = {"cluster": CLUSTER, "namespace": "research", "job": "llm", "attempt": 1}
    ranks = [
        {
            "rank": rank,
            "node": _node(rank // PER_NODE),
            "gpu_uuid": f"GPU-{rank // PER_NODE:08x}-0000-4000-8000-{rank % PER_NODE:012x}",
        }
        for rank in range(NODES * PER_NODE)
    ]
    server.post("rank-maps", {**named, "world_size": len(ranks), "ranks": ranks})
    lines = []
    for number in range(NODES):
        alarm = {
            "check": "weights", "step": 100 + 10 * number, "suspects": [number * PER_NODE],
            "suspect_window": [91 + 10 * number, 100 + 10 * number],
            "last_audit_pass": 90 + 10 * number, "last_weight_check_pass": 90 + 10 * number,
        }  # fmt: skip
        lines.append(json.dumps({**named, "kind": "alarm", "reporter_rank": 0, "alarm": alarm}))
    body = "\n".join(lines).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    status, said, _ = server.request("POST", "/api/v1/events", body, **kind)
    assert status == 200, said[:500]


def waiting_cordons(server: Server) -> list[dict[str, Any]]:
    """List the cordons that wait."""
    status, text, _ = server.request("GET", "/api/v1/proposals?status=proposed&limit=1000")
    assert status == 200, text
    return [one for one in json.loads(text)["items"] if one["action"] == "cordon"]


def _bare_patch(double: KubernetesDouble, number: int) -> float:
    """Patch a node that no case is about; give the seconds until its answer."""
    body = json.dumps({"metadata": {"annotations": {"bench": str(number)}}})
    kind = {
        "Content-Type": "application/merge-patch+json",
        "Authorization": f"Bearer {ADMIN_TOKEN}",
    }
    began = time.perf_counter()
    with closing(HTTPConnection(urlsplit(double.url).netloc, timeout=30)) as line:
        line.request("PATCH", f"/api/v1/nodes/{_node(NODES)}", body, kind)
        answer = line.getresponse()
        answer.read()
    assert answer.status == 200, answer.status
    return time.perf_counter() - began


def _called(server: Server, double: KubernetesDouble, proposal: dict[str, Any]) -> float:
    """Approve a cordon; give the seconds until its PATCH, the real one, arrived."""
    before = len(double.changes("PATCH"))
    body = json.dumps({"evidence_version": proposal["evidence_version"]}).encode()
    path = f"/api/v1/proposals/{proposal['id']}/approve"
    began = time.time()
    status, said, _ = server.request("POST", path, body, **{"Content-Type": "application/json"})
    assert status == 200, said
    _until(double, before + 1)
    return double.changes("PATCH")[before].at.timestamp() - began


def _together(
    server: Server, double: KubernetesDouble, chosen: list[dict[str, Any]]
) -> dict[str, float]:
    members = [{"id": one["id"], "evidence_version": one["evidence_version"]} for one in chosen]
    body = json.dumps({"verdict": "approved", "members": members}).encode()
    before = len(double.changes("PATCH"))
    began = time.time()
    status, said, _ = server.request(
        "POST", "/api/v1/proposals/batch", body, **{"Content-Type": "application/json"}
    )
    answered = time.time() - began
    assert status == 200, said
    assert json.loads(said)["decided"] == len(chosen), said[:2_000]
    _until(double, before + len(chosen))
    last = max(one.at.timestamp() for one in double.changes("PATCH")[before:])
    return {"answered": answered, "last call made": last - began}


def _until(double: KubernetesDouble, calls: int) -> None:
    deadline = time.monotonic() + 120
    while len(double.changes("PATCH")) < calls:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{calls} nodes were not patched within 120 s")
        time.sleep(0.002)
