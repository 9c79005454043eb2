"""Which GPUs are condemned, and where is one of them at work again?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.intake.rank_map_rows import topology_of
from app.store.intake.upsert import merge
from app.store.tables import (
    attempts,
    condemned_gpus,
    condemned_sightings,
    nodes,
    placements,
    rank_map_nodes,
)

STARTS = 20  # of one GPU: more of them only repeat where it is
_GPUS, _SEEN = condemned_gpus, condemned_sightings


@dataclass(frozen=True, slots=True)
class Condemned:
    """A GPU that was found defective; `instance_id` and `node_id` say where it was then."""

    gpu_id: int
    uuid: str
    case_id: int
    cluster: str
    node_id: int | None
    instance_id: str | None
    at: datetime
    why: str
    proposal_id: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A condemned GPU in the rank map of one start of a job."""

    gpu_id: int
    certain: bool
    rank: int
    node_id: int | None


class Register:
    """All GPUs that are condemned now, for look-ups by UUID in O(1)."""

    def __init__(self, found: Iterable[Condemned]) -> None:
        self._by_uuid = {one.uuid: one for one in found}
        self._sorted = sorted(self._by_uuid)

    def __bool__(self) -> bool:
        """Tell whether any GPU is condemned."""
        return bool(self._by_uuid)

    def find(self, uuid: str | None, short: bool) -> tuple[Condemned, ...]:
        """Find who is meant by a canonical UUID, or who may be meant by a short form of one."""
        if uuid is None:
            return ()
        exact = self._by_uuid.get(uuid)
        if exact is not None or not short:
            return () if exact is None else (exact,)
        place, found = bisect_left(self._sorted, uuid), []
        while place < len(self._sorted) and self._sorted[place].startswith(uuid):
            found.append(self._by_uuid[self._sorted[place]])
            place += 1
        return tuple(found)


def register(connection: Connection) -> Register:
    """Read every GPU that is condemned now."""
    columns = [column for column in _GPUS.c if column.name != "lifted_at"]
    rows = connection.execute(sa.select(*columns).where(_GPUS.c.lifted_at.is_(None)))
    return Register(Condemned(*row) for row in rows)


def condemn(connection: Connection, one: Condemned) -> bool:
    """Keep that a GPU is condemned; False where it was already."""
    known = connection.execute(
        sa.select(_GPUS.c.lifted_at).where(_GPUS.c.gpu_id == one.gpu_id)
    ).first()
    if known is not None and known.lifted_at is None:
        return False
    values: dict[str, Any] = {
        name: getattr(one, name)
        for name in ("gpu_id", "uuid", "case_id", "cluster", "node_id", "instance_id", "at", "why")
    }
    values |= {"proposal_id": one.proposal_id, "lifted_at": None}
    if known is None:
        connection.execute(_GPUS.insert().values(values))
    else:
        connection.execute(_GPUS.update().where(_GPUS.c.gpu_id == one.gpu_id).values(values))
    return True


def lift(connection: Connection, case_id: int, why: str, at: datetime) -> bool:
    """Take back what a case condemned for a reason; False where it did not."""
    mine = sa.and_(
        _GPUS.c.case_id == case_id, _GPUS.c.why == why, _GPUS.c.lifted_at.is_(None)
    )  # fmt: skip
    gpu_ids = list(connection.execute(sa.select(_GPUS.c.gpu_id).where(mine)).scalars())
    if not gpu_ids:
        return False
    connection.execute(_GPUS.update().where(mine).values(lifted_at=at))
    connection.execute(
        _SEEN.update()
        .where(_SEEN.c.gpu_id.in_(gpu_ids), _SEEN.c.acknowledged_at.is_(None))
        .values(withdrawn_at=at)
    )
    return True


def of_gpu(connection: Connection, gpu_id: int) -> Condemned | None:
    """Read whether a GPU is condemned now; None: it is not."""
    columns = [column for column in _GPUS.c if column.name != "lifted_at"]
    row = connection.execute(
        sa.select(*columns).where(_GPUS.c.gpu_id == gpu_id, _GPUS.c.lifted_at.is_(None))
    ).first()
    return None if row is None else Condemned(*row)


def write_seen(
    connection: Connection,
    found: Sequence[Seen],
    cluster: str,
    job_id: int,
    attempt_id: int,
    at: datetime,
) -> None:
    """Keep where condemned GPUs were seen in the start of a job at a time; one row a job."""
    moment = micros(at)
    rows: dict[int, Mapping[str, Any]] = {}
    for one in found:
        row_id = ids.derive("condemned", one.gpu_id, one.node_id, job_id)
        rows[row_id] = {
            "id": row_id, "gpu_id": one.gpu_id, "certain": one.certain, "cluster": cluster,
            "node_id": one.node_id, "job_id": job_id, "attempt_id": attempt_id, "rank": one.rank,
            "first_at": moment, "last_at": moment, "starts": 1,
        }  # fmt: skip
    how: Any = {"first_at": "min", "last_at": "max", "starts": "add", "certain": "or"}
    merge(connection, condemned_sightings, list(rows.values()), how)


def at_work(
    connection: Connection, one: Condemned, since: datetime
) -> list[tuple[Seen, str, int, int, datetime]]:
    """Find the newest starts after a time in which a GPU works in another machine.

    Gives (seen, cluster, job, attempt, start) of each: for who is condemned after it moved.
    """
    elsewhere = placements.c.node_id != one.node_id if one.node_id is not None else sa.true()
    query = (
        sa.select(
            nodes.c.cluster, nodes.c.id, attempts.c.job_id, attempts.c.id,
            attempts.c.started_at, attempts.c.rank_map_id,
        )
        .select_from(
            placements.join(nodes, nodes.c.id == placements.c.node_id)
            .join(rank_map_nodes, rank_map_nodes.c.node_id == placements.c.node_id)
            .join(attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id)
        )
        .where(
            placements.c.gpu_id == one.gpu_id,
            placements.c.last_seen_at > since,
            elsewhere,
            attempts.c.started_at > since,
        )
        .order_by(attempts.c.started_at.desc())
        .limit(STARTS)
    )  # fmt: skip
    found = []
    for cluster, node_id, job_id, attempt_id, at, map_id in connection.execute(query):
        for place in topology_of(connection, map_id).places.values():
            if place.gpu_uuid == one.uuid:
                seen = Seen(one.gpu_id, True, place.rank, node_id)
                found.append((seen, cluster, job_id, attempt_id, at))
    return found
