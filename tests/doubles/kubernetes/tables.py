"""What does kubectl show of a list?"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.doubles.kubernetes.answers import Json

_ROLE = "node-role.kubernetes.io/"


def table(store: str, objects: list[Json], metadata: Json) -> Json:
    """Give a list in the Table form."""
    columns, row = _TABLES.get(store, (("Name", "Age"), _plain_row))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": name,
                "priority": 0,
            }
            for name in columns
        ],
        "rows": [{"cells": row(one), "object": _partial(one)} for one in objects],
    }


def wants_table(accept: str) -> bool:
    """Tell whether the client's first choice is a Table."""
    return "as=Table" in accept.split(",", maxsplit=1)[0]


def _partial(one: Json) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": one["metadata"],
    }


def age(moment: str | None) -> str:
    """Give the time since then in the coarse form that kubectl shows."""
    if not moment:
        return "<unknown>"
    then = datetime.fromisoformat(moment)
    seconds = max(0, int((datetime.now(UTC) - then).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _plain_row(one: Json) -> list[Any]:
    return [one["metadata"]["name"], age(one["metadata"].get("creationTimestamp"))]


def _node_row(one: Json) -> list[Any]:
    metadata, status = one["metadata"], one.get("status", {})
    states = [
        condition["type"] if condition.get("status") == "True" else f"Not{condition['type']}"
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if one.get("spec", {}).get("unschedulable"):
        states.append("SchedulingDisabled")
    roles = sorted(
        label.removeprefix(_ROLE) for label in metadata.get("labels") or () if _ROLE in label
    )
    return [
        metadata["name"],
        ",".join(states),
        ",".join(roles) or "<none>",
        age(metadata.get("creationTimestamp")),
        status.get("nodeInfo", {}).get("kubeletVersion", ""),
    ]


def _pod_row(one: Json) -> list[Any]:
    total = len(one.get("spec", {}).get("containers") or ())
    statuses = one.get("status", {}).get("containerStatuses") or ()
    ready = sum(bool(status.get("ready")) for status in statuses)
    restarts = sum(int(status.get("restartCount") or 0) for status in statuses)
    phase = one.get("status", {}).get("phase", "Unknown")
    born = one["metadata"].get("creationTimestamp")
    return [one["metadata"]["name"], f"{ready}/{total}", phase, restarts, age(born)]


def _event_row(one: Json) -> list[Any]:
    about = one.get("involvedObject") or {}
    return [
        age(one.get("lastTimestamp") or (one.get("eventTime") or "")),
        one.get("type", ""),
        one.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        one.get("message", ""),
    ]


_Row = Callable[[Json], list[Any]]
_TABLES: dict[str, tuple[tuple[str, ...], _Row]] = {
    "nodes": (("Name", "Status", "Roles", "Age", "Version"), _node_row),
    "pods": (("Name", "Ready", "Status", "Restarts", "Age"), _pod_row),
    "events": (("Last Seen", "Type", "Reason", "Object", "Message"), _event_row),
}
