"""What are all minimum vertex covers of a small or stringy graph, and when to give up?

One offset makes rings, whose mismatches are paths and cycles: those have a closed form, however
long. Two offsets make graphs of degree four, searched by branching within a budget.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, product

Edges = dict[int, set[int]]
Cover = tuple[int, ...]

SETS_LIMIT = 64
"""More explanations than this help nobody; the rest is counted, not listed."""
WORK_LIMIT = 60_000
"""Ranks looked at in one search, some tenths of a second; past it the answer says so."""
DEPTH_LIMIT = 200
"""Chosen ranks in a row; far above any group that a person would act on by name."""
MEMBERS_LIMIT = 4_096
"""Ranks that the listed sets of one group may hold together."""


@dataclass(frozen=True, slots=True)
class Covers:
    """Minimum covers of one connected graph.

    `at_least` is a proven lower bound of their size; `total` their number, None if not known.
    """

    covers: tuple[Cover, ...]
    at_least: int
    total: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Covers of a part of the graph: their size, their number, and the first of them."""

    size: int
    total: int
    covers: tuple[Cover, ...]


@dataclass(slots=True)
class _Budget:
    left: int = field(default=WORK_LIMIT)


class _SpentError(Exception):
    """The search used up its budget."""


def groups(edges: Edges) -> list[Edges]:
    """Split a graph into its connected parts, in the order of their smallest rank."""
    unseen = set(edges)
    parts: list[Edges] = []
    for start in sorted(edges):
        if start not in unseen:
            continue
        unseen.discard(start)
        members, queue = [start], [start]
        while queue:
            for near in edges[queue.pop()]:
                if near in unseen:
                    unseen.discard(near)
                    members.append(near)
                    queue.append(near)
        parts.append({rank: edges[rank] for rank in members})
    return parts


def minimum_covers(graph: Edges) -> Covers:
    """Find every smallest set of ranks that touches each edge of a connected graph."""
    matched = _matching(graph)
    try:
        part = _solve(graph, len(graph), _Budget(), 0)
    except _SpentError:
        return Covers((), matched, None, complete=False)
    if part is None:
        return Covers((), matched, None, complete=False)
    shown = max(2, min(SETS_LIMIT, MEMBERS_LIMIT // max(part.size, 1)))
    covers = part.covers[:shown]
    return Covers(covers, part.size, part.total, complete=len(covers) == part.total)


def _solve(graph: Edges, most: int, budget: _Budget, depth: int) -> _Part | None:
    """Solve any graph within `most` ranks; None when that many do not suffice."""
    budget.left -= len(graph) + 1
    if budget.left < 0 or depth > DEPTH_LIMIT:
        raise _SpentError
    loops = [rank for rank, near in graph.items() if rank in near]
    if loops:
        rest = _solve(_without(graph, set(loops)), most - len(loops), budget, depth + 1)
        return None if rest is None else _adding(rest, tuple(loops))
    result = _Part(0, 1, ((),))
    parts = [part for part in groups(graph) if len(part) > 1]
    bounds = [_matching(part) for part in parts]
    room = most - sum(bounds)
    for part, bound in zip(parts, bounds, strict=True):
        solved = None if room < 0 else _solve_connected(part, bound + room, budget, depth)
        if solved is None:
            return None
        room -= solved.size - bound
        result = _joined(result, solved)
    return result


def _solve_connected(graph: Edges, most: int, budget: _Budget, depth: int) -> _Part | None:
    """Branch on the busiest rank: it is in the cover, or all its neighbours are."""
    if all(len(near) <= 2 for near in graph.values()):
        part = _stringy(graph)
        return part if part.size <= most else None
    busiest = max(sorted(graph), key=lambda rank: len(graph[rank]))
    near = graph[busiest]
    best = None
    if most >= 1:
        rest = _solve(_without(graph, {busiest}), most - 1, budget, depth + 1)
        best = None if rest is None else _adding(rest, (busiest,))
    limit = most if best is None else best.size
    if limit >= len(near):
        rest = _solve(_without(graph, near | {busiest}), limit - len(near), budget, depth + 1)
        if rest is not None:
            other = _adding(rest, tuple(near))
            best = other if best is None or other.size < best.size else _either(best, other)
    return best


def _without(graph: Edges, gone: set[int]) -> Edges:
    return {rank: near - gone for rank, near in graph.items() if rank not in gone}


def _adding(part: _Part, ranks: Cover) -> _Part:
    covers = tuple(tuple(sorted((*cover, *ranks))) for cover in part.covers)
    return _Part(part.size + len(ranks), part.total, covers)


def _either(one: _Part, other: _Part) -> _Part:
    """Join two branches of equal size; they share no cover, since one rank tells them apart."""
    covers = tuple(sorted((*one.covers, *other.covers))[:SETS_LIMIT])
    return _Part(one.size, one.total + other.total, covers)


def _joined(one: _Part, other: _Part) -> _Part:
    """Combine separate parts: every cover of one goes with every cover of the other."""
    mixed = islice(product(one.covers, other.covers), SETS_LIMIT)
    covers = tuple(tuple(sorted((*left, *right))) for left, right in mixed)
    return _Part(one.size + other.size, one.total * other.total, covers)


def _matching(graph: Edges) -> int:
    """Give a lower bound of any cover: pairs of neighbours that share no rank, found greedily."""
    taken: set[int] = set()
    pairs = 0
    for rank in sorted(graph, key=lambda one: len(graph[one])):
        if rank in taken:
            continue
        if rank in graph[rank]:
            taken.add(rank)
            pairs += 1
            continue
        near = next((other for other in graph[rank] if other not in taken), None)
        if near is not None:
            taken.update((rank, near))
            pairs += 1
    return pairs


def _stringy(graph: Edges) -> _Part:
    """Write down the covers of a path or a cycle."""
    ends = sorted(rank for rank, near in graph.items() if len(near) == 1)
    line = _line(graph, ends[0] if ends else min(graph))
    count = len(line)
    if ends:
        total = count // 2 + 1 if count % 2 == 0 else 1
        made = _path_covers(line)
    else:
        total = 2 if count % 2 == 0 else count
        made = _cycle_covers(line)
    return _Part(
        (count + 1) // 2 if not ends else count // 2, total, tuple(islice(made, SETS_LIMIT))
    )


def _line(graph: Edges, start: int) -> list[int]:
    """Walk a path or cycle from one rank."""
    line, before, here = [start], None, start
    while True:
        ahead = [near for near in sorted(graph[here]) if near != before]
        if not ahead or ahead[0] == start:
            return line
        before, here = here, ahead[0]
        line.append(here)


def _path_covers(line: list[int]) -> Iterator[Cover]:
    """List covers of a path: with an odd number of ranks one, else one a place to change over."""
    count = len(line)
    if count % 2:
        yield tuple(sorted(line[1::2]))
        return
    for change in range(0, count + 1, 2):
        yield tuple(sorted((*line[1:change:2], *line[change::2])))


def _cycle_covers(line: list[int]) -> Iterator[Cover]:
    """List covers of a cycle: the two halves when even, else one for each doubled neighbour."""
    count = len(line)
    if count % 2 == 0:
        yield tuple(sorted(line[0::2]))
        yield tuple(sorted(line[1::2]))
        return
    for start in range(count):
        turned = line[start:] + line[:start]
        yield tuple(sorted(turned[0::2]))
