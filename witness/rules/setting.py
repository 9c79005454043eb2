"""What is known of the job that an alarm came from: its size, its rings, its nodes?

Everything that several guards ask of a ring is worked out once a ring, so that an alarm that
names a whole job of 100,000 ranks is judged in seconds.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import TypeVar

from witness.rules.alarm import Alarm, Pair
from witness.rules.covers import Edges, groups
from witness.rules.ring import rederive
from witness.rules.topology import Topology, ring_length

TWO, THREE = 2, 3

_Item = TypeVar("_Item", Pair, int)


@dataclass(frozen=True, slots=True)
class Ring:
    """The ranks of one local index that replay each other.

    `nodes` is None where it cannot be told. `posted` are the culprits that the alarm names on
    this ring, `counted` those that its mismatched pairs give. `several_faults` is True where the
    mismatches are other than one pair, or two pairs that share a rank.
    """

    nodes: int | None
    pairs: frozenset[Pair]
    posted: tuple[int, ...]
    counted: tuple[int, ...]
    culprits_agree: bool
    self_pair: bool
    several_faults: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """An alarm together with the layout of its job.

    `world_size` and `offset` are None where neither alarm nor map tells. `partners` gives the
    ranks that a rank was compared with in mismatched pairs. `loose_pairs` are mismatched pairs
    that no culprit and no verdict covers.
    """

    alarm: Alarm
    topology: Topology | None
    world_size: int | None
    offset: int | None
    partners: Mapping[int, frozenset[int]]
    loose_pairs: tuple[Pair, ...]
    _components: Mapping[int, int]
    _pairs: Mapping[int, frozenset[Pair]]
    _culprits: Mapping[int, frozenset[int]]
    _known: dict[int, Ring] = field(default_factory=dict)

    @classmethod
    def of(cls, alarm: Alarm, topology: Topology | None) -> "Setting":
        """Work out once what several guards ask for."""
        pairs = frozenset(alarm.mismatched_pairs)
        world = alarm.world_size or (None if topology is None else topology.world_size)
        offset = alarm.peer_offset or _offset(pairs, topology, world)
        partners = _partners(pairs)
        components = {} if offset else _components(partners)

        def key(rank: int) -> int:
            return _key(rank, offset, world, components)

        return cls(
            alarm,
            topology,
            world,
            offset,
            {rank: frozenset(near) for rank, near in partners.items()},
            _loose(alarm),
            components,
            _grouped((key(pair[0]), pair) for pair in pairs),
            _grouped((key(rank), rank) for rank in alarm.culprits),
        )

    def ring_key(self, rank: int) -> int:
        """Number the ring that a rank belongs to."""
        return _key(rank, self.offset, self.world_size, self._components)

    def ring(self, rank: int) -> Ring:
        """Give the ring of a rank, worked out at the first asking."""
        key = self.ring_key(rank)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._ring(key, rank)
        return known

    def peers(self, rank: int) -> tuple[int, ...]:
        """List a rank with those that it was compared with in mismatched pairs."""
        return tuple(sorted({rank, *self.partners.get(rank, ())}))

    def same_node(self, one: int, other: int) -> bool:
        """Tell whether two different ranks are known to share a node."""
        return self.topology is not None and one != other and self.topology.share_a_node(one, other)

    def whole_job_on_two_nodes(self) -> bool:
        """Tell whether the map places every rank, on no more than two nodes."""
        topology = self.topology
        return topology is not None and not topology.unplaced and topology.node_count <= TWO

    def _ring(self, key: int, rank: int) -> Ring:
        pairs = self._pairs.get(key, frozenset())
        posted = tuple(sorted(self._culprits.get(key, ())))
        counted = rederive(pairs).culprits
        nodes = self._nodes(rank, pairs)
        return Ring(
            nodes,
            pairs,
            posted,
            counted,
            counted == posted,
            any(target == by for target, by in pairs),
            nodes != TWO and (len(posted) > 1 or _apart(pairs)),
        )

    def _nodes(self, rank: int, pairs: frozenset[Pair]) -> int | None:
        """Count the nodes on a ring, None where that cannot be told.

        Ranks whose node is not known count as nodes of their own: they never make a ring look
        smaller than it may be.
        """
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


def _key(rank: int, offset: int | None, world: int | None, components: Mapping[int, int]) -> int:
    """Number a ring: by its first rank, or where no offset is known by its connected group."""
    if offset is None:
        return components.get(rank, -1 - rank)
    return rank % (gcd(offset, world) if world else offset)


def _grouped(items: Iterable[tuple[int, _Item]]) -> Mapping[int, frozenset[_Item]]:
    held: dict[int, set[_Item]] = {}
    for key, item in items:
        held.setdefault(key, set()).add(item)
    return {key: frozenset(kept) for key, kept in held.items()}


def _partners(pairs: Iterable[Pair]) -> Edges:
    edges: Edges = {}
    for target, replayer in pairs:
        edges.setdefault(target, set()).add(replayer)
        edges.setdefault(replayer, set()).add(target)
    return edges


def _components(edges: Edges) -> dict[int, int]:
    """Number each rank of the pairs by the smallest rank of its connected group."""
    return {rank: first for group in groups(edges) for first in (min(group),) for rank in group}


def _apart(pairs: frozenset[Pair]) -> bool:
    """Tell whether these pairs need more than one fault: three of them, or two that share none."""
    if len(pairs) <= 1:
        return False
    one, other, *more = pairs
    return bool(more) or set(one).isdisjoint(other)


def _loose(alarm: Alarm) -> tuple[Pair, ...]:
    if not alarm.mismatched_pairs:
        return ()
    culprits = set(alarm.culprits)
    judged = {verdict.pair for verdict in alarm.verdicts}
    pairs = {one for one in alarm.mismatched_pairs if one not in judged}
    return tuple(sorted(pair for pair in pairs if culprits.isdisjoint(pair)))


def _offset(pairs: frozenset[Pair], topology: Topology | None, world: int | None) -> int | None:
    """Give the offset that most pairs show; without pairs the map's, else None."""
    if world:
        steps = Counter((target - by) % world for target, by in pairs)
    else:
        steps = Counter(target - by for target, by in pairs if target > by)
    likely = min(steps, key=lambda step: (-steps[step], step), default=0)
    return likely or (None if topology is None else topology.offset)
