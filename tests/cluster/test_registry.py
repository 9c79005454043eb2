"""Does every name have a port that says honestly what stands behind it?"""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cluster.errors import (
    ClusterError,
    ClusterNotConfigured,
    ClusterRefused,
    ClusterTimeout,
    ClusterUnreachable,
)
from app.cluster.ports import ClusterPort, Outcome, Standing
from app.cluster.registry import clusters
from tests.cluster.conftest import NODE_1, PortOf, StartDouble, request, user
from tests.doubles.kubernetes import KubernetesDouble, Rule


def test_a_name_that_is_not_configured_is_a_dry_run() -> None:
    port = clusters({}).port("alpine")
    words = "dry run: no cluster is configured for alpine"
    assert port.name == "alpine"
    assert port.status().message == words
    assert not port.status().can_act
    for result in (port.cordon(request()), port.uncordon(request())):
        assert result.outcome is Outcome.DRY_RUN
        assert result.message.startswith(words)
        assert result.message.endswith("nothing was changed.")
    assert port.verify_cordon(request()).standing is Standing.UNKNOWN


@pytest.mark.parametrize("ask", ["version", "can", "nodes"])
def test_a_dry_run_knows_nothing_and_says_so(ask: str) -> None:
    port = clusters({}).port("alpine")
    with pytest.raises(ClusterNotConfigured, match="no cluster is configured for alpine"):
        getattr(port, ask)()
    with pytest.raises(ClusterNotConfigured):
        port.node("a")
    with pytest.raises(ClusterNotConfigured):
        port.pods_on("a")


def test_a_configured_name_acts(double: KubernetesDouble, port: ClusterPort) -> None:
    status = port.status()
    assert status.can_act
    assert status.kind == "kubernetes"
    assert "context double" in status.message
    assert port.version() == "v1.20.2"
    assert double.calls == []


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"kubeconfig": "/does/not/exist"}, "Cannot use kubeconfig /does/not/exist"),
    ({"in_cluster": True}, "Cannot use the pod's own account"),
    ({"in_cluster": True, "context": "a"}, "exclude each other"),
    ({}, "names neither a kubeconfig nor in_cluster"),
    ({"kubeconfg": "a"}, "unknown keys: kubeconfg"),
    ({"kubeconfig": "a", "read_timeout_s": "soon"}, "time limits are no numbers"),
]


@pytest.mark.parametrize(("entry", "words"), BROKEN)
def test_an_entry_that_cannot_be_used_is_told_and_stops_nothing(
    entry: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    port = clusters({"alpine": entry}).port("alpine")
    status = port.status()
    assert status.kind == "misconfigured"
    assert words in status.message
    result = port.cordon(request())
    assert result.outcome is Outcome.FAILED
    assert words in result.message
    assert result.message.endswith("Nothing was changed.")
    with pytest.raises(ClusterNotConfigured):
        port.version()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "clusters: 1", json.dumps({"current-context": "x", "contexts": []})]
)
def test_a_kubeconfig_of_rubbish_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    assert port.status().kind == "misconfigured"
    assert "Cannot use kubeconfig" in port.status().message


def test_a_context_that_is_not_there_is_told(double: KubernetesDouble, tmp_path: Path) -> None:
    file = double.kubeconfig(tmp_path / "kubeconfig")
    port = clusters({"alpine": {"kubeconfig": str(file), "context": "beta"}}).port("alpine")
    assert port.status().kind == "misconfigured"
    assert "context beta" in port.status().message


