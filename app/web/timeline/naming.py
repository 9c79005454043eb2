"""What is written on a lane, and what does an alarm say in one line?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from app.store import timeline_names
from app.store.connection import Connection
from app.store.timeline_reading import AlarmRow, FindingRow
from app.web.timeline.lanes import Key
from app.web.words import short_uuid
from witness.rules import words

ALARMS = {
    "ring": "Ring alarm",
    "nonfinite": "Non-finite alarm",
    "weights": "Weights alarm",
    "reduced gradient": "Reduced-gradient alarm",
}
ACTIONS = {
    "cordon": "cordon",
    "uncordon": "uncordon",
    "replace": "replacement",
    "deep_health_check": "deep health check",
    "targeted_audit": "targeted audit",
}


def nodes(connection: Connection, node_ids: Collection[int]) -> dict[Key, str]:
    """Name the lanes of some nodes."""
    found = timeline_names.nodes(connection, node_ids)
    return {("node", row_id): label for row_id, label in found.items()}


def gpus(connection: Connection, gpu_ids: Collection[int]) -> dict[Key, str]:
    """Name the lanes of some GPUs."""
    found = timeline_names.gpus(connection, gpu_ids)
    return {("gpu", row_id): label for row_id, label in found.items()}


def jobs(
    connection: Connection, job_ids: Collection[int], namespaces: Sequence[str]
) -> dict[Key, str]:
    """Name the lanes of some jobs, only those of the namespaces where some are asked for."""
    found = timeline_names.jobs(connection, job_ids, namespaces)
    return {("job", row_id): label for row_id, label in found.items()}


def alarm(row: AlarmRow) -> str:
    """Name an alarm by its check and step."""
    kind = ALARMS.get(row.family, f"Alarm of the unknown check “{row.check}”")
    return f"{kind} at step {row.step:,}"


def who(row: AlarmRow, found: Sequence[FindingRow]) -> str:
    """Say whom an alarm names: ranks, and the device where it is one."""
    named = [one for one in found if one.rank is not None]
    ranks = sorted({one.rank for one in named if one.rank is not None})
    if not ranks:
        return "nobody named"
    said = words.ranks(ranks, 4)
    if len(ranks) > 1:
        return said
    return f"{said}, {device(named[0])}" if row.map_state != "none" else f"{said}, no rank map yet"


def device(found: FindingRow) -> str:
    """Say where a finding points: GPU and node, as far as they are known."""
    place = found.node or found.instance_id
    if found.gpu_uuid and place:
        return f"GPU {short_uuid(found.gpu_uuid)} of {place}"
    if found.gpu_uuid:
        return f"GPU {short_uuid(found.gpu_uuid)}"
    return place or "device not known"
