"""What does the platform do in Kubernetes while it replaces, restarts and tests machines?

Node objects go and come, and the labels of its health monitoring move; and a label that somebody
else sets is an order to it, where node recovery is automatic.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from tests.doubles.kubernetes.answers import ApiError
from tests.doubles.kubernetes.double import KubernetesDouble
from tests.doubles.sagemaker.double import SagemakerDouble
from tests.doubles.sagemaker.state import Node

PREFIX = "sagemaker.amazonaws.com/"
HEALTH, CHECK = PREFIX + "node-health-status", PREFIX + "deep-health-check-status"
FAULT_TYPES, FAULT_REASONS = PREFIX + "fault-types", PREFIX + "fault-reasons"
ORDERS = {
    "UnschedulablePendingReplacement": "replace",
    "UnschedulablePendingReboot": "reboot",
}
GPUS = 8

Json = dict[str, Any]


class Platform:
    """The side of the SageMaker double that a Kubernetes double sees; only for EKS."""

    def __init__(self, sagemaker: SagemakerDouble, kubernetes: KubernetesDouble) -> None:
        self._sagemaker, self._kubernetes = sagemaker, kubernetes
        self._steps: dict[str, Callable[[Node], None]] = {
            "shutting_down": self._shutting_down,
            "gone": self._gone,
            "running": self._running,
            "rebooting": self._rebooting,
            "rebooted": self._rebooted,
            "check_running": self._check_running,
            "check_passed": self._check_passed,
            "check_failed": self._check_failed,
            "check_silent": self._check_silent,
        }
        for node in sagemaker.cluster.nodes.values():
            self._join(node)
        sagemaker.machines.watchers.append(self._step)
        sagemaker.before_time_passes(self._take_orders)

    def _step(self, step: str, node: Node) -> None:
        happens = self._steps.get(step)
        if happens is not None:
            happens(node)

    def _join(self, node: Node) -> None:
        if not self.has(node):
            self._kubernetes.put("nodes", node_object(self._sagemaker, node))

    def has(self, node: Node) -> bool:
        """Tell whether the cluster knows the node."""
        try:
            self._kubernetes.node(node_name(node))
        except ApiError:
            return False
        return True

    def _change(self, node: Node, labels: dict[str, str | None], ready: bool | None = None) -> None:
        if not self.has(node):
            return

        def edit(obj: Json) -> None:
            kept = obj["metadata"].setdefault("labels", {})
            for key, text in labels.items():
                if text is None:
                    kept.pop(key, None)
                else:
                    kept[key] = text
            obj["status"]["nodeInfo"] = boot(node)
            if ready is not None:
                for condition in obj["status"]["conditions"]:
                    if condition["type"] == "Ready":
                        condition["status"] = str(ready)
            _taint(obj, kept.get(HEALTH, "Schedulable"))

        self._kubernetes.change(node_name(node), edit)

    def _shutting_down(self, node: Node) -> None:
        self._change(node, {HEALTH: "UnschedulablePendingReplacement"}, ready=False)

    def _gone(self, node: Node) -> None:
        if self.has(node):
            self._kubernetes.remove(node_name(node))

    def _running(self, node: Node) -> None:
        self._join(node)
        self._change(node, {HEALTH: "Schedulable"}, ready=True)

    def _rebooting(self, node: Node) -> None:
        self._change(node, {HEALTH: "UnschedulablePendingReboot"}, ready=False)

    def _rebooted(self, node: Node) -> None:
        cleared = {FAULT_TYPES: None, FAULT_REASONS: None}
        self._change(node, {HEALTH: "Schedulable", **cleared}, ready=True)

    def _check_running(self, node: Node) -> None:
        self._join(node)
        self._change(node, {HEALTH: "Unschedulable", CHECK: "InProgress"})

    def _check_passed(self, node: Node) -> None:
        self._change(node, {HEALTH: "Schedulable", CHECK: "Passed"})

    def _check_failed(self, node: Node) -> None:
        faults = {FAULT_TYPES: "NvidiaErrorTerminate", FAULT_REASONS: "XidHardwareFailure"}
        self._change(node, {HEALTH: "Unschedulable", CHECK: "Failed", **faults})

    def _check_silent(self, node: Node) -> None:
        self._change(node, {HEALTH: "Schedulable", CHECK: None})

    def _take_orders(self) -> None:
        """Do what a label orders that somebody else has set."""
        if self._sagemaker.cluster.node_recovery != "Automatic":
            return
        for node in list(self._sagemaker.cluster.nodes.values()):
            if node.under_way is not None or not self.has(node):
                continue
            labels = self._kubernetes.node(node_name(node))["metadata"].get("labels") or {}
            order = ORDERS.get(labels.get(HEALTH, ""))
            if order == "replace":
                self._sagemaker.machines.replace(node, "platform")
            elif order == "reboot":
                self._sagemaker.machines.reboot(node, "platform")


def node_name(node: Node) -> str:
    """Give the name of a machine in Kubernetes."""
    return f"hyperpod-{node.instance_id}"


def boot(node: Node) -> Json:
    """Give what changes with every start of a machine's kernel."""
    name = f"{node.instance_id} {node.bootings}"
    return {"bootID": str(uuid.uuid5(uuid.NAMESPACE_OID, name))}


def node_object(sagemaker: SagemakerDouble, node: Node) -> Json:
    """Write the Node object of a machine that has just joined."""
    cluster = sagemaker.cluster
    instance_type = cluster.groups[node.group].instance_type
    karpenter = {"karpenter.sh/nodepool": "gpu"} if cluster.autoscaler == "Karpenter" else {}
    return {
        "metadata": {
            "name": node_name(node),
            "labels": {
                "node.kubernetes.io/instance-type": instance_type,
                PREFIX + "compute-type": "hyperpod",
                PREFIX + "instance-group-name": node.group,
                HEALTH: "Schedulable",
                "nvidia.com/gpu.present": "true",
                **karpenter,
            },
            "annotations": {},
            "creationTimestamp": node.launched.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "spec": {
            "providerID": (
                f"aws:///usw2-az1/sagemaker/cluster/hyperpod-{cluster.id}-{node.instance_id}"
            ),
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "capacity": {"nvidia.com/gpu": str(GPUS)},
            "allocatable": {"nvidia.com/gpu": str(GPUS)},
            "nodeInfo": boot(node),
        },
    }


def _taint(obj: Json, health: str) -> None:
    """Keep the platform's own taint in step with its label; foreign ones stay."""
    taints = [one for one in obj["spec"].get("taints") or [] if one.get("key") != HEALTH]
    if health != "Schedulable":
        taints.append({"key": HEALTH, "value": "Unschedulable", "effect": "NoSchedule"})
    obj["spec"]["taints"] = taints
