"""What is known of the devices of a ranking: names, places, cases, incidents, audited work?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.exposure_reading import (
    ATTEMPTS,
    INCIDENTS,
    DeviceIncident,
    Stretch,
    audited_stretches,
    device_incidents,
)
from app.store.offender_reading import Candidate
from app.store.tables import (
    attempts,
    cases,
    gpus,
    incidents,
    jobs,
    nodes,
    offender_windows,
    placements,
    rank_map_nodes,
)

# A node's score is its worst GPU's; of many GPUs with incidents the most telling ones are scored.
_GPUS_SCORED = 4


@dataclass(frozen=True, slots=True)
class Place:
    """One machine, and the index of a GPU in it where that is known."""

    node_id: int
    node: str | None
    instance_id: str | None
    last_seen_at: datetime
    gpu_index: int | None = None


@dataclass(frozen=True, slots=True)
class OpenCase:
    """The case that says most about a device: the newest open one, else the newest."""

    id: int
    status: str
    standing: str
    rule: str | None
    headline: str
    adjudication: str


@dataclass(frozen=True, slots=True)
class GpuPast:
    """What one GPU's score is made of."""

    gpu_id: int
    incidents: tuple[DeviceIncident, ...]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the ranking.

    `gpu_id` or `node_id` is what its page is called by; `place` None: never seen in a machine.
    `incidents` oldest first, at most 50.  `stretches` hold audited seconds summed over its GPUs.
    `scored` are the GPUs whose worst score counts; `gpus_with_incidents` of a machine.
    """

    key: str
    label: str
    gpu_id: int | None
    place: Place | None
    case: OpenCase | None
    incidents: tuple[DeviceIncident, ...]
    stretches: tuple[Stretch, ...]
    scored: tuple[GpuPast, ...]
    gpus_with_incidents: int


def describe(connection: Connection, candidates: Sequence[Candidate]) -> list[Device]:
    """Read what the page shows of each device, in the order given."""
    if not candidates:
        return []
    keys = [one.key for one in candidates]
    if candidates[0].subject == "gpu":
        return _gpus(connection, [int(key) for key in keys])
    if candidates[0].subject == "node":
        places = {str(place.node_id): [place] for place in _nodes(connection, ids=map(int, keys))}
    else:
        places = defaultdict(list)
        for place in _nodes(connection, instances=keys):
            places[place.instance_id or ""].append(place)
    return [_machine(connection, candidates[0].subject, key, places.get(key, [])) for key in keys]


def _gpus(connection: Connection, gpu_ids: Sequence[int]) -> list[Device]:
    uuids = {
        row.id: row.uuid
        for row in connection.execute(
            sa.select(gpus.c.id, gpus.c.uuid).where(gpus.c.id.in_(gpu_ids))
        )
    }
    where = _newest_places(connection, gpu_ids)
    held = _cases(connection, cases.c.gpu_id, gpu_ids)
    devices = []
    for gpu_id in gpu_ids:
        past = _past(connection, gpu_id)
        devices.append(
            Device(
                key=str(gpu_id),
                label=uuids.get(gpu_id, ""),
                gpu_id=gpu_id,
                place=where.get(gpu_id),
                case=held.get(gpu_id),
                incidents=past.incidents,
                stretches=past.stretches,
                scored=(past,),
                gpus_with_incidents=1,
            )
        )
    return devices


def _machine(connection: Connection, subject: str, key: str, places: list[Place]) -> Device:
    newest = max(places, key=lambda place: place.last_seen_at, default=None)
    node_ids = [place.node_id for place in places]
    named = _gpus_named(connection, node_ids)
    held = _cases(connection, cases.c.node_id, node_ids)
    column = incidents.c.node_id if subject == "node" else incidents.c.instance_id
    label = key if subject == "instance" else (newest.node if newest else None) or key
    return Device(
        key=key,
        label=label,
        gpu_id=None,
        place=newest,
        case=next(iter(held.values()), None),
        incidents=tuple(_incidents(connection, column, int(key) if subject == "node" else key)),
        stretches=tuple(_machine_stretches(connection, node_ids)),
        scored=tuple(_past(connection, gpu_id) for gpu_id in named[:_GPUS_SCORED]),
        gpus_with_incidents=len(named),
    )


def _past(connection: Connection, gpu_id: int) -> GpuPast:
    return GpuPast(
        gpu_id,
        tuple(device_incidents(connection, gpu_id, None)),
        tuple(audited_stretches(connection, gpu_id)),
    )


def _nodes(
    connection: Connection, ids: Any = None, instances: Sequence[str] | None = None
) -> list[Place]:
    where = (
        nodes.c.id.in_(list(ids)) if ids is not None else nodes.c.instance_id.in_(instances or [])
    )
    query = sa.select(nodes.c.id, nodes.c.name, nodes.c.instance_id, nodes.c.last_seen_at)
    return [Place(*row) for row in connection.execute(query.where(where))]


def _newest_places(connection: Connection, gpu_ids: Sequence[int]) -> dict[int, Place]:
    query = (
        sa.select(
            placements.c.gpu_id,
            nodes.c.id,
            nodes.c.name,
            nodes.c.instance_id,
            placements.c.last_seen_at,
            placements.c.gpu_index,
        )
        .join(nodes, nodes.c.id == placements.c.node_id)
        .where(placements.c.gpu_id.in_(gpu_ids))
        .order_by(placements.c.last_seen_at)
    )
    return {row[0]: Place(*row[1:]) for row in connection.execute(query)}


def _cases(
    connection: Connection, column: sa.Column[Any], keys: Sequence[int]
) -> dict[int, OpenCase]:
    if not keys:
        return {}
    query = (
        sa.select(
            column,
            cases.c.id,
            cases.c.status,
            cases.c.standing,
            cases.c.rule,
            cases.c.headline,
            cases.c.adjudication,
        )
        .where(column.in_(keys))
        # "open" sorts after "closed": the last row of each device is the one to keep.
        .order_by(cases.c.status, cases.c.last_alarm_at)
    )
    return {row[0]: OpenCase(*row[1:]) for row in connection.execute(query)}


def _gpus_named(connection: Connection, node_ids: Sequence[int]) -> list[int]:
    """List the GPUs that had an incident in a machine, the most telling first."""
    if not node_ids:
        return []
    named = (
        sa.select(incidents.c.gpu_id)
        .where(incidents.c.node_id.in_(node_ids), incidents.c.gpu_id.is_not(None))
        .distinct()
    )
    found = [int(row[0]) for row in connection.execute(named)]
    table = offender_windows.c
    strengths = {
        int(row[0]): float(row[1])
        for row in connection.execute(
            sa.select(table.subject_key, table.strength).where(
                table.subject == "gpu", table.subject_key.in_([str(one) for one in found])
            )
        )
    }
    return sorted(found, key=lambda gpu_id: (-strengths.get(gpu_id, 0.0), gpu_id))


def _incidents(
    connection: Connection, column: sa.Column[Any], value: int | str
) -> list[DeviceIncident]:
    query = (
        sa.select(
            incidents.c.id,
            incidents.c.kind,
            incidents.c.first_at,
            incidents.c.last_at,
            incidents.c.job_id,
            jobs.c.name,
            incidents.c.first_rank,
            incidents.c.gpu_id,
            incidents.c.instance_id,
            incidents.c.code_digest,
            incidents.c.alarms,
        )
        .join(jobs, jobs.c.id == incidents.c.job_id)
        .where(column == value)
        .order_by(incidents.c.first_at.desc())
        .limit(INCIDENTS)
    )
    return [DeviceIncident(*row) for row in connection.execute(query)][::-1]


def _machine_stretches(connection: Connection, node_ids: Sequence[int]) -> list[Stretch]:
    """Read the audited work on a machine, each attempt's seconds times its ranks there."""
    if not node_ids:
        return []
    query = (
        sa.select(
            attempts.c.started_at,
            attempts.c.last_pass_at,
            attempts.c.audited_seconds,
            rank_map_nodes.c.ranks,
        )
        .join(attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id)
        .where(
            rank_map_nodes.c.node_id.in_(node_ids),
            attempts.c.audited_seconds > 0,
            attempts.c.started_at.is_not(None),
        )
        .order_by(attempts.c.started_at.desc())
        .limit(ATTEMPTS)
    )
    return [
        Stretch(row.started_at, row.last_pass_at or row.started_at, row.audited_seconds * row.ranks)
        for row in connection.execute(query)
    ]
