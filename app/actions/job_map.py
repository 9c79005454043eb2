"""Which machine and GPU does each rank of an attempt have, searched and cut into pages?

A map of 16,384 ranks is never laid out at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.store import attempt_reading
from app.store.attempt_reading import PostedMap
from app.store.connection import Connection
from app.store.intake.rank_map_rows import MapRow, gpu_id, node_id, rows_of

PAGE = 50
DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class MapNode:
    """One machine of a map; `node_id` None: the map says of these ranks no machine at all."""

    node_id: int | None
    node: str | None
    instance_id: str | None
    ranks: tuple[int, ...]
    gpus: int


@dataclass(frozen=True, slots=True)
class MapRank:
    """One rank of a map with the ids of the pages about it."""

    row: MapRow
    node_id: int | None
    gpu_id: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One rank that two maps of one attempt put in different places; None: not in that map."""

    rank: int
    first: MapRow | None
    other: MapRow | None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """How another map of the attempt differs from its first one."""

    other: PostedMap
    ranks_in_all: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class MapView:
    """One page of an attempt's first map; `found` machines or ranks fit the search."""

    posted: PostedMap
    by: str
    find: str
    page: int
    found: int
    nodes: tuple[MapNode, ...] = ()
    ranks: tuple[MapRank, ...] = ()
    contradictions: tuple[Contradiction, ...] = field(default=())

    @property
    def pages(self) -> int:
        """Count the pages."""
        return max(1, -(-self.found // PAGE))


def look_up(
    connection: Connection, attempt_id: int, cluster: str, by: str, find: str, page: int
) -> MapView | None:
    """Read one page of an attempt's map, by "nodes" or by "ranks"; None where none has come."""
    maps = attempt_reading.read_maps(connection, attempt_id)
    if not maps:
        return None
    rows = rows_of(connection, maps[0].rank_map_id)
    fitting = [row for row in rows if _fits(row, find)] if find else rows
    contradictions = tuple(_held(connection, rows, other) for other in maps[1:])
    start = (page - 1) * PAGE
    if by == "ranks":
        part = fitting[start : start + PAGE]
        ranks = tuple(
            MapRank(row, node_id(cluster, row.place.node, row.place.instance_id), _gpu(row))
            for row in part
        )
        return MapView(maps[0], by, find, page, len(fitting), (), ranks, contradictions)
    machines = _machines(fitting, cluster)
    nodes = tuple(machines[start : start + PAGE])
    return MapView(maps[0], by, find, page, len(machines), nodes, (), contradictions)


def _fits(row: MapRow, find: str) -> bool:
    """Tell whether a row holds what is looked for: a rank by its number, else a part of a name."""
    if find.isascii() and find.isdigit() and len(find) < 10:
        return row.place.rank == int(find)
    wanted = find.casefold()
    place = row.place
    names = (place.node, place.instance_id, place.gpu_uuid, place.pod, place.slice)
    return any(name is not None and wanted in name.casefold() for name in names)


def _gpu(row: MapRow) -> int | None:
    return gpu_id(row.place.gpu_uuid)


def _machines(rows: Sequence[MapRow], cluster: str) -> list[MapNode]:
    """Gather rows by machine, in the order of their first rank; those without one come first."""
    gathered: dict[tuple[str | None, str | None], list[MapRow]] = {}
    for row in rows:
        gathered.setdefault((row.place.node, row.place.instance_id), []).append(row)
    found = [
        MapNode(
            node_id(cluster, node, instance),
            node,
            instance,
            tuple(row.place.rank for row in members),
            len({row.place.gpu_uuid for row in members if row.place.gpu_uuid}),
        )
        for (node, instance), members in gathered.items()
    ]
    return sorted(found, key=lambda one: (one.node_id is not None, one.ranks[0]))


def _held(connection: Connection, rows: Sequence[MapRow], other: PostedMap) -> Contradiction:
    first = {row.place.rank: row for row in rows}
    second = {row.place.rank: row for row in rows_of(connection, other.rank_map_id)}
    differing = [
        rank for rank in sorted(first.keys() | second.keys()) if first.get(rank) != second.get(rank)
    ]
    shown = tuple(
        Difference(rank, first.get(rank), second.get(rank)) for rank in differing[:DIFFERENCES]
    )
    return Contradiction(other, len(differing), shown)
