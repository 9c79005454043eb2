"""Does the real kubectl take the double for an API server?"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cluster.ports import ClusterPort
from tests.cluster.conftest import NODE_1, NODE_2, PortOf, StartDouble, request, user
from tests.doubles.kubernetes import KubernetesDouble, Rule

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def secure(start: StartDouble) -> KubernetesDouble:
    """Give a double with TLS: kubectl sends no token without it."""
    readers = user(Rule(["get", "list"], ["nodes", "pods", "events"]))
    return start("shared_node", tls=True, users=readers)


@pytest.fixture
def run(secure: KubernetesDouble, kubectl: Path, tmp_path: Path) -> Kubectl:
    """Run kubectl against the double, as the administrator or with another token."""

    def run_one(*words: str, token: str = "admin-token") -> subprocess.CompletedProcess[str]:
        config = secure.kubeconfig(tmp_path / f"{token}.yaml", token=token)
        return subprocess.run(
            [kubectl, f"--kubeconfig={config}", f"--cache-dir={tmp_path}/cache", *words],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return run_one


def test_get_shows_nodes_pods_and_their_state(run: Kubectl) -> None:
    nodes = run("get", "nodes").stdout.splitlines()
    assert nodes[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert len(nodes) == 5
    assert nodes[1].split()[:3] == [NODE_1, "Ready", "<none>"]
    assert nodes[4].split()[2] == "control-plane"
    pods = run("get", "pods", "-A", "--field-selector", f"spec.nodeName={NODE_2}").stdout
    assert "coredns-7d-abc" in pods
    assert len(run("get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o", "name")
               .stdout.split()) == 1  # fmt: skip


def test_cordon_and_uncordon(run: Kubectl, secure: KubernetesDouble) -> None:
    assert run("cordon", NODE_1).stdout == f"node/{NODE_1} cordoned\n"
    assert secure.node(NODE_1)["spec"]["unschedulable"] is True
    assert "Ready,SchedulingDisabled" in run("get", "node", NODE_1).stdout
    assert run("cordon", NODE_1).stdout == f"node/{NODE_1} already cordoned\n"
    assert run("uncordon", NODE_1).stdout == f"node/{NODE_1} uncordoned\n"
    assert "unschedulable" not in secure.node(NODE_1)["spec"]
    assert [call.content_type for call in secure.changes()] == [
        "application/strategic-merge-patch+json"
    ] * 2


def test_taint_label_and_annotate(run: Kubectl, secure: KubernetesDouble) -> None:
    run("taint", "node", NODE_1, "nvidia.com/gpu=true:NoSchedule")
    assert run("taint", "node", NODE_1, "a=b:NoExecute").returncode == 0
    assert [taint["key"] for taint in secure.node(NODE_1)["spec"]["taints"]] == [
        "a",
        "nvidia.com/gpu",
    ]
    assert run("taint", "node", NODE_1, "a-").stdout == f"node/{NODE_1} untainted\n"
    assert run("label", "node", NODE_1, "x=y").stdout == f"node/{NODE_1} labeled\n"
    assert run("annotate", "node", NODE_1, "ops/note=10:15 by eve").returncode == 0
    metadata = secure.node(NODE_1)["metadata"]
    assert metadata["labels"]["x"] == "y"
    assert metadata["annotations"]["ops/note"] == "10:15 by eve"
    refused = run("label", "node", NODE_1, "when=10:15")
    assert refused.returncode == 1
    assert "a valid label must be an empty string" in refused.stderr


def test_rights(run: Kubectl) -> None:
    assert run("auth", "can-i", "patch", "nodes").stdout == "yes\n"
    assert run("auth", "can-i", "patch", "nodes", token="limited").stdout == "no\n"
    assert run("auth", "can-i", "list", "nodes", token="limited").stdout == "yes\n"
    refused = run("cordon", NODE_1, token="limited")
    assert 'User "limited" cannot patch resource "nodes"' in refused.stderr
    wrong = run("get", "nodes", token="nobody")
    assert "must be logged in" in wrong.stderr or "Unauthorized" in wrong.stderr


def test_drain_asks_the_server_first(run: Kubectl, secure: KubernetesDouble) -> None:
    words = ("--ignore-daemonsets", "--force", "--dry-run=server", "--timeout=5s")
    done = run("drain", NODE_2, *words)
    assert f"node/{NODE_2} drained (server dry run)" in done.stdout
    assert "unschedulable" not in secure.node(NODE_2)["spec"]
    evictions = [call for call in secure.calls if call.path.endswith("/eviction")]
    assert evictions
    assert all(call.status == 201 for call in evictions)


def test_describe_shows_what_a_cordon_of_ours_left(
    run: Kubectl, secure: KubernetesDouble, port_of: PortOf
) -> None:
    port: ClusterPort = port_of(secure)
    assert port.cordon(request()).event_written
    shown = run("describe", "node", NODE_1).stdout
    assert "Unschedulable:      true" in shown
    assert "silent-witness.dev/sdc-suspect=true:NoSchedule" in shown
    assert "silent-witness.dev/case: C-7" in shown
    assert "SDCSuspectCordoned" in shown
    assert "rank 13: ring 2/2 mismatched" in shown
    events = json.loads(run("get", "events", "-n", "default", "-o", "json").stdout)["items"]
    assert [event["type"] for event in events] == ["Warning"]
    assert "SDCSuspectCordoned" in run("get", "events", "-n", "default").stdout
