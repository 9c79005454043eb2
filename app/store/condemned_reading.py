"""Where are condemned GPUs at work again, who knows of it, and who took note?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import cases, condemned_gpus, condemned_sightings, gpus, jobs, nodes

_SEEN, _GPUS = condemned_sightings, condemned_gpus


@dataclass(frozen=True, slots=True)
class Sighting:
    """A condemned GPU at work in a job; `told_at` None: its case has not been told yet.

    `certain` False: only a short form of its UUID was posted.
    """

    id: int
    gpu_id: int
    uuid: str
    certain: bool
    cluster: str
    node_id: int | None
    node: str | None
    instance_id: str | None
    job_id: int
    job: str
    rank: int
    first_at: datetime
    last_at: datetime
    starts: int
    told_at: datetime | None
    case_id: int
    why: str
    condemned_at: datetime
    same: int
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    reason: str | None

    @property
    def same_machine(self) -> bool:
        """Tell whether it works where it was when it was condemned."""
        return bool(self.same)

    @property
    def words(self) -> str:
        """Say it in one sentence."""
        where = self.node or self.instance_id or "a machine that the rank map does not name"
        what = "A condemned GPU" if self.certain else "A GPU that may be a condemned one"
        back = "works again" if self.same_machine else "is back"
        return f"{what} {back}: {self.uuid} on {where}, job {self.job}, rank {self.rank}"


def _query() -> sa.Select[Any]:
    same = sa.case((_SEEN.c.node_id == _GPUS.c.node_id, 1), else_=0)
    return sa.select(
        _SEEN.c.id, _SEEN.c.gpu_id, gpus.c.uuid, _SEEN.c.certain, _SEEN.c.cluster,
        _SEEN.c.node_id, nodes.c.name, nodes.c.instance_id, _SEEN.c.job_id, jobs.c.name,
        _SEEN.c.rank, _SEEN.c.first_at, _SEEN.c.last_at, _SEEN.c.starts, _SEEN.c.told_at,
        sa.func.coalesce(_SEEN.c.case_id, _GPUS.c.case_id), _GPUS.c.why, _GPUS.c.at, same,
        _SEEN.c.acknowledged_by, _SEEN.c.acknowledged_at, _SEEN.c.reason,
    ).select_from(
        _SEEN.join(_GPUS, _GPUS.c.gpu_id == _SEEN.c.gpu_id)
        .join(gpus, gpus.c.id == _SEEN.c.gpu_id)
        .join(jobs, jobs.c.id == _SEEN.c.job_id)
        .outerjoin(nodes, nodes.c.id == _SEEN.c.node_id)
    )  # fmt: skip


def _read(connection: Connection, query: sa.Select[Any]) -> tuple[Sighting, ...]:
    return tuple(Sighting(*row) for row in connection.execute(query))


def open_ones(connection: Connection, limit: int) -> tuple[Sighting, ...]:
    """List what nobody has acknowledged, the newest first."""
    query = _query().where(_SEEN.c.acknowledged_at.is_(None), _SEEN.c.withdrawn_at.is_(None))
    return _read(connection, query.order_by(_SEEN.c.first_at.desc(), _SEEN.c.id).limit(limit))


def untold(connection: Connection, limit: int = 20) -> tuple[Sighting, ...]:
    """List what no case has been told of, the oldest first."""
    query = _query().where(_SEEN.c.told_at.is_(None), _SEEN.c.withdrawn_at.is_(None))
    return _read(connection, query.order_by(_SEEN.c.first_at, _SEEN.c.id).limit(limit))


def of_gpu(connection: Connection, gpu_id: int, limit: int = 20) -> tuple[Sighting, ...]:
    """List where one condemned GPU was seen, also what was acknowledged, the newest first."""
    query = _query().where(_SEEN.c.gpu_id == gpu_id, _SEEN.c.withdrawn_at.is_(None))
    return _read(connection, query.order_by(_SEEN.c.first_at.desc(), _SEEN.c.id).limit(limit))


def one(connection: Connection, sighting_id: int) -> Sighting | None:
    """Read one sighting."""
    found = _read(connection, _query().where(_SEEN.c.id == sighting_id))
    return found[0] if found else None


def newest_case(connection: Connection, gpu_id: int) -> int | None:
    """Find the newest case of a GPU."""
    found = connection.execute(
        sa.select(cases.c.id)
        .where(cases.c.subject == "gpu", cases.c.subject_id == gpu_id)
        .order_by(cases.c.ordinal.desc())
        .limit(1)
    ).scalar()
    return None if found is None else int(found)


def change(
    connection: Connection, sighting_id: int, only_if: str, values: Mapping[str, Any]
) -> bool:
    """Change a sighting whose column `only_if` is still empty; False where it is not."""
    changed = connection.execute(
        _SEEN.update()
        .where(_SEEN.c.id == sighting_id, _SEEN.c[only_if].is_(None))
        .values(dict(values))
    )
    return changed.rowcount == 1


def stamp(connection: Connection) -> int:
    """Count what stands open, so that a page knows when to be drawn anew."""
    query = sa.select(sa.func.count()).where(
        _SEEN.c.acknowledged_at.is_(None), _SEEN.c.withdrawn_at.is_(None)
    )
    return int(connection.execute(query).scalar_one())
