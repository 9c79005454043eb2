"""Where does each node of a cluster stand, and how many GPU nodes has the cluster?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import run_settings
from app.store.columns import micros
from app.store.intake.upsert import merge
from app.store.tables import node_places

Source = Literal["kubernetes", "provider", "dry run"]
_FLEET = "fleet:"
_WITHIN = 500  # names in one condition; SQLite takes 32,766 parameters


@dataclass(frozen=True, slots=True)
class Place:
    """One node as it was read; None wherever nothing says it."""

    cluster: str
    name: str
    instance_id: str | None
    gpu: bool
    protected: str | None  # why it is never touched from here
    instance_group: str | None
    zone: str | None
    network: str | None
    rack: str | None
    out: str | None  # "ours", "other", "not ready"; None: in service


@dataclass(frozen=True, slots=True)
class FleetRead:
    """What was read of a cluster as a whole."""

    cluster: str
    source: Source
    gpu_nodes: int | None  # None: a dry run has none
    read_at: datetime


_COLUMNS = (
    node_places.c.cluster, node_places.c.name, node_places.c.instance_id, node_places.c.gpu,
    node_places.c.protected, node_places.c.instance_group, node_places.c.zone,
    node_places.c.network, node_places.c.rack, node_places.c.out,
)  # fmt: skip


def keep(
    connection: Connection, cluster: str, source: Source, places: Sequence[Place], at: datetime
) -> None:
    """Keep a whole reading of a cluster; nodes that are not in it are forgotten."""
    rows = [{**asdict(one), "read_at": micros(at)} for one in places]
    names = [column.name for column in node_places.c if column.name not in ("cluster", "name")]
    merge(connection, node_places, rows, dict.fromkeys(names, "set"))
    connection.execute(
        node_places.delete().where(node_places.c.cluster == cluster, node_places.c.read_at != at)
    )
    gpu_nodes = None if source == "dry run" else sum(one.gpu for one in places)
    value = {"source": source, "gpu_nodes": gpu_nodes}
    run_settings.keep(connection, f"{_FLEET}{cluster}", value, by="service", at=at)


def fleet(connection: Connection, cluster: str) -> FleetRead | None:
    """Read what is known of a cluster as a whole; None: it was never read."""
    kept = run_settings.entry(connection, f"{_FLEET}{cluster}")
    if kept is None:
        return None
    return FleetRead(cluster, kept.value["source"], kept.value["gpu_nodes"], kept.changed_at)


def of_node(
    connection: Connection, cluster: str, name: str | None, instance_id: str | None
) -> Place | None:
    """Find where a node stands, by its name, else by its instance; None: not read."""
    for column, value in ((node_places.c.name, name), (node_places.c.instance_id, instance_id)):
        if value:
            query = sa.select(*_COLUMNS).where(node_places.c.cluster == cluster, column == value)
            found = _places(connection.execute(query.limit(1)))
            if found:
                return found[0]
    return None


def out_of_service(connection: Connection, cluster: str, ours: Collection[str]) -> dict[str, Place]:
    """Find the places of nodes that others took out of service, and of those named, by name."""
    conditions: list[sa.ColumnElement[bool]] = [
        sa.and_(node_places.c.gpu, node_places.c.out.in_(("other", "not ready")))
    ]
    names = sorted(ours)
    conditions += [
        node_places.c.name.in_(names[start : start + _WITHIN])
        for start in range(0, len(names), _WITHIN)
    ]
    found: dict[str, Place] = {}
    for condition in conditions:
        query = sa.select(*_COLUMNS).where(node_places.c.cluster == cluster, condition)
        found |= {one.name: one for one in _places(connection.execute(query))}
    return found


def _places(rows: Iterable[Any]) -> tuple[Place, ...]:
    return tuple(Place(*row) for row in rows)
