"""Which rings of an alarm are drawn, and what is said beside them?"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from markupsafe import Markup

from app.actions.alarm_dossier import Dossier
from app.web import words as web_words
from app.web.alarm.explanations import Explained, explained
from app.web.drawings.ring import (
    LARGEST_RING,
    Result,
    RingPicture,
    Role,
    Stop,
    ThirdAsked,
    draw_ring,
)
from app.web.drawings.ring_multiples import MOST_RINGS, SmallRing, draw_multiples
from app.web.drawings.ring_stretches import draw_stretches
from witness.rules import words
from witness.rules.alarm import Pair, Verdict
from witness.rules.topology import ring_length

RINGS_DRAWN = 4
ROWS_SHOWN = 50

_THIRD_SAYS = {
    "persistent": "sided with rank {by}, and rank {of} gave its own wrong answer again: "
    "persistent.",
    "transient": "sided with rank {by}; computing again, rank {of} got their answer as well: "
    "transient.",
    "unclear": "sided with rank {by}; computing again, rank {of} got yet another answer: unclear.",
    "replayer computed wrong": "sided with rank {of}: it was rank {by}, replaying, that computed "
    "wrong.",
    "unattributable": "agreed with neither: nobody can be named.",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the table form; `third` None: not asked."""

    target: int
    replayer: int
    result: Result
    third: int | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class DrawnRing:
    """One ring with its drawing (None: its layout is not known) and its table."""

    index: int | None
    drawing: Markup | None
    comparisons: tuple[Comparison, ...]
    not_listed: int
    captions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rings:
    """Everything in the section: the rings drawn, how many more differ, all as small multiples."""

    drawn: tuple[DrawnRing, ...]
    more: int
    multiples: Markup | None
    in_all: int | None
    explanations: tuple[Explained, ...]
    note: str | None


def rings_of(dossier: Dossier) -> Rings | None:
    """Choose the rings to draw; None where the alarm compares no ring at all."""
    alarm, setting = dossier.alarm, dossier.setting
    if alarm.check != "compute":
        return None
    held = _by_ring(dossier)
    keys = sorted(held) or [setting.ring_key(rank) for rank in alarm.nonfinite[:1]]
    world, offset = setting.world_size, setting.offset
    known = world is not None and offset is not None and 0 < offset < world
    drawn = tuple(
        _ring(dossier, key, held.get(key, frozenset()), place)
        for place, key in enumerate(keys[:RINGS_DRAWN])
    )
    count = gcd(offset, world) if known and world and offset else None
    return Rings(
        drawn=drawn,
        more=max(len(keys) - RINGS_DRAWN, 0),
        multiples=_multiples(dossier, count, held) if count and 1 < count <= MOST_RINGS else None,
        in_all=count,
        explanations=tuple(explained(group, dossier) for group in dossier.explained),
        note=None if known else _unknown_layout(world),
    )


def _unknown_layout(world: int | None) -> str:
    """Say why no ring is drawn."""
    why = "Neither a rank map nor the alarm says how many ranks the job has"
    if world is not None:
        why = "No peer offset is known that fits the size of the job"
    return f"{why}, so the ring cannot be closed: only the comparisons that differ are known."


def _by_ring(dossier: Dossier) -> dict[int, frozenset[Pair]]:
    """Sort the mismatched pairs by ring."""
    held: dict[int, set[Pair]] = {}
    for pair in dossier.alarm.mismatched_pairs:
        held.setdefault(dossier.setting.ring_key(pair[0]), set()).add(pair)
    return {key: frozenset(pairs) for key, pairs in held.items()}


def _cycle(dossier: Dossier, key: int, pairs: frozenset[Pair]) -> list[int]:
    """List the ranks of a ring, each replaying the next, beginning where its mismatches begin."""
    world, offset = dossier.setting.world_size, dossier.setting.offset
    if world is None or offset is None or not 0 < offset < world:
        return []
    targets = {target for target, _ in pairs}
    starts = sorted(by for _, by in pairs if by not in targets) or sorted(by for _, by in pairs)
    nonfinite = [rank for rank in dossier.alarm.nonfinite if dossier.setting.ring_key(rank) == key]
    start = starts[0] if starts else (nonfinite[0] - offset) % world if nonfinite else key
    if not 0 <= start < world:
        return []
    length = ring_length(world, offset)
    return [(start + place * offset) % world for place in range(length)]


def _ring(dossier: Dossier, key: int, pairs: frozenset[Pair], place: int) -> DrawnRing:
    cycle = _cycle(dossier, key, pairs)
    along = [(cycle[(at + 1) % len(cycle)], by) for at, by in enumerate(cycle)]
    listed = along if len(along) <= LARGEST_RING else [pair for pair in along if pair in pairs]
    # A pair of another offset than the ring's is no step along it, and is listed all the same.
    listed += sorted(pairs - set(along))
    verdicts = {one.pair: one for one in dossier.alarm.verdicts}
    rows = [_comparison(pair, pairs, verdicts.get(pair)) for pair in listed]
    index = key if cycle else None
    return DrawnRing(
        index=index,
        drawing=_drawing(dossier, cycle, along, pairs, place) if len(cycle) > 1 else None,
        comparisons=tuple(rows[:ROWS_SHOWN]),
        not_listed=max(len(along), len(rows)) - min(len(rows), ROWS_SHOWN),
        captions=_captions(dossier, key, pairs),
    )


