"""Which pods run on a node, and which of them are lost if the node goes?"""

from collections.abc import Iterable, Mapping
from typing import Any

from app.cluster.node_state import mapping, mappings
from app.cluster.ports import PodOnNode

SYSTEM_NAMESPACES = frozenset(
    {
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "gpu-operator",
        "nvidia-gpu-operator",
        "network-operator",
        "karpenter",
        "aws-hyperpod",
        "hyperpod-observability",
        "amazon-cloudwatch",
        "gke-managed-system",
        "gmp-system",
        "cert-manager",
    }
)
SYSTEM_PRIORITIES = frozenset({"system-node-critical", "system-cluster-critical"})

JOB_NAME_LABELS = (
    "HPJob",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""From the job that a person named down to the one that a controller made for it."""

_JOB_LABEL_PREFIXES = (
    "training.kubeflow.org/",
    "jobset.sigs.k8s.io/",
    "batch.kubernetes.io/",
    "sagemaker.amazonaws.com/",
)
_MIRROR = "kubernetes.io/config.mirror"


def read_pod(raw: Mapping[str, Any]) -> PodOnNode:
    """Turn a pod's JSON into what an approver must know of it."""
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    labels = {str(key): str(text) for key, text in mapping(metadata.get("labels")).items()}
    owner = _controller(mappings(metadata.get("ownerReferences")))
    namespace = str(metadata.get("namespace") or "default")
    kind = owner.get("kind")
    return PodOnNode(
        namespace=namespace,
        name=str(metadata.get("name") or ""),
        owner_kind=kind,
        owner_name=owner.get("name"),
        # A static pod comes back with its node like a daemon's.
        daemonset=kind in ("DaemonSet", "Node") or _MIRROR in mapping(metadata.get("annotations")),
        system=namespace in SYSTEM_NAMESPACES or spec.get("priorityClassName") in SYSTEM_PRIORITIES,
        phase=str(mapping(raw.get("status")).get("phase") or "Unknown"),
        job=_job(labels, owner),
        job_labels={
            key: text
            for key, text in labels.items()
            if key in JOB_NAME_LABELS or key.startswith(_JOB_LABEL_PREFIXES)
        },
    )


def by_namespace(pods: Iterable[PodOnNode]) -> dict[str, tuple[PodOnNode, ...]]:
    """Group the pods that are lost with the node, namespaces and names in order."""
    grouped: dict[str, list[PodOnNode]] = {}
    for pod in sorted(pods, key=lambda one: (one.namespace, one.name)):
        if pod.ends_with_node:
            grouped.setdefault(pod.namespace, []).append(pod)
    return {namespace: tuple(members) for namespace, members in grouped.items()}


def _controller(owners: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Pick the owner that would make the pod again; the first one where none is marked."""
    listed = list(owners)
    return next((one for one in listed if one.get("controller")), listed[0] if listed else {})


def _job(labels: Mapping[str, str], owner: Mapping[str, Any]) -> str | None:
    for label in JOB_NAME_LABELS:
        if labels.get(label):
            return labels[label]
    return owner.get("name") if owner.get("kind") in ("Job", "PyTorchJob", "JobSet") else None
