"""What stands in the tests of previews: a cluster, its provider, a job, proposals for a node?"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from app.store import evidence, ids, proposals
from app.store.connection import Connection
from tests.actions.fleet import NODES, alarm, envelope, rank_map
from tests.actions.service import Person, Service
from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker import SagemakerDouble

DATA = Path(__file__).parents[1] / "data" / "kubernetes"
NODE = NODES[1]
INSTANCE = NODE.removeprefix("hyperpod-")
INSTANCES = tuple(one.removeprefix("hyperpod-") for one in NODES)


def cluster_of(name: str) -> dict[str, Any]:
    """Read the nodes and pods of one situation."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return found


def crowded() -> dict[str, Any]:
    """Give the shared node, with pods that keep data and ask for GPUs, and one that has ended."""
    found = cluster_of("shared_node")
    ended = copy.deepcopy(found["pods"][0])
    ended["metadata"]["name"] = "llama-953m-prepare-0"
    ended["status"]["phase"] = "Succeeded"
    for one in found["pods"]:
        spec = one["spec"]
        if one["metadata"]["namespace"] != "kube-system":
            asks = {"limits": {"nvidia.com/gpu": "2"}}
            spec["containers"] = [{"name": "c", "image": "i", "resources": asks}]
        if one["metadata"]["name"] == "vit-huge-0":
            spec["volumes"] = [
                {"name": "scratch", "emptyDir": {}},
                {"name": "cache", "hostPath": {"path": "/mnt/nvme/cache"}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
                {"name": "lustre", "hostPath": {"path": "/fsx"}},
            ]
        if one["metadata"]["name"] == "llama-953m-worker-9":
            spec["volumes"] = [
                {"name": "data", "persistentVolumeClaim": {"claimName": "llama-data"}}
            ]
    found["pods"].append(ended)
    return found


def checkpoints() -> dict[str, Any]:
    """Report states: two on shared storage, two on the node's own disks, one nobody can place."""
    saved = [
        (0, "s3://ckpt/llama/step-0"),
        (10, "s3://ckpt/llama/step-10"),
        (20, "file:/local/ckpt/llama/step-20"),
        (28, "file:/local/ckpt/llama/step-28"),
        (18, "/data/llama/step-18"),
    ]
    return envelope(
        "checkpoints",
        time="2026-03-02T10:14:00Z",
        checkpoints=[
            {
                "step": step,
                "uri": uri,
                "saved_at": f"2026-03-02T10:{step // 3:02d}:00Z",
                "committed": True,
                "tags": {"last_audit_pass": step, "last_weight_check_pass": step},
            }
            for step, uri in saved
        ],
    )


def passes() -> dict[str, Any]:
    """Report clean audits, with the time of a step."""
    return envelope(
        "passes",
        time="2026-03-02T10:12:00Z",
        check="ring",
        first_step=0,
        last_step=20,
        count=3,
        gpus=32,
        step_time_s=7.5,
    )


@dataclass
class Scene:
    """The service with its outside world."""

    service: Service
    kubernetes: KubernetesDouble
    sagemaker: SagemakerDouble | None

    def propose(self, action: str, node: str = NODE, **parameters: Any) -> str:
        """Put a proposal for a node into the case of the alarm; give its id."""
        case = ids.read(self.service.proposals()[0]["case"])

        def write(connection: Connection) -> int:
            model = proposals.of_cases(connection, [case])[case][0]
            ordinal = proposals.next_ordinal(connection, case, action)
            row_id = ids.derive("proposal", case, action, ordinal)
            values = {
                "id": row_id, "case_id": case, "action": action, "ordinal": ordinal,
                "cluster": "alpine", "node_id": model.node_id if node == NODE else None,
                "node_name": node, "instance_id": node.removeprefix("hyperpod-"),
                "gpu_uuid": model.gpu_uuid, "status": "proposed",
                "evidence_version": evidence.version(connection, case),
                "table_version": model.table_version, "recommended_by": "R1",
                "why": "P 0.93: wrong on its own work and on a peer’s.",
                "created_at": self.service.context.now(), "parameters": parameters,
            }  # fmt: skip
            proposals.add(connection, values)
            return row_id

        return ids.show(self.service.context.store.write(write))

    def page(self, proposal: str, role: str = "approver") -> str:
        """Open a proposal."""
        return self.service.person(role).get(f"/proposals/{proposal}")

    def approve(self, person: Person, proposal: str, **typed: str) -> str:
        """Send the form of a proposal's page with what is typed; give the page it leads to."""
        here = f"/proposals/{proposal}"
        form = {name: unescape(text) for name, text in person.form(here).items()}
        return person.press(f"{here}/approve", here, **{**form, **typed})


def post_all(service: Service) -> None:
    """Post the job of the tests, what it saved and passed, and its alarm on rank 13."""
    service.post(rank_map(), passes(), checkpoints(), alarm())
