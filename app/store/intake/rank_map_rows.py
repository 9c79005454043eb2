"""How is a rank map stored once, and read back fast?"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.intake.job_rows import searchable
from app.store.intake.upsert import insert_new, merge
from app.store.tables import gpus, nodes, placements, rank_map_nodes, rank_maps
from witness.rules.topology import Place, Topology

_CACHED_RANKS = 400_000  # about 200 MB of places at the very most


@dataclass(frozen=True, slots=True)
class MapRow:
    """One rank as stored: its place, and how its GPU's UUID was spelt.

    `place.gpu_uuid` holds the canonical UUID, the posted prefix of a short id, or None.
    """

    place: Place
    uuid_form: str


def node_id(cluster: str, name: str | None, instance_id: str | None) -> int | None:
    """Derive a machine's id; None where neither name nor instance is known."""
    if name is None and instance_id is None:
        return None
    return ids.derive("node", cluster, name, instance_id)


def gpu_id(uuid: str | None) -> int | None:
    """Derive a GPU's id from its canonical UUID."""
    return None if uuid is None else ids.derive("gpu", uuid)


def content_hash(cluster: str, world_size: int, offset: int | None, rows: Sequence[MapRow]) -> str:
    """Hash a placement, whatever the order of its rows."""
    return ids.digest("rank map", cluster, world_size, offset, _encode(rows))


def resolve_short_ids(connection: Connection, cluster: str, rows: Sequence[MapRow]) -> list[MapRow]:
    """Complete short UUIDs where exactly one known GPU of that machine fits and is not listed.

    A prefix alone names whole batches of GPUs; the machine's other GPUs in the same map rule
    theirs out.
    """
    listed = {row.place.gpu_uuid for row in rows if row.uuid_form == "full"}
    return [
        _completed(connection, cluster, row, listed) if row.uuid_form == "short" else row
        for row in rows
    ]


def _completed(
    connection: Connection, cluster: str, row: MapRow, listed: set[str | None]
) -> MapRow:
    machine = node_id(cluster, row.place.node, row.place.instance_id)
    prefix = row.place.gpu_uuid
    if machine is None or prefix is None:
        return row
    statement = (
        sa.select(gpus.c.uuid)
        .join(placements, placements.c.gpu_id == gpus.c.id)
        .where(placements.c.node_id == machine, gpus.c.form == "full")
    )
    fitting = [
        uuid
        for (uuid,) in connection.execute(statement)
        if uuid.startswith(prefix) and uuid not in listed
    ]
    if len(fitting) != 1:
        return row
    return replace(row, place=replace(row.place, gpu_uuid=fitting[0]))


@dataclass(frozen=True, slots=True)
class MapContent:
    """What one rank map says; `digest` from `content_hash`."""

    cluster: str
    world_size: int
    gpus_per_node: int | None
    peer_offset: int | None
    rows: Sequence[MapRow]
    digest: str


def write_map(connection: Connection, content: MapContent, at: int, received_at: int) -> int:
    """Store a placement unless it is known, and note where its machines and GPUs were seen.

    Times in microseconds.
    """
    cluster, rows, digest = content.cluster, content.rows, content.digest
    world_size, gpus_per_node = content.world_size, content.gpus_per_node
    peer_offset = content.peer_offset
    map_id = ids.derive("rank map", digest)
    machines = _machines(cluster, rows)
    devices = _devices(cluster, rows)
    _see(connection, machines, devices, cluster, at)
    known = connection.execute(sa.select(rank_maps.c.id).where(rank_maps.c.id == map_id)).first()
    if known:
        return map_id
    topology = Topology.from_places(
        [row.place for row in rows], world_size, gpus_per_node, peer_offset
    )
    insert_new(
        connection,
        rank_maps,
        [
            {
                "id": map_id,
                "content_hash": digest,
                "world_size": world_size,
                "ranks": len(rows),
                "nodes": topology.node_count,
                "unplaced": sum(1 for row in rows if row.place.node is None),
                "gpus_per_node": topology.gpus_per_node,
                "peer_offset": peer_offset,
                "rows": zlib.compress(_encode(rows).encode(), 6),
                "created_at": received_at,
            }
        ],
    )
    links = [
        {"rank_map_id": map_id, "node_id": machine, "ranks": count}
        for machine, (_, _, count) in machines.items()
    ]
    insert_new(connection, rank_map_nodes, links)
    return map_id


def topology_of(connection: Connection, rank_map_id: int) -> Topology:
    """Read the topology of a stored map; maps never change, so they are kept in memory."""
    return _cached(connection, rank_map_id)[0]


