"""Who forbids to touch which node, why, and until when?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import vetoes


@dataclass(frozen=True, slots=True)
class Veto:
    """One veto; `until` None: until somebody lifts it."""

    id: int
    cluster: str
    node_name: str
    instance_id: str | None
    reason: str
    by: str
    at: datetime
    until: datetime | None
    lifted_by: str | None
    lifted_at: datetime | None

    def holds(self, now: datetime) -> bool:
        """Tell whether it forbids something now."""
        return self.lifted_at is None and (self.until is None or now < self.until)


_COLUMNS = tuple(vetoes.c)


def add(
    connection: Connection,
    cluster: str,
    node_name: str,
    instance_id: str | None,
    reason: str,
    *,
    by: str,
    at: datetime,
    until: datetime | None,
) -> Veto:
    """Keep a veto."""
    row = {
        "cluster": cluster, "node_name": node_name, "instance_id": instance_id, "reason": reason,
        "by": by, "at": at, "until": until,
    }  # fmt: skip
    new = connection.execute(vetoes.insert().values(row).returning(vetoes.c.id)).scalar_one()
    found = get(connection, int(new))
    assert found is not None
    return found


def get(connection: Connection, veto_id: int) -> Veto | None:
    """Read one veto."""
    row = connection.execute(sa.select(*_COLUMNS).where(vetoes.c.id == veto_id)).first()
    return None if row is None else Veto(*row)


def lift(connection: Connection, veto_id: int, *, by: str, at: datetime) -> bool:
    """Lift a veto; False when it was lifted before."""
    statement = vetoes.update().where(vetoes.c.id == veto_id, vetoes.c.lifted_at.is_(None))
    return connection.execute(statement.values(lifted_by=by, lifted_at=at)).rowcount == 1


def of_node(
    connection: Connection, cluster: str, name: str | None, instance_id: str | None
) -> tuple[Veto, ...]:
    """List all vetoes about a machine, by its name or its instance, the newest first."""
    same = [vetoes.c.node_name == name] if name else []
    same += [vetoes.c.instance_id == instance_id] if instance_id else []
    if not same:
        return ()
    query = (
        sa.select(*_COLUMNS)
        .where(vetoes.c.cluster == cluster, sa.or_(*same))
        .order_by(vetoes.c.id.desc())
    )
    return tuple(Veto(*row) for row in connection.execute(query))


def everything(connection: Connection, limit: int = 1_000) -> tuple[Veto, ...]:
    """List all vetoes, the newest first."""
    query = sa.select(*_COLUMNS).order_by(vetoes.c.id.desc()).limit(limit)
    return tuple(Veto(*row) for row in connection.execute(query))


def holding(
    connection: Connection,
    cluster: str,
    name: str | None,
    instance_id: str | None,
    now: datetime,
) -> Veto | None:
    """Find the newest veto that forbids to touch a machine now."""
    found = of_node(connection, cluster, name, instance_id)
    return next((one for one in found if one.holds(now)), None)
