"""Which smallest sets of faulty ranks explain the mismatched pairs?

A mismatch needs a faulty rank in its pair, so every explanation touches each mismatched pair;
the smallest such sets are the minimum vertex covers of the graph of mismatches, found per
connected group (`covers.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from witness.rules.covers import Edges, groups, minimum_covers

Pair = tuple[int, int]


OFFSETS_LIMIT = 64
"""Offsets tried for a deciding audit: among the first few there is one, or hardly any."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit of an attempt: its peer offset (None where unknown) and what mismatched."""

    offset: int | None
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class FaultSet:
    """Ranks that together explain a group.

    `persistent` is True when every comparison of the audits that touches the set mismatched, so
    that all of them may have been wrong all the time.
    """

    faulty: tuple[int, ...]
    persistent: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """The smallest explanations of one connected group of mismatches.

    `at_least` is the proven number of faulty ranks. `total` is how many smallest sets there are,
    None where the search stopped before it knew. `complete` is False where `sets` leaves some
    out. Two faulty GPUs with the same wrong value agree with each other, so that a smallest set
    can be a healthy rank: that is not for a solver to guess.
    """

    ranks: tuple[int, ...]
    sets: tuple[FaultSet, ...]
    at_least: int
    total: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class DecisiveAudit:
    """A further audit: `decides` when it separates all remaining sets, else only some."""

    offset: int
    decides: bool


@dataclass(frozen=True, slots=True)
class PlainCount:
    """What the plain rule says: ranks in two pairs are culprits, other pairs ambiguous."""

    culprits: tuple[int, ...]
    ambiguous: tuple[Pair, ...]


def explain(audits: Sequence[Audit], world_size: int | None = None) -> tuple[Explanation, ...]:
    """Solve over all audits of one attempt, a result a group, in the order of their ranks.

    Ranks at or beyond a known `world_size` cannot belong to the job: their pairs are left out.
    """
    kept = [Audit(audit.offset, _inside(audit.pairs, world_size)) for audit in audits]
    roles = [
        (frozenset(target for target, _ in audit.pairs), frozenset(by for _, by in audit.pairs))
        for audit in kept
    ]
    return tuple(_explain_group(group, roles) for group in groups(_edges(kept)))


def decisive_audit(
    explanation: Explanation, world_size: int, base_offset: int, used: Iterable[int] = ()
) -> DecisiveAudit | None:
    """Name the peer offset whose audit would tell the remaining smallest sets apart.

    A set is ruled out when it does not touch every comparison that another one, if true and
    persistent, would make mismatch. None when there is nothing to decide or no offset helps.
    """
    sets = [frozenset(one.faulty) for one in explanation.sets]
    if len(sets) < 2 or base_offset <= 0:
        return None
    best: DecisiveAudit | None = None
    spent = {offset % world_size for offset in used} | {base_offset % world_size}
    for offset in islice(range(base_offset, world_size, base_offset), OFFSETS_LIMIT):
        if offset in spent or world_size - offset in spent or 2 * offset % world_size == 0:
            continue
        undecided = sum(_hides(one, other, offset, world_size) for one in sets for other in sets)
        if undecided == 0:
            return DecisiveAudit(offset, decides=explanation.complete)
        if best is None and undecided < len(sets) * (len(sets) - 1):
            best = DecisiveAudit(offset, decides=False)
    return best


def rederive(pairs: Iterable[Pair]) -> PlainCount:
    """Count comparisons: a rank in two different mismatched pairs is a culprit."""
    distinct = sorted(set(pairs))
    seen: dict[int, int] = {}
    for pair in distinct:
        for rank in set(pair):
            seen[rank] = seen.get(rank, 0) + 1
    culprits = {rank for rank, count in seen.items() if count > 1}
    ambiguous = tuple(pair for pair in distinct if culprits.isdisjoint(pair))
    return PlainCount(tuple(sorted(culprits)), ambiguous)


def culprits_agree(pairs: Iterable[Pair], posted: Iterable[int]) -> bool:
    """Tell whether the posted culprits are those that the posted pairs give."""
    return set(rederive(pairs).culprits) == set(posted)


def _inside(pairs: tuple[Pair, ...], world_size: int | None) -> tuple[Pair, ...]:
    if world_size is None:
        return pairs
    return tuple(pair for pair in pairs if pair[0] < world_size and pair[1] < world_size)


def _edges(audits: Iterable[Audit]) -> Edges:
    """Join the mismatches of all audits to an undirected graph; a self-pair is a loop."""
    edges: dict[int, set[int]] = {}
    for audit in audits:
        for target, replayer in audit.pairs:
            edges.setdefault(target, set()).add(replayer)
            edges.setdefault(replayer, set()).add(target)
    return edges


def _explain_group(group: Edges, roles: list[tuple[frozenset[int], frozenset[int]]]) -> Explanation:
    found = minimum_covers(group)
    sets = [
        FaultSet(cover, all(set(cover) <= targets & replayers for targets, replayers in roles))
        for cover in found.covers
    ]
    sets.sort(key=lambda one: (not one.persistent, one.faulty))
    return Explanation(
        tuple(sorted(group)), tuple(sets), found.at_least, found.total, found.complete
    )


def _hides(true: frozenset[int], other: frozenset[int], offset: int, world_size: int) -> bool:
    """Tell whether `other` would still explain an audit in which `true` is always wrong."""
    if true == other:
        return False
    return all(
        rank in other
        or ((rank + offset) % world_size in other and (rank - offset) % world_size in other)
        for rank in true
    )
