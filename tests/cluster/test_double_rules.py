"""Does the double keep the rules of an API server that the recording does not show?"""

import http.client
import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.actions.service import until
from tests.cluster.conftest import NODE_1, NODE_2, StartDouble, user
from tests.doubles.kubernetes import KubernetesDouble, Rule

NODE_PATH = f"/api/v1/nodes/{NODE_1}"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def ask(
    double: KubernetesDouble,
    method: str,
    path: str,
    body: Any = None,
    content_type: str = "",
    token: str = "admin-token",
) -> tuple[int, Any]:
    """Send one plain request."""
    parts = urlsplit(double.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"}
    if content_type:
        headers["Content-Type"] = content_type
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def test_strict_validation_names_the_unknown_field(double: KubernetesDouble) -> None:
    path = f"{NODE_PATH}?fieldValidation=Strict"
    status, body = ask(double, "PATCH", path, {"spec": {"notAField": 1}}, MERGE)
    assert status == 422
    assert 'unknown field "spec.notAField"' in body["message"]


@pytest.mark.parametrize(
    "taints",
    [
        [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}],
        [{"key": "a", "effect": "Never"}],
        [{"key": "a b", "effect": "NoSchedule"}],
        [{"key": "a", "effect": "NoSchedule", "value": "10:15"}],
    ],
)
def test_bad_taints_are_invalid(double: KubernetesDouble, taints: list[Any]) -> None:
    before = double.node(NODE_1)
    status, body = ask(double, "PATCH", NODE_PATH, {"spec": {"taints": taints}}, MERGE)
    assert (status, body["reason"]) == (422, "Invalid")
    assert double.node(NODE_1) == before


def test_too_many_annotations_are_invalid(double: KubernetesDouble) -> None:
    patch = {"metadata": {"annotations": {"a": "x" * 300_000}}}
    assert ask(double, "PATCH", NODE_PATH, patch, MERGE)[0] == 422


def test_a_name_with_capitals_is_invalid(double: KubernetesDouble) -> None:
    body = {"metadata": {"name": "Node_1"}}
    status, answer = ask(double, "POST", "/api/v1/nodes", body)
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "metadata.name"


def test_the_main_path_does_not_write_the_status(double: KubernetesDouble) -> None:
    patch = {"status": {"conditions": []}, "spec": {"unschedulable": True}}
    ask(double, "PATCH", NODE_PATH, patch, MERGE)
    node = double.node(NODE_1)
    assert node["spec"]["unschedulable"] is True
    assert node["status"]["conditions"]


def test_what_an_applied_configuration_leaves_out_stays_with_others(
    double: KubernetesDouble,
) -> None:
    ask(double, "PATCH", NODE_PATH, {"spec": {"unschedulable": True}}, MERGE)
    body = b"spec:\n  unschedulable: false\n"
    status, answer = ask(double, "PATCH", f"{NODE_PATH}?fieldManager=us", body, APPLY)
    assert status == 409
    assert answer["details"]["causes"][0]["field"] == ".spec.unschedulable"
    assert ask(double, "PATCH", f"{NODE_PATH}?fieldManager=us&force=true", body, APPLY)[0] == 200
    assert double.node(NODE_1)["spec"]["unschedulable"] is False


def test_a_put_with_a_stale_version_is_a_conflict(double: KubernetesDouble) -> None:
    _, node = ask(double, "GET", NODE_PATH)
    ask(double, "PATCH", NODE_PATH, {"spec": {"unschedulable": True}}, MERGE)
    assert ask(double, "PUT", NODE_PATH, node)[0] == 409
    node["metadata"]["resourceVersion"] = double.node(NODE_1)["metadata"]["resourceVersion"]
    assert ask(double, "PUT", NODE_PATH, node)[0] == 200
    assert "unschedulable" not in double.node(NODE_1)["spec"]


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("a=1", 1),
        ("a!=1", 3),
        ("a in (1,2)", 1),
        ("a notin (1)", 3),
        ("a", 1),
        ("!a", 3),
        ("a,nvidia.com/gpu.present=true", 1),
    ],
)
def test_label_selectors(double: KubernetesDouble, selector: str, count: int) -> None:
    double.change(NODE_1, lambda node: node["metadata"]["labels"].update(a="1"))
    quoted = urllib.request.quote(selector)  # type: ignore[attr-defined]
    status, body = ask(double, "GET", f"/api/v1/nodes?labelSelector={quoted}")
    assert status == 200
    assert len(body["items"]) == count


def test_rights_hold_for_their_namespace(start: StartDouble) -> None:
    rules = user(Rule(["list"], ["pods"], namespaces=["research"]))
    double = start("shared_node", users=rules)
    inside = ask(double, "GET", "/api/v1/namespaces/research/pods", token="limited")
    assert (inside[0], len(inside[1]["items"])) == (200, 2)
    outside = ask(double, "GET", "/api/v1/namespaces/vision/pods", token="limited")
    assert outside[0] == 403
    assert 'in the namespace "vision"' in outside[1]["message"]


def test_a_case_brings_its_faults(start: StartDouble) -> None:
    double = start()
    refusal = {"kind": "Status", "reason": "Unauthorized", "code": 401}
    double.load({"fail": {f"PATCH {NODE_PATH}": {"status": 401, "body": refusal}}})
    assert ask(double, "PATCH", NODE_PATH, {}, MERGE) == (401, refusal)
    assert ask(double, "PATCH", f"/api/v1/nodes/{NODE_2}", {}, MERGE)[0] == 200


def test_a_fault_counts_its_calls(double: KubernetesDouble) -> None:
    double.set_fault("GET *", status=503, skip=1, times=2)
    assert [ask(double, "GET", NODE_PATH)[0] for _ in range(4)] == [200, 503, 503, 200]


def test_a_late_answer_to_a_call_that_took_effect_at_once(double: KubernetesDouble) -> None:
    double.set_fault("PATCH *", delay_s=60.0, apply_first=True)
    body = {"spec": {"unschedulable": True}}
    asking = threading.Thread(target=ask, args=(double, "PATCH", NODE_PATH, body, MERGE))
    asking.start()
    until(lambda: double.node(NODE_1)["spec"].get("unschedulable"), "the patch took effect", 30)
    assert double.changes()[0].status is None
    double.close()
    asking.join(10)


def test_calls_are_recorded_with_body_and_answer(double: KubernetesDouble) -> None:
    ask(double, "GET", NODE_PATH)
    ask(double, "PATCH", f"{NODE_PATH}?dryRun=All", {"spec": {"unschedulable": True}}, MERGE)
    assert len(double.requests) == 2
    call = double.calls[0]
    assert (call.method, call.dry_run, call.status) == ("PATCH", True, 200)
    assert call.body == {"spec": {"unschedulable": True}}
    assert double.changes() == []


def test_it_runs_by_hand(tmp_path: Path, root: Path) -> None:
    config = tmp_path / "kubeconfig"
    case = root / "tests/data/kubernetes/four_nodes.json"
    words = [str(case), "--port", "0", "--kubeconfig", str(config)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.kubernetes", *words],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            assert answer.read() == b"ok"
        assert json.loads(config.read_text())["clusters"][0]["cluster"]["server"] == url
    finally:
        process.terminate()
        process.communicate(timeout=10)
