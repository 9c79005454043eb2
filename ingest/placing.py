"""Where did the ranks of an attempt run, and how far is that to be trusted?"""

from __future__ import annotations

from dataclasses import dataclass

from app.store.connection import Connection
from app.store.intake.attempt_book import Attempt
from app.store.intake.map_links import maps_of
from app.store.intake.rank_map_rows import gpu_id, node_id, topology_of
from witness.rules.topology import Place, Topology


@dataclass(frozen=True, slots=True)
class Placed:
    """The map of an attempt.

    `state`: none (no map yet), own, inferred (from the time), contradictory (two maps that differ:
    only ranks on which they agree are placed).
    """

    state: str
    topology: Topology | None
    cluster: str
    others: tuple[Topology, ...] = ()
    map_ids: tuple[int, ...] = ()

    def content(self) -> tuple[object, ...]:
        """Give what stands for the whole placement: maps are named after what they hold."""
        layouts = (self.topology, *self.others)
        steps = tuple((one.gpus_per_node, one.offset) for one in layouts if one is not None)
        return self.cluster, self.map_ids, steps

    def device(self, rank: int | None) -> tuple[int | None, int | None, str | None]:
        """Give (node id, GPU id, instance id) of a rank; None for what is not known."""
        if rank is None or self.topology is None:
            return None, None, None
        place = self.topology.place(rank)
        if place is None or any(not _agree(place, other.place(rank)) for other in self.others):
            return None, None, None
        machine = node_id(self.cluster, place.node, place.instance_id)
        return machine, gpu_id(place.gpu_uuid), place.instance_id


class Placing:
    """Finds maps of attempts, each read once for a group of documents."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._found: dict[tuple[int, int, int, bool], Placed] = {}

    def place(self, attempt: Attempt | None, inferred: bool, cluster: str) -> Placed:
        """Give the placement of an attempt."""
        if attempt is None or attempt.rank_map_id is None:
            return Placed("none", None, cluster)
        key = (attempt.id, attempt.rank_map_id, attempt.maps, inferred)
        if key not in self._found:
            self._found[key] = self._read(attempt, attempt.rank_map_id, inferred, cluster)
        return self._found[key]

    def _read(self, attempt: Attempt, map_id: int, inferred: bool, cluster: str) -> Placed:
        topology = topology_of(self._connection, map_id)
        if attempt.maps > 1:
            rest = maps_of(self._connection, attempt.id) - {map_id}
            others = tuple(topology_of(self._connection, one) for one in sorted(rest))
            return Placed("contradictory", topology, cluster, others, (map_id, *sorted(rest)))
        return Placed("inferred" if inferred else "own", topology, cluster, (), (map_id,))


def _agree(one: Place, other: Place | None) -> bool:
    if other is None:
        return False
    return (one.node, one.instance_id, one.gpu_uuid) == (
        other.node,
        other.instance_id,
        other.gpu_uuid,
    )
