"""Which pods run on a node, and which of them are lost if the node goes?"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.cluster.marks import read_moment
from app.cluster.node_state import mapping, mappings
from app.cluster.ports import PodOnNode, PodVolume

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
_ACCELERATORS = ("nvidia.com/", "amd.com/gpu", "google.com/tpu", "aws.amazon.com/neuron")
_NETWORK = frozenset({"nfs", "cephfs", "glusterfs", "azureFile", "rbd", "iscsi"})
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
        volumes=tuple(_volumes(spec)),
        accelerators=_accelerators(spec),
        started_at=read_moment(mapping(raw.get("status")).get("startTime")),
    )


def _volumes(spec: Mapping[str, Any]) -> Iterator[PodVolume]:
    """Give the places for data; configuration, secrets and tokens are none."""
    for one in mappings(spec.get("volumes")):
        name = str(one.get("name") or "")
        if "emptyDir" in one:
            in_memory = mapping(one.get("emptyDir")).get("medium") == "Memory"
            yield PodVolume(name, "memory" if in_memory else "disk")
        elif "hostPath" in one:
            yield PodVolume(name, "path", str(mapping(one.get("hostPath")).get("path") or "/"))
        elif "ephemeral" in one:
            yield PodVolume(name, "claim")
        elif "persistentVolumeClaim" in one:
            claim = mapping(one.get("persistentVolumeClaim")).get("claimName")
            yield PodVolume(name, "claim", claim=None if claim is None else str(claim))
        elif _NETWORK & one.keys():
            yield PodVolume(name, "network")


def _accelerators(spec: Mapping[str, Any]) -> int:
    """Count the GPUs that a pod asks for; a claim on one through another way counts as one."""
    asked = 0
    for container in mappings(spec.get("containers")):
        resources = mapping(container.get("resources"))
        wanted = {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}
        asked += sum(_number(wanted[key]) for key in wanted if str(key).startswith(_ACCELERATORS))
    return asked or (1 if spec.get("resourceClaims") else 0)


def _number(value: object) -> int:
    """Read a count; what is none counts as one, since something is asked for."""
    text = str(value)
    return int(text) if text.isdecimal() else 1


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