def test_a_kubeconfig_that_is_mended_works_without_a_restart(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    assert port.status().kind == "misconfigured"
    double.kubeconfig(file)
    assert port.version() == "v1.20.2"


def test_two_clusters_do_not_mix(start: StartDouble, port_of: PortOf) -> None:
    one, two = start(), start("node_gone")
    first, second = port_of(one), port_of(two)
    assert len(first.nodes()) == 4
    assert len(second.nodes()) == 3
    first.cordon(request())
    assert two.calls == []
    from kubernetes.client.configuration import Configuration

    default = Configuration.get_default_copy()
    assert default.host not in (one.url, two.url)
    assert default.api_key == {}


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def test_a_cluster_that_nobody_serves_is_unreachable(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    file = double.kubeconfig(tmp_path / "kubeconfig")
    dead = f"http://127.0.0.1:{closed_port()}"
    file.write_text(file.read_text().replace(double.url, dead))
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    assert port.status().can_act  # Whether it answers is a question of its own.
    with pytest.raises(ClusterUnreachable, match="cannot be reached"):
        port.version()
    result = port.cordon(request())
    assert result.outcome is Outcome.FAILED
    assert result.message.endswith("Nothing was changed.")


def test_a_certificate_that_is_not_trusted_is_told(start: StartDouble, tmp_path: Path) -> None:
    double, other = start(tls=True), start(tls=True)
    file = other.kubeconfig(tmp_path / "kubeconfig")
    file.write_text(file.read_text().replace(other.url, double.url))
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    with pytest.raises(ClusterUnreachable, match="certificate is not trusted"):
        port.version()
    assert double.requests == []


def test_a_trusted_certificate_and_its_token_work(start: StartDouble, port_of: PortOf) -> None:
    double = start(tls=True)
    assert port_of(double).cordon(request()).outcome is Outcome.CHANGED


def test_a_wrong_token_is_told(double: KubernetesDouble, port_of: PortOf) -> None:
    port = port_of(double, token="nobody")
    with pytest.raises(ClusterRefused, match="does not accept our credentials") as caught:
        port.nodes()
    assert caught.value.status == 401
    assert port.cordon(request()).outcome is Outcome.REFUSED


def test_a_new_token_is_read_after_the_old_one_was_refused(
    double: KubernetesDouble, tmp_path: Path
) -> None:
    file = double.kubeconfig(tmp_path / "kubeconfig")
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    assert port.version() == "v1.20.2"
    double.access.users["renewed"] = double.access.users.pop("admin-token")
    double.kubeconfig(file, token="renewed")
    assert port.cordon(request()).outcome is Outcome.REFUSED
    assert port.cordon(request()).outcome is Outcome.CHANGED


def test_a_pod_uses_its_own_account(
    start: StartDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes.config import incluster_config

    double = start(tls=True)
    host, port_number = double.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port_number)
    for name, text in (("TOKEN", "admin-token"), ("CERT", double.certificate)):
        file = tmp_path / name
        file.write_text(text)
        monkeypatch.setattr(incluster_config, f"SERVICE_{name}_FILENAME", str(file))
    port = clusters({"alpine": {"in_cluster": True}}).port("alpine")
    assert port.status().can_act
    assert port.cordon(request()).outcome is Outcome.CHANGED


def test_a_token_from_a_plugin_is_used(double: KubernetesDouble, tmp_path: Path) -> None:
    """As `aws eks get-token` gives one."""
    plugin = tmp_path / "plugin"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "admin-token"},
    }
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o755)
    file = double.kubeconfig(tmp_path / "kubeconfig")
    config = json.loads(file.read_text())
    config["users"][0]["user"] = {
        "exec": {
            "apiVersion": credential["apiVersion"],
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    file.write_text(json.dumps(config))
    port = clusters({"alpine": {"kubeconfig": str(file)}}).port("alpine")
    assert len(port.nodes()) == 4


def test_a_silent_cluster_is_a_timeout(double: KubernetesDouble, port_of: PortOf) -> None:
    double.set_fault("*", hang=True)
    with pytest.raises(ClusterTimeout, match=r"No answer from the cluster within 0\.3 s"):
        port_of(double, read_timeout_s=0.3).nodes()


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 418}, {"reset": True}, {"status": 200, "body": "x"}]
)
@pytest.mark.parametrize("ask", ["version", "nodes", "node", "pods_on"])
def test_no_error_of_the_client_leaks(
    double: KubernetesDouble, port: ClusterPort, ask: str, fault: dict[str, Any]
) -> None:
    double.set_fault("*", **fault)
    words = [NODE_1] if ask in ("node", "pods_on") else []
    with pytest.raises(ClusterError) as caught:
        getattr(port, ask)(*words)
    assert caught.value.message.endswith((".", "?"))
    assert "Traceback" not in caught.value.message


def test_rights_are_asked_one_by_one(start: StartDouble, port_of: PortOf) -> None:
    rules = user(
        Rule(["get", "list"], ["nodes", "pods"]),
        Rule(["create"], ["events"], groups=[""], namespaces=["default"]),
    )
    double = start(users=rules)
    rights = {
        (right.verb, right.resource, right.group): right.allowed
        for right in port_of(double, token="limited").can()
    }
    assert rights == {
        ("get", "nodes", ""): True,
        ("list", "nodes", ""): True,
        ("patch", "nodes", ""): False,
        ("list", "pods", ""): True,
        ("create", "events", ""): True,
        ("create", "events", "events.k8s.io"): False,
    }
    assert double.calls == []


def test_a_right_that_the_cluster_does_not_tell_is_unknown(
    double: KubernetesDouble, port: ClusterPort
) -> None:
    double.set_fault("POST *", status=403)
    rights = port.can()
    assert {right.allowed for right in rights} == {None}
    assert "does not allow this" in rights[0].why


@pytest.mark.parametrize(("configured", "expected"), [({}, False), (None, True)])
def test_the_client_is_imported_before_it_is_needed_only_where_it_is(
    double: KubernetesDouble, tmp_path: Path, configured: dict[str, Any] | None, expected: bool
) -> None:
    double.kubeconfig(tmp_path / "kubeconfig", context="alpine")
    entry = {"kubeconfig": str(tmp_path / "kubeconfig"), "context": "alpine"}
    named = {"alpine": entry} if configured is None else configured
    code = (
        "import json, sys\n"
        "from app.cluster.registry import clusters\n"
        "clusters(json.loads(sys.argv[1])).preload()\n"
        "print('kubernetes.client.api_client' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(named)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(expected)
    assert double.calls == []
