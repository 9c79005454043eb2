"""What speaks against taking an alarm's accusation at its word?

The decision table assumes three nodes, one fault a ring and a fault of hardware. These guards say
where an alarm breaks an assumption, each as a caution with a code that programs can read.
"""

from collections import Counter
from dataclasses import dataclass
from math import gcd

from witness.rules import words
from witness.rules.alarm import PERSISTENT, REPLAYER, TRANSIENT, UNCLEAR, Alarm, Pair, Verdict
from witness.rules.ring import rederive
from witness.rules.topology import Topology, ring_length

BLOCKING = frozenset(
    {
        "two_nodes",
        "multiple_faults",
        "culprits_disagree",
        "half_job",
        "third_shares_node",
        "verdict_contradicts",
        "rank_outside_job",
        "self_pair",
    }
)
"""Codes under which no replacement may be proposed before another audit or a person's look."""

TWO, THREE = 2, 3


@dataclass(frozen=True, slots=True)
class Caution:
    """A reservation: a code for programs and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Setting:
    """An alarm with what is known of its job.

    `world_size` and `offset` are None where neither alarm nor map tells. `loose_pairs` are
    mismatched pairs that no culprit and no verdict covers. `rings` maps a ring's key to its
    distinct mismatched pairs.
    """

    alarm: Alarm
    topology: Topology | None
    world_size: int | None
    offset: int | None
    loose_pairs: tuple[Pair, ...]
    rings: dict[int, set[Pair]]

    @classmethod
    def of(cls, alarm: Alarm, topology: Topology | None) -> "Setting":
        """Work out once what several guards ask for."""
        world = alarm.world_size or (None if topology is None else topology.world_size)
        offset = alarm.peer_offset or _offset(alarm.mismatched_pairs, topology, world)
        setting = cls(alarm, topology, world, offset, _loose(alarm), {})
        for pair in alarm.mismatched_pairs:
            setting.rings.setdefault(setting.ring_key(pair[0]), set()).add(pair)
        return setting

    def ring_key(self, rank: int) -> int:
        """Number the ring that a rank belongs to; all ranks share one where no offset is known."""
        if self.offset is None:
            return 0
        return rank % (gcd(self.offset, self.world_size) if self.world_size else self.offset)

    def ring_nodes(self, rank: int) -> int | None:
        """Count the nodes on the ring of a rank, None where that cannot be told."""
        pairs = self.rings.get(self.ring_key(rank), set())
        if any((by, target) in pairs for target, by in pairs):
            return TWO
        if self.offset is None or self.world_size is None:
            return None
        length = ring_length(self.world_size, self.offset)
        if self.topology is None or length <= TWO:
            return length
        return self.topology.nodes_of(self.topology.ring(rank, self.offset)) or length

    def peers(self, rank: int) -> tuple[int, ...]:
        """List the ranks of mismatched pairs on the ring of a rank, itself among them."""
        pairs = self.rings.get(self.ring_key(rank), set())
        return tuple(sorted({rank, *(one for pair in pairs for one in pair)}))


def two_nodes(setting: Setting, rank: int) -> Caution | None:
    """Say that on two nodes replayer and target cannot be told apart."""
    if setting.ring_nodes(rank) not in (1, TWO):
        return None
    others = [one for one in setting.peers(rank) if one != rank]
    text = f"Only 2 nodes: this check cannot tell {words.ranks([rank])} from {words.ranks(others)}."
    return Caution("two_nodes", text)


def verdict_doubts(verdict: Verdict, setting: Setting) -> tuple[Caution, ...]:
    """Say where a verdict contradicts itself or its third rank is no independent witness."""
    doubts = []
    target, replayer = verdict.pair
    expected = {PERSISTENT: target, TRANSIENT: target, UNCLEAR: target, REPLAYER: replayer}
    wanted = expected.get(verdict.kind)
    if verdict.suspect is not None and wanted not in (None, verdict.suspect):
        text = f"A verdict “{verdict.kind}” is about rank {wanted}, but rank {verdict.suspect} was posted."
        doubts.append(Caution("verdict_contradicts", text))
    two = two_nodes(setting, target)
    if two is not None:
        doubts.append(two)
    elif _third_depends(verdict, setting.topology):
        text = f"Rank {verdict.third}, asked as the third, runs on a node of the pair: it is no independent witness."
        doubts.append(Caution("third_shares_node", text))
    return tuple(doubts)


def ring_cautions(setting: Setting, involved: tuple[int, ...]) -> tuple[Caution, ...]:
    """Say where a ring shows more than one fault, or a rank that checked itself."""
    keys = {setting.ring_key(rank) for rank in involved}
    pairs = {pair for key in keys for pair in setting.rings.get(key, ())}
    cautions = []
    if any(_several_faults(setting, key) for key in keys):
        text = f"More than one fault in this ring ({words.counted(len(pairs), 'comparison')} differ): some named GPUs may be healthy. Audit again before any replacement."
        cautions.append(Caution("multiple_faults", text))
    if any(target == by for target, by in pairs):
        text = "A rank was compared with itself, which proves nothing."
        cautions.append(Caution("self_pair", text))
    return tuple(cautions)


def culprit_cautions(setting: Setting, rank: int) -> tuple[Caution, ...]:
    """Say what weakens a culprit: a ring of three nodes, or pairs that do not bear it out."""
    cautions = []
    if setting.ring_nodes(rank) == THREE:
        text = "Ring of 3 nodes: two faulty GPUs with the same wrong value leave only the healthy one named."
        cautions.append(Caution("three_node_ring", text))
    counted = rederive(setting.rings.get(setting.ring_key(rank), ()))
    posted = {one for one in setting.alarm.culprits if setting.ring_key(one) == setting.ring_key(rank)}
    if set(counted.culprits) != posted:
        text = f"The mismatched pairs give {words.ranks(counted.culprits)} as culprit, the alarm names {words.ranks(sorted(posted))}."
        cautions.append(Caution("culprits_disagree", text))
    return tuple(cautions)


def half_job(setting: Setting) -> tuple[Caution, ...]:
    """Say that half of the job or more is named at once: that is software before hardware."""
    named = setting.alarm.named_ranks()
    size = setting.world_size
    if size is None or len(named) < TWO or 2 * len(named) < size:
        return ()
    text = f"{len(named)} of {size} ranks are named at once: look for a software cause first."
    return (Caution("half_job", text),)


def place_cautions(setting: Setting, rank: int | None) -> tuple[Caution, ...]:
    """Say where the way from rank to machine is missing."""
    outside = rank is not None and setting.world_size is not None and rank >= setting.world_size
    cautions = []
    if outside:
        text = f"Rank {rank} lies outside a job of {setting.world_size} ranks."
        cautions.append(Caution("rank_outside_job", text))
    if setting.topology is None:
        cautions.append(Caution("no_map", "No rank map of this attempt yet: the node is not known."))
    elif rank is not None and not outside:
        place = setting.topology.place(rank)
        if place is None:
            cautions.append(Caution("no_place", f"The rank map has no row for rank {rank}."))
        elif place.node is None:
            cautions.append(Caution("no_node", f"The rank map names no node for rank {rank}."))
    return tuple(cautions)


def _several_faults(setting: Setting, key: int) -> bool:
    """Tell whether a ring's mismatches are other than one pair, or two pairs that share a rank."""
    pairs = setting.rings.get(key, set())
    culprits = {rank for rank in setting.alarm.culprits if setting.ring_key(rank) == key}
    if len(culprits) > 1:
        return True
    if len(pairs) == TWO:
        one, other = pairs
        return set(one).isdisjoint(other)
    return len(pairs) > TWO


def _third_depends(verdict: Verdict, topology: Topology | None) -> bool:
    third = verdict.third
    if third is None:
        return False
    if third in verdict.pair:
        return True
    return topology is not None and any(topology.share_a_node(third, one) for one in verdict.pair)


def _loose(alarm: Alarm) -> tuple[Pair, ...]:
    culprits = set(alarm.culprits)
    judged = {verdict.pair for verdict in alarm.verdicts}
    pairs = {one for one in alarm.mismatched_pairs if one not in judged and culprits.isdisjoint(one)}
    return tuple(sorted(pairs))


def _offset(pairs: tuple[Pair, ...], topology: Topology | None, world: int | None) -> int | None:
    """Give the offset of most pairs; without pairs the map's."""
    if pairs and world:
        steps = Counter((target - by) % world for target, by in pairs)
        return steps.most_common(1)[0][0] or None
    if pairs:
        steps = Counter(target - by for target, by in pairs if target > by)
        return steps.most_common(1)[0][0] if steps else None
    return None if topology is None else topology.offset
