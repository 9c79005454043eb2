"""Where does each rank of an attempt run, and who replays whom?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType

from witness.rules import words

NODES_NEEDED = 3
"""One each for the replayer, its target and the third rank that settles a mismatch."""


@dataclass(frozen=True, slots=True)
class Place:
    """One row of a rank map; None where the map does not say."""

    rank: int
    node: str | None = None
    instance_id: str | None = None
    gpu_uuid: str | None = None
    local_rank: int | None = None
    gpu_index: int | None = None
    pod: str | None = None
    slice: str | None = None

    @property
    def host(self) -> str | None:
        """Give what tells this rank's machine apart: its node, else its instance, else None."""
        return self.node or self.instance_id


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of the layout that takes independence away from a check."""

    code: str
    text: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The rank map of one attempt.

    `node_count` counts known machines; `unplaced` ranks have none, so that the real number of
    nodes is `node_count` only where `unplaced` is 0. `offset` is how far a target lies ahead of
    its replayer, None where it can neither be read nor derived.
    """

    world_size: int
    node_count: int
    unplaced: int
    offset: int | None
    gpus_per_node: int | None
    places: Mapping[int, Place]

    @classmethod
    def from_places(
        cls,
        places: Iterable[Place],
        world_size: int,
        gpus_per_node: int | None = None,
        peer_offset: int | None = None,
    ) -> "Topology":
        """Index the rows of a map; a rank given twice keeps its first row."""
        rows: dict[int, Place] = {}
        per_host: dict[str, int] = {}
        for place in places:
            if place.rank in rows:
                continue
            rows[place.rank] = place
            host = place.node or place.instance_id
            if host is not None:
                per_host[host] = per_host.get(host, 0) + 1
        placed = sum(per_host.values())
        size = max(world_size, len(rows))
        if gpus_per_node is None and placed == size:
            gpus_per_node = _common_count(per_host)
        return cls(
            world_size=size,
            node_count=len(per_host),
            unplaced=size - placed,
            offset=peer_offset or gpus_per_node,
            gpus_per_node=gpus_per_node,
            places=MappingProxyType(rows),
        )

    def place(self, rank: int) -> Place | None:
        """Give the row of a rank, or None where the map has none."""
        return self.places.get(rank)

    def host(self, rank: int) -> str | None:
        """Give the machine of a rank, or None where it is not known."""
        place = self.places.get(rank)
        return None if place is None else place.host

    def ring(
        self, rank: int, offset: int | None = None, most: int | None = None
    ) -> tuple[int, ...]:
        """List the ranks that replay each other around `rank`, starting with it; `most` of them.

        Each replays the one after it. Without any known offset the ring is the rank alone.
        """
        step = (offset or self.offset or 0) % self.world_size
        if step == 0 or not 0 <= rank < self.world_size:
            return (rank,)
        length = ring_length(self.world_size, step)
        length = length if most is None else min(length, most)
        return tuple((rank + place * step) % self.world_size for place in range(length))

    def nodes_of(self, ranks: Iterable[int]) -> int | None:
        """Count the machines of these ranks, or None where one of them is not known."""
        hosts = {self.host(rank) for rank in ranks}
        return None if None in hosts else len(hosts)

    def share_a_node(self, one: int, other: int) -> bool:
        """Tell whether two ranks are known to run on one machine; unknown places never share."""
        host = self.host(one)
        return host is not None and host == self.host(other)

    def problems(self, offset: int | None = None) -> tuple[Problem, ...]:
        """Say where replayer, target and third of a comparison share a machine.

        The ring check needs three nodes; without any known offset only that can be said.
        """
        few = self._too_few_nodes()
        step = (offset or self.offset or 0) % self.world_size
        if step == 0:
            return few
        found: dict[str, list[int]] = {"target": [], "third": []}
        for rank in range(self.world_size):
            target = (rank + step) % self.world_size
            third = (target + step) % self.world_size
            if self.share_a_node(rank, target):
                found["target"].append(rank)
            elif self.share_a_node(rank, third) or self.share_a_node(target, third):
                found["third"].append(rank)
        shared = (_problem(code, tuple(ranks)) for code, ranks in found.items() if ranks)
        return (*few, *shared)

    def _too_few_nodes(self) -> tuple[Problem, ...]:
        if self.unplaced or self.node_count >= NODES_NEEDED:
            return ()
        have = words.counted(self.node_count, "node")
        text = f"The ring check needs {NODES_NEEDED} nodes, and this job has {have}."
        return (Problem("too_few_nodes", text, ()),)


def ring_length(world_size: int, offset: int) -> int:
    """Count the ranks on one cycle of replays."""
    return world_size // gcd(world_size, offset)


def _common_count(per_host: Mapping[str, int]) -> int | None:
    """Give the number of ranks a machine holds where all hold the same number."""
    counts = set(per_host.values())
    return counts.pop() if len(counts) == 1 else None


def _problem(code: str, ranks: tuple[int, ...]) -> Problem:
    if code == "target":
        text = f"Target and replayer share a node where {words.ranks(ranks)} would replay."
    else:
        text = (
            f"Where {words.ranks(ranks)} would replay, the third rank is on a node that already "
            "takes part."
        )
    return Problem(f"{code}_shares_node", text, ranks)
