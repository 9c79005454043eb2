"""Are the manifests valid, and do they grant what the code uses and nothing more?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

GRANTED = {
    "nodes": {"get", "list", "watch", "patch"},
    "pods": {"get", "list", "watch"},
    "events": {"create", "patch"},
    "selfsubjectaccessreviews": {"create"},
    "tokenreviews": {"create"},
}


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    """Check every document of a file against the schemas of Kubernetes, unknown keys refused."""
    return subprocess.run(
        [Path(sys.executable).parent / "kubernetes-validate", "--strict", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def manifests(root: Path) -> dict[str, Any]:
    documents = yaml.safe_load_all((root / "deploy/kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_the_manifests_fit_the_schemas(root: Path) -> None:
    done = validate(root / "deploy/kubernetes.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_misspelt_key_is_refused(root: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    text = (root / "deploy/kubernetes.yaml").read_text()
    wrong.write_text(text.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem"))
    assert validate(wrong).returncode != 0


def test_the_role_grants_exactly_what_is_used(manifests: dict[str, Any]) -> None:
    granted: dict[str, set[str]] = {}
    for rule in manifests["ClusterRole"]["rules"]:
        for resource in rule["resources"]:
            granted.setdefault(resource, set()).update(rule["verbs"])
    assert granted == GRANTED


def test_the_pod_is_confined_and_alone(manifests: dict[str, Any]) -> None:
    spec = manifests["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "Recreate"
    pod = spec["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    confined = pod["containers"][0]["securityContext"]
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["capabilities"] == {"drop": ["ALL"]}


def test_the_names_fit_together(manifests: dict[str, Any]) -> None:
    account = manifests["ServiceAccount"]["metadata"]
    pod = manifests["Deployment"]["spec"]["template"]
    assert pod["spec"]["serviceAccountName"] == account["name"]
    subject = manifests["ClusterRoleBinding"]["subjects"][0]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert (
        manifests["ClusterRoleBinding"]["roleRef"]["name"]
        == (manifests["ClusterRole"]["metadata"]["name"])
    )
    labels = pod["metadata"]["labels"].items()
    assert manifests["Service"]["spec"]["selector"].items() <= labels
    claim = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == manifests["PersistentVolumeClaim"]["metadata"]["name"]
