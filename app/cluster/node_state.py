"""What does the JSON of a node say, and whose cordon is on it?"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from app.cluster.marks import FIELD_MANAGER, read_moment, read_our_cordon
from app.cluster.ports import OUR_PREFIX, NodeState, OurCordon, Taint
from witness.rules.identity import instance_id

HEALTH_STATUS_LABEL = "sagemaker.amazonaws.com/node-health-status"
CONTROL_PLANE_LABELS = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)
GPU_RESOURCE = "nvidia.com/gpu"
GPU_LABELS = ("nvidia.com/gpu.present", "nvidia.com/gpu.count", "cloud.google.com/gke-accelerator")

_NOTE_KEY = re.compile(r"cordon|maint|drain|quarantin|lock|reason|hold|repair|ticket|change", re.I)
"""Annotation keys under which operators and their tools say why a node is out of service."""

_KUBELET_TAINTS = "node.kubernetes.io/"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_WORDS_LIMIT = 200


def read_node(raw: Mapping[str, Any]) -> NodeState:
    """Turn a node's JSON into its state; missing parts become None or empty, never a guess."""
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    labels, annotations = _texts(metadata.get("labels")), _texts(metadata.get("annotations"))
    name, provider_id = str(metadata.get("name") or ""), spec.get("providerID") or None
    ours = read_our_cordon(annotations)
    return NodeState(
        name=name,
        uid=metadata.get("uid"),
        resource_version=metadata.get("resourceVersion"),
        provider_id=provider_id,
        instance_id=instance_id(name, None, provider_id),
        unschedulable=spec.get("unschedulable") is True,
        ready=_ready(raw),
        taints=tuple(_taints(spec)),
        labels=labels,
        annotations=annotations,
        created_at=read_moment(metadata.get("creationTimestamp")),
        our_cordon=ours,
        cordoned_by_other=_cordoned_by_other(raw, annotations, ours),
        health_status=labels.get(HEALTH_STATUS_LABEL),
        is_control_plane=any(label in labels for label in CONTROL_PLANE_LABELS),
        is_gpu_node=_is_gpu_node(raw, labels),
        raw=raw,
    )


def mapping(value: object) -> Mapping[str, Any]:
    """Give an object, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _texts(value: object) -> dict[str, str]:
    return {str(key): str(text) for key, text in mapping(value).items()}


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """Give the objects of a list, and nothing for anything else: one odd node spoils no list."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def _taints(spec: Mapping[str, Any]) -> Iterator[Taint]:
    for taint in mappings(spec.get("taints")):
        yield Taint(
            str(taint.get("key", "")), str(taint.get("effect", "")), str(taint.get("value") or "")
        )


def _ready(raw: Mapping[str, Any]) -> bool | None:
    """Read the Ready condition; "Unknown" (the kubelet has gone silent) is None, not False."""
    for condition in mappings(mapping(raw.get("status")).get("conditions")):
        if condition.get("type") == "Ready":
            return {"True": True, "False": False}.get(str(condition.get("status")))
    return None


def _is_gpu_node(raw: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    status = mapping(raw.get("status"))
    for part in ("capacity", "allocatable"):
        if str(mapping(status.get(part)).get(GPU_RESOURCE, "0")) not in ("0", ""):
            return True
    return any(labels.get(label, "false") not in ("false", "0") for label in GPU_LABELS)


def _cordoned_by_other(
    raw: Mapping[str, Any], annotations: Mapping[str, str], ours: OurCordon | None
) -> str | None:
    """Say in words whose cordon makes the node unschedulable; None where it is ours or none."""
    if mapping(raw.get("spec")).get("unschedulable") is not True:
        return None
    manager = cordon_manager(raw)
    if ours is not None and (manager is None or manager[0] == FIELD_MANAGER):
        return None
    notes = [*_notes(annotations), *_foreign_marks(raw)]
    if manager is not None and manager[0] != FIELD_MANAGER:
        at = f" at {manager[1]:%Y-%m-%d %H:%M:%S} UTC" if manager[1] else ""
        notes.append(f"set through {_plain(manager[0])}{at}")
    return "; ".join(notes) or "whoever it was left no note on the node"


def _notes(annotations: Mapping[str, str]) -> Iterator[str]:
    for key, text in sorted(annotations.items()):
        if not key.startswith(OUR_PREFIX) and _NOTE_KEY.search(key) and text.strip():
            yield f"{_plain(text)}, annotation {_plain(key)}"


def _foreign_marks(raw: Mapping[str, Any]) -> Iterator[str]:
    for taint in _taints(mapping(raw.get("spec"))):
        if not taint.key.startswith((_KUBELET_TAINTS, OUR_PREFIX, GPU_RESOURCE)):
            value = f"={_plain(taint.value)}" if taint.value else ""
            yield f"taint {_plain(taint.key)}{value}"


def _plain(text: str) -> str:
    """Make foreign text fit for a sentence: one line, bounded."""
    flat = _CONTROL.sub(" ", text).strip()
    return flat if len(flat) <= _WORDS_LIMIT else flat[: _WORDS_LIMIT - 1] + "…"


def cordon_manager(raw: Mapping[str, Any]) -> tuple[str, datetime | None] | None:
    """Find who wrote `unschedulable` last, and when; None where the server does not tell."""
    found: tuple[str, datetime | None] | None = None
    for entry in mappings(mapping(raw.get("metadata")).get("managedFields")):
        fields = mapping(mapping(entry.get("fieldsV1")).get("f:spec"))
        if "f:unschedulable" not in fields:
            continue
        one = (str(entry.get("manager") or "unknown"), read_moment(entry.get("time")))
        # Several can own the field with one value; a foreign owner is the one that matters.
        if found is None or found[0] == FIELD_MANAGER:
            found = one
    return found
