"""How much audited work did many devices do, read fast enough for a whole page of them?

The same rule as `exposure_reading`: an attempt's audited seconds lie evenly between its start and
its last pass, and count for a GPU while it was in that machine.  Times stay whole microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.exposure_reading import ATTEMPTS
from app.store.tables import attempts, placements, rank_map_nodes

Work = tuple[int, int, float]  # start, end, audited seconds


class Exposure:
    """The audited work of one device; asks for hours between two moments cost no walk over it."""

    def __init__(self, work: Iterable[Work]) -> None:
        self._by_start = sorted(work)
        self._starts = [one[0] for one in self._by_start]
        by_end = sorted((end, seconds) for _, end, seconds in self._by_start)
        self._ends = [end for end, _ in by_end]
        self._done = [0.0, *accumulate(seconds for _, seconds in by_end)]

    def __bool__(self) -> bool:
        """Tell whether any audited work is known."""
        return bool(self._by_start)

    def hours_between(self, since: datetime, until: datetime) -> float:
        """Give the audited hours that fall between two moments."""
        return max(self._until(micros(until)) - self._until(micros(since)), 0.0) / 3600

    def spans(self, since: datetime, until: datetime) -> list[tuple[int, int]]:
        """List (start, end) of the work that touches a range, the first one first."""
        first, last = micros(since), micros(until)
        return [(start, end) for start, end, _ in self._by_start if end >= first and start <= last]

    def _until(self, at: int) -> float:
        """Sum the seconds worked up to a moment: what had ended, and the part of what ran."""
        ended = bisect_right(self._ends, at)
        total = self._done[ended]
        place = bisect_right(self._starts, at)
        # What began before and had not ended: so many, and mostly the newest ones.
        running = place - ended
        while place > 0 and running > 0:
            place -= 1
            start, end, seconds = self._by_start[place]
            if end > at:
                total += seconds * (at - start) / (end - start)
                running -= 1
        return total


def of_gpus(connection: Connection, gpu_ids: Sequence[int]) -> dict[int, Exposure]:
    """Read the audited work of GPUs: of the newest attempts on each one's machines."""
    return {gpu_id: Exposure(_work(connection, _on_gpu(gpu_id))) for gpu_id in gpu_ids}


def of_nodes(connection: Connection, node_ids: Sequence[int]) -> tuple[Exposure, Exposure]:
    """Read the audited work on one machine, by whatever names it is known: (a GPU's, all GPUs')."""
    rows = _rows(connection, _on_nodes(node_ids)) if node_ids else []
    single = Exposure((start, _end(start, end), seconds) for start, end, seconds, _ in rows)
    whole = Exposure(
        (start, _end(start, end), seconds * ranks) for start, end, seconds, ranks in rows
    )
    return single, whole


def moved(connection: Connection, gpu_ids: Sequence[int]) -> set[int]:
    """Find the GPUs that were seen in more than one machine."""
    if not gpu_ids:
        return set()
    query = (
        sa.select(placements.c.gpu_id)
        .where(placements.c.gpu_id.in_(gpu_ids))
        .group_by(placements.c.gpu_id)
        .having(sa.func.count() > 1)
    )
    return {row[0] for row in connection.execute(query)}


_WORKED = (
    sa.type_coerce(attempts.c.started_at, sa.BigInteger),
    sa.type_coerce(attempts.c.last_pass_at, sa.BigInteger),
    attempts.c.audited_seconds,
    rank_map_nodes.c.ranks,
)


def _on_gpu(gpu_id: int) -> sa.Select[Any]:
    joined = placements.join(rank_map_nodes, rank_map_nodes.c.node_id == placements.c.node_id).join(
        attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id
    )
    return (
        sa.select(*_WORKED)
        .select_from(joined)
        .where(
            placements.c.gpu_id == gpu_id,
            attempts.c.started_at >= placements.c.first_seen_at,
            attempts.c.started_at <= placements.c.last_seen_at,
        )
    )


def _on_nodes(node_ids: Sequence[int]) -> sa.Select[Any]:
    joined = rank_map_nodes.join(attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id)
    return (
        sa.select(*_WORKED)
        .select_from(joined)
        .where(rank_map_nodes.c.node_id.in_(node_ids), attempts.c.started_at.is_not(None))
    )


def _rows(connection: Connection, query: sa.Select[Any]) -> Sequence[Any]:
    bounded = (
        query.where(attempts.c.audited_seconds > 0)
        .order_by(attempts.c.started_at.desc())
        .limit(ATTEMPTS)
    )
    return connection.execute(bounded).all()


def _work(connection: Connection, query: sa.Select[Any]) -> list[Work]:
    return [
        (start, _end(start, end), seconds) for start, end, seconds, _ in _rows(connection, query)
    ]


def _end(start: int, end: int | None) -> int:
    return start if end is None or end < start else end