def _comparison(pair: Pair, pairs: frozenset[Pair], verdict: Verdict | None) -> Comparison:
    result: Result = "differs" if pair in pairs else "same"
    if verdict is None:
        return Comparison(*pair, result, None, None)
    return Comparison(*pair, result, verdict.third, verdict.kind)


def _drawing(
    dossier: Dossier, cycle: list[int], along: list[Pair], pairs: frozenset[Pair], place: int
) -> Markup:
    results: tuple[Result, ...] = tuple("differs" if pair in pairs else "same" for pair in along)
    positions = {rank: at for at, rank in enumerate(cycle)}
    thirds = tuple(
        ThirdAsked(positions[one.third], positions[one.pair[0]], "3")
        for one in dossier.alarm.verdicts
        if one.third in positions and one.pair[0] in positions and one.third is not None
    )
    small = len(cycle) > 4
    large = len(cycle) > LARGEST_RING
    roles = _roles(dossier)
    stops = tuple(
        Stop(rank, _place(dossier, rank, small and not large), roles.get(rank, "plain"))
        for rank in cycle
    )
    picture = RingPicture(
        f"ring{place}",
        f"Ring of local index {dossier.setting.ring_key(cycle[0])}",
        _described(cycle, along, pairs),
        stops,
        results,
        thirds,
    )
    return draw_stretches(picture) if large else draw_ring(picture)


def _described(cycle: list[int], along: list[Pair], pairs: frozenset[Pair]) -> str:
    hit = [pair for pair in along if pair in pairs]
    shown = "; ".join(words.pair(*pair) for pair in hit[:8])
    more = f"; and {len(hit) - 8} more" if len(hit) > 8 else ""
    said = f"These differ: {shown}{more}." if hit else "None differs."
    return f"{len(cycle):,} ranks, each replaying the next. {said} All others are the same."


def _place(dossier: Dossier, rank: int, short: bool) -> str:
    row = dossier.rows_by_rank.get(rank)
    place = row.place if row else (dossier.topology.place(rank) if dossier.topology else None)
    if place is None or place.host is None:
        return "node not known" if dossier.topology and not short else ""
    host = web_words.visible(place.host)
    text = host if len(host) <= 6 else f"…{host[-4:]}"
    index = place.gpu_index if place.gpu_index is not None else place.local_rank
    return text if short or index is None else f"{text} GPU {index}"


def _roles(dossier: Dossier) -> dict[int, Role]:
    """Give each rank that is more than a plain one its role; the graver one counts."""
    roles: dict[int, Role] = {}
    for verdict in dossier.alarm.verdicts:
        if verdict.third is not None:
            roles.setdefault(verdict.third, "third")
    doubtful = [rank for pair in dossier.setting.loose_pairs for rank in pair]
    for verdict in dossier.alarm.verdicts:
        if verdict.kind in ("unattributable", "unclear"):
            trio = (*verdict.pair, verdict.third)
            doubtful += [rank for rank in trio if rank is not None]
    doubtful += [one.rank for one in dossier.findings if one.rank is not None and one.ambiguous]
    roles.update(dict.fromkeys(doubtful, "ambiguous"))
    sure = [one.rank for one in dossier.findings if one.rank is not None and not one.ambiguous]
    roles.update(dict.fromkeys(sure, "named"))
    return roles


def _captions(dossier: Dossier, key: int, pairs: frozenset[Pair]) -> tuple[str, ...]:
    verdicts = [v for v in dossier.alarm.verdicts if dossier.setting.ring_key(v.pair[0]) == key]
    said = [_third_says(one) for one in verdicts[:4]]
    if len(verdicts) > 4:
        said.append(f"And {len(verdicts) - 4:,} more verdicts, in the document below.")
    if said:
        return tuple(said)
    if not pairs:
        return ("The non-finite check called for the ring, and every comparison was the same.",)
    return ("No third rank was asked: that needs a rank in one mismatched pair only.",)


def _third_says(verdict: Verdict) -> str:
    of, by = verdict.pair
    says = _THIRD_SAYS.get(verdict.kind, "gave the verdict {kind}, which is not known here.")
    said = says.format(of=of, by=by, kind=f"“{verdict.kind[:60]}”")
    if verdict.third is None:
        return f"The third rank is not named; it {said}"
    return f"3: rank {verdict.third} replayed the work of rank {of} as a third and {said}"


def _multiples(dossier: Dossier, count: int, held: dict[int, frozenset[Pair]]) -> Markup:
    world, offset = dossier.setting.world_size or 1, dossier.setting.offset or 1
    length = ring_length(world, offset)
    order = {
        index: [(index + place * offset) % world for place in range(length)]
        for index in range(count)
    }
    small = []
    for index in range(count):
        pairs = held.get(index, frozenset())
        hits = (
            tuple(
                at
                for at, by in enumerate(order[index])
                if (order[index][(at + 1) % length], by) in pairs
            )
            if pairs
            else ()
        )
        small.append(SmallRing(index, length, hits))
    return draw_multiples(small)