def rows_of(connection: Connection, rank_map_id: int) -> tuple[MapRow, ...]:
    """Read all rows of a stored map, in rank order."""
    return _cached(connection, rank_map_id)[1]


_cache: OrderedDict[int, tuple[Topology, tuple[MapRow, ...]]] = OrderedDict()
_cache_lock = threading.Lock()


def _cached(connection: Connection, rank_map_id: int) -> tuple[Topology, tuple[MapRow, ...]]:
    with _cache_lock:
        found = _cache.get(rank_map_id)
        if found is not None:
            _cache.move_to_end(rank_map_id)
            return found
    row = connection.execute(sa.select(rank_maps).where(rank_maps.c.id == rank_map_id)).one()
    rows = tuple(_decode(row.rows))
    places = [one.place for one in rows]
    topology = Topology.from_places(places, row.world_size, row.gpus_per_node, row.peer_offset)
    with _cache_lock:
        _cache[rank_map_id] = (topology, rows)
        while len(_cache) > 1 and sum(len(item[1]) for item in _cache.values()) > _CACHED_RANKS:
            _cache.popitem(last=False)
    return topology, rows


def _encode(rows: Iterable[MapRow]) -> str:
    table = [
        [
            one.place.rank,
            one.place.node,
            one.place.instance_id,
            one.place.gpu_uuid,
            one.uuid_form,
            one.place.local_rank,
            one.place.gpu_index,
            one.place.pod,
            one.place.slice,
        ]
        for one in rows
    ]
    table.sort(key=lambda cells: cells[0])  # type: ignore[arg-type, return-value]
    return json.dumps(table, separators=(",", ":"))


def _decode(blob: bytes) -> Iterable[MapRow]:
    for rank, node, instance, uuid, form, local, index, pod, slice_ in json.loads(
        zlib.decompress(blob)
    ):
        yield MapRow(Place(rank, node, instance, uuid, local, index, pod, slice_), form)


def _machines(
    cluster: str, rows: Sequence[MapRow]
) -> dict[int, tuple[str | None, str | None, int]]:
    found: dict[int, tuple[str | None, str | None, int]] = {}
    known: dict[tuple[str | None, str | None], int | None] = {}
    for row in rows:
        host = (row.place.node, row.place.instance_id)
        if host not in known:
            known[host] = node_id(cluster, *host)
        machine = known[host]
        if machine is not None:
            count = found[machine][2] if machine in found else 0
            found[machine] = (*host, count + 1)
    return found


def _devices(
    cluster: str, rows: Sequence[MapRow]
) -> list[tuple[int, str, str, int | None, int | None]]:
    """List (gpu id, uuid, form, node id, index) of the rows that name a GPU."""
    known: dict[tuple[str | None, str | None], int | None] = {}
    found = []
    for row in rows:
        place = row.place
        device = gpu_id(place.gpu_uuid)
        if device is None or place.gpu_uuid is None:
            continue
        host = (place.node, place.instance_id)
        if host not in known:
            known[host] = node_id(cluster, *host)
        form = row.uuid_form
        if form == "short" and len(place.gpu_uuid) == 40:
            form = "full"  # completed: the GPU itself is known by its whole UUID
        index = place.gpu_index if place.gpu_index is not None else place.local_rank
        found.append((device, place.gpu_uuid, form, known[host], index))
    return found


def _see(
    connection: Connection,
    machines: dict[int, tuple[str | None, str | None, int]],
    devices: list[tuple[int, str, str, int | None, int | None]],
    cluster: str,
    at: int,
) -> None:
    seen: dict[str, Any] = {"first_seen_at": at, "last_seen_at": at}
    widen = {"first_seen_at": "min", "last_seen_at": "max"}
    node_rows = [
        {"id": machine, "cluster": cluster, "name": name, "search": searchable(name),
         "instance_id": instance, **seen}
        for machine, (name, instance, _) in machines.items()
    ]  # fmt: skip
    merge(connection, nodes, node_rows, widen)  # type: ignore[arg-type]
    unique = {device: (uuid, form) for device, uuid, form, _, _ in devices}
    gpu_rows = [
        {"id": device, "uuid": uuid, "form": form, **seen}
        for device, (uuid, form) in unique.items()
    ]
    merge(connection, gpus, gpu_rows, widen)  # type: ignore[arg-type]
    places = {
        (device, machine): {"gpu_id": device, "node_id": machine, "gpu_index": index, **seen}
        for device, _, _, machine, index in devices
        if machine is not None
    }
    merge(connection, placements, list(places.values()), {**widen, "gpu_index": "fill"})  # type: ignore[dict-item]
