"""What is known of the job that an alarm came from: its size, its rings, its nodes?"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from witness.rules.alarm import Alarm, Pair
from witness.rules.covers import Edges, groups
from witness.rules.topology import Topology, ring_length

TWO, THREE = 2, 3


@dataclass(frozen=True, slots=True)
class Setting:
    """An alarm together with the layout of its job.

    `world_size` and `offset` are None where neither alarm nor map tells. `rings` maps the key of
    a ring to its distinct mismatched pairs; `components` numbers the connected groups of pairs,
    used for the key where no offset is known. `loose_pairs` are mismatched pairs that no culprit
    and no verdict covers.
    """

    alarm: Alarm
    topology: Topology | None
    world_size: int | None
    offset: int | None
    components: Mapping[int, int]
    rings: Mapping[int, frozenset[Pair]]
    loose_pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, alarm: Alarm, topology: Topology | None) -> "Setting":
        """Work out once what several guards ask for."""
        world = alarm.world_size or (None if topology is None else topology.world_size)
        pairs = alarm.mismatched_pairs
        offset = alarm.peer_offset or _offset(pairs, topology, world)
        components = {} if offset or not pairs else _components(pairs)
        rings: dict[int, set[Pair]] = {}
        for pair in pairs:
            rings.setdefault(_key(pair[0], offset, world, components), set()).add(pair)
        frozen = {key: frozenset(held) for key, held in rings.items()}
        return cls(alarm, topology, world, offset, components, frozen, _loose(alarm))

    def ring_key(self, rank: int) -> int:
        """Number the ring that a rank belongs to."""
        return _key(rank, self.offset, self.world_size, self.components)

    def ring_pairs(self, rank: int) -> frozenset[Pair]:
        """Give the mismatched pairs on the ring of a rank."""
        return self.rings.get(self.ring_key(rank), frozenset())

    def ring_nodes(self, rank: int) -> int | None:
        """Count the nodes on the ring of a rank, None where that cannot be told.

        Ranks whose node is not known count as nodes of their own: they never make a ring look
        smaller than it may be.
        """
        pairs = self.ring_pairs(rank)
        if any((by, target) in pairs for target, by in pairs if target != by):
            return TWO
        offset, size, topology = self.offset, self.world_size, self.topology
        length = None if offset is None or size is None else ring_length(size, offset)
        if topology is None or (length is not None and length <= TWO):
            return length
        known = None if length is None else topology.nodes_of(topology.ring(rank, offset))
        if known is None and not topology.unplaced:
            known = topology.node_count if length is None else min(length, topology.node_count)
        return known or length

    def peers(self, rank: int) -> tuple[int, ...]:
        """List the ranks of mismatched pairs on the ring of a rank, the rank among them."""
        return tuple(sorted({rank, *(one for pair in self.ring_pairs(rank) for one in pair)}))

    def same_node(self, pair: Pair) -> bool:
        """Tell whether target and replayer of a pair are known to share a node."""
        return self.topology is not None and self.topology.share_a_node(*pair)

    def whole_job_on_two_nodes(self) -> bool:
        """Tell whether the map places every rank, on no more than two nodes."""
        topology = self.topology
        return topology is not None and not topology.unplaced and topology.node_count <= TWO


def _key(rank: int, offset: int | None, world: int | None, components: Mapping[int, int]) -> int:
    if offset is None:
        return components.get(rank, -1 - rank)
    return rank % (gcd(offset, world) if world else offset)


def _components(pairs: tuple[Pair, ...]) -> dict[int, int]:
    """Number each rank of the pairs by the smallest rank of its connected group."""
    edges: Edges = {}
    for target, replayer in pairs:
        edges.setdefault(target, set()).add(replayer)
        edges.setdefault(replayer, set()).add(target)
    return {rank: min(group) for group in groups(edges) for rank in group}


def _loose(alarm: Alarm) -> tuple[Pair, ...]:
    if not alarm.mismatched_pairs:
        return ()
    culprits = set(alarm.culprits)
    judged = {verdict.pair for verdict in alarm.verdicts}
    pairs = {one for one in alarm.mismatched_pairs if one not in judged}
    return tuple(sorted(pair for pair in pairs if culprits.isdisjoint(pair)))


def _offset(pairs: tuple[Pair, ...], topology: Topology | None, world: int | None) -> int | None:
    """Give the offset that most pairs show; without pairs the map's, else None."""
    distinct = set(pairs)
    if world:
        steps = Counter((target - by) % world for target, by in distinct)
    else:
        steps = Counter(target - by for target, by in distinct if target > by)
    likely = min(steps, key=lambda step: (-steps[step], step), default=0)
    return likely or (None if topology is None else topology.offset)
