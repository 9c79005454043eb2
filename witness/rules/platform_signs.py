"""Does the platform already do something to a machine, as its labels, taints and status show?

A platform repairs by itself, often faster than a person decides. What it has begun is read from
the marks that it leaves; a mark that is missing proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

HEALTH = "sagemaker.amazonaws.com/node-health-status"
DEEP_CHECK = "sagemaker.amazonaws.com/deep-health-check-status"
KARPENTER_POOL = "karpenter.sh/nodepool"
GKE_REPORT = "cloud.google.com/report-and-replace-status"
GKE_FAULT = "cloud.google.com/fault-behavior"
GKE_MAINTENANCE = "cloud.google.com/active-node-maintenance"

Doing = Literal["replacing", "rebooting", "testing", "repairing", "removing", "patching"]


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that the platform does to a machine, and the mark that shows it."""

    doing: Doing
    mark: str

    @property
    def words(self) -> str:
        """Say it as a sentence without its stop."""
        return f"{SENTENCES[self.doing]} ({self.mark})"


SENTENCES: Mapping[Doing, str] = {
    "replacing": "The platform is already replacing this node",
    "rebooting": "The platform is already restarting this node",
    "testing": "A deep health check runs on this node",
    "repairing": "The platform is already repairing this node",
    "removing": "The platform is taking this node away",
    "patching": "The platform is updating the software of this node",
}
ENDS_MACHINE: frozenset[Doing] = frozenset({"replacing", "repairing", "removing"})
"""After these another machine, or none, is there."""

_LABELS: Mapping[tuple[str, str], Doing] = {
    (HEALTH, "UnschedulablePendingReplacement"): "replacing",
    (HEALTH, "UnschedulablePendingReboot"): "rebooting",
    (DEEP_CHECK, "InProgress"): "testing",
    (GKE_MAINTENANCE, "ONGOING"): "patching",
    (GKE_REPORT, "PodsEvicted"): "repairing",
    (GKE_REPORT, "OperationRUNNING"): "repairing",
    (GKE_REPORT, "OperationDone"): "repairing",
}
_STATUSES: Mapping[str, Doing] = {
    "ShuttingDown": "replacing",
    "DeepHealthCheckInProgress": "testing",
    "SystemUpdating": "patching",
    "DetachInProgress": "removing",
}
_TAINTS: Mapping[str, Doing] = {
    "karpenter.sh/disrupted": "removing",
    "karpenter.sh/disruption": "removing",
    "ToBeDeletedByClusterAutoscaler": "removing",
    "cloud.google.com/impending-node-termination": "removing",
    "node.cloudprovider.kubernetes.io/shutdown": "removing",
}


def signs(
    labels: Mapping[str, str],
    taints: Collection[str],
    status: str | None,
    *,
    deleting: bool = False,
) -> tuple[Sign, ...]:
    """List what is done to a machine, one sign a mark.

    `taints` are keys; `status` is the provider's own word, None where it was not asked;
    `deleting` tells that the node object is on its way out.
    """
    found = [
        Sign(doing, f"label {key}={value}")
        for (key, value), doing in _LABELS.items()
        if labels.get(key) == value
    ]
    if labels.get(GKE_FAULT) not in (None, "", "unspecified") and GKE_REPORT not in labels:
        found.append(Sign("repairing", f"label {GKE_FAULT}={labels[GKE_FAULT]}"))
    found += [Sign(_TAINTS[key], f"taint {key}") for key in taints if key in _TAINTS]
    if status is not None and status in _STATUSES:
        found.append(Sign(_STATUSES[status], f"status {status} at the provider"))
    if deleting:
        found.append(Sign("removing", "the node object is being deleted"))
    return tuple(found)
