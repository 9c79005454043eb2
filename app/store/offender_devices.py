"""What is known of the devices of a ranking: names, places, cases, incidents, audited work?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.device_exposure import Exposure, moved, of_gpus, of_nodes
from app.store.exposure_reading import INCIDENT_COLUMNS, INCIDENTS, DeviceIncident
from app.store.offender_shapes import Candidate
from app.store.tables import cases, gpus, incidents, jobs, nodes, placements

# A node's score is its worst GPU's, looked for among those with most of its newest incidents.
# Where a node had more incidents than are read, the first of them is read whole.
_GPUS_SCORED = 4
_READ_WHOLE = 1


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
    exposure: Exposure


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the ranking.

    `gpu_id` or `node_id` is what its page is called by; `place` None: never seen in a machine.
    `incidents` oldest first, at most 50.  `exposure` is summed over the GPUs of a machine.
    `scored` are the GPUs whose worst score counts; `gpus_with_incidents` of a machine.
    """

    key: str
    label: str
    gpu_id: int | None
    place: Place | None
    case: OpenCase | None
    incidents: tuple[DeviceIncident, ...]
    exposure: Exposure
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
    exposures = of_gpus(connection, gpu_ids)
    devices = []
    for gpu_id in gpu_ids:
        found = tuple(_incidents(connection, incidents.c.gpu_id, gpu_id))
        past = GpuPast(gpu_id, found, exposures[gpu_id])
        devices.append(
            Device(
                key=str(gpu_id),
                label=uuids.get(gpu_id, ""),
                gpu_id=gpu_id,
                place=where.get(gpu_id),
                case=held.get(gpu_id),
                incidents=past.incidents,
                exposure=past.exposure,
                scored=(past,),
                gpus_with_incidents=1,
            )
        )
    return devices


def _machine(connection: Connection, subject: str, key: str, places: list[Place]) -> Device:
    newest = max(places, key=lambda place: place.last_seen_at, default=None)
    node_ids = [place.node_id for place in places]
    held = _cases(connection, cases.c.node_id, node_ids)
    column = incidents.c.node_id if subject == "node" else incidents.c.instance_id
    found = _incidents(connection, column, int(key) if subject == "node" else key)
    single, whole = of_nodes(connection, node_ids)
    named = Counter(one.gpu_id for one in found if one.gpu_id is not None)
    label = key if subject == "instance" else (newest.node if newest else None) or key
    return Device(
        key=key,
        label=label,
        gpu_id=None,
        place=newest,
        case=next(iter(held.values()), None),
        incidents=tuple(found),
        exposure=whole,
        scored=tuple(_pasts(connection, found, named, single)),
        gpus_with_incidents=len(named),
    )


def _pasts(
    connection: Connection,
    found: Sequence[DeviceIncident],
    named: Counter[int],
    single: Exposure,
) -> Iterator[GpuPast]:
    """Give the pasts of a machine's GPUs, from the machine's own reads where they hold all.

    A GPU that was always here has no incident and no work elsewhere.
    """
    gone = moved(connection, list(named))
    many = len(found) >= INCIDENTS
    for place, (gpu_id, _) in enumerate(named.most_common(_GPUS_SCORED)):
        if gpu_id in gone or (many and place < _READ_WHOLE):
            incidents_of_gpu = tuple(_incidents(connection, incidents.c.gpu_id, gpu_id))
        else:
            incidents_of_gpu = tuple(one for one in found if one.gpu_id == gpu_id)
        worked = of_gpus(connection, [gpu_id])[gpu_id] if gpu_id in gone else single
        yield GpuPast(gpu_id, incidents_of_gpu, worked)


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


def _incidents(
    connection: Connection, column: sa.Column[Any], value: int | str
) -> list[DeviceIncident]:
    query = (
        sa.select(*INCIDENT_COLUMNS)
        .join(jobs, jobs.c.id == incidents.c.job_id)
        .where(column == value)
        .order_by(incidents.c.first_at.desc())
        .limit(INCIDENTS)
    )
    return [DeviceIncident(*row) for row in connection.execute(query)][::-1]
