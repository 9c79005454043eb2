"""Which machines match some filters, in the order of their names, with what was counted of them?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store.device_cases import jobs_touched
from app.store.device_reading import Node
from app.store.intake.job_rows import searchable
from app.store.tables import attempts, nodes, offender_windows, placements, rank_map_nodes
from app.store.timeline_scope import called, find_gpus, jobs_meant

CORDONS = ("none", "ours", "other", "unknown")
FILTERS = ("cluster", "job", "node", "instance", "gpu", "status", "q")


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A machine with its counts; None: no alarm ever named it."""

    node: Node
    alarms: int | None
    incidents: int | None
    jobs: int | None
    last_alarm_at: datetime | None

    @property
    def key(self) -> tuple[str, int]:
        """Give the place of the row in the list."""
        return searchable(self.node.name) or "", self.node.id


def list_nodes(
    connection: Connection,
    filters: Filters,
    after: tuple[str, int] | None,
    limit: int,
    cluster: str | None = None,
) -> tuple[ListedNode, ...]:
    """Read machines by name; `cluster` binds a reader to one cluster."""
    counted = offender_windows.c
    statement = (
        sa.select(
            *(column for column in nodes.c if column.name != "search"),
            counted.alarms_all, counted.incidents_all,
            jobs_touched(counted.subject, counted.subject_key), counted.last_at,
        )
        .select_from(
            nodes.join(
                offender_windows,
                sa.and_(
                    counted.subject == "node",
                    counted.subject_key == sa.cast(nodes.c.id, sa.Text),
                ),
                isouter=True,
            )
        )
        .where(*_conditions(connection, filters, cluster))
    )  # fmt: skip
    return _page(connection, statement, after, limit)


def _page(
    connection: Connection,
    statement: sa.Select[Any],
    after: tuple[str, int] | None,
    limit: int,
) -> tuple[ListedNode, ...]:
    name = sa.func.coalesce(nodes.c.search, "")
    if after is not None:
        text, row_id = after
        statement = statement.where(sa.or_(name > text, sa.and_(name == text, nodes.c.id > row_id)))
    statement = statement.order_by(name, nodes.c.id).limit(limit)
    found = []
    for row in connection.execute(statement):
        values = tuple[Any, ...](row)
        found.append(ListedNode(Node(*values[:-4]), *values[-4:]))
    return tuple(found)


def _conditions(
    connection: Connection, filters: Filters, cluster: str | None
) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if cluster is not None:
        found.append(nodes.c.cluster == cluster)
    if filters.cluster:
        found.append(nodes.c.cluster.in_(filters.cluster))
    if filters.node:
        found.append(called(nodes, filters.node))
    if filters.instance:
        found.append(nodes.c.instance_id.in_(filters.instance))
    if filters.status:
        known = [one for one in filters.status if one != "unknown"]
        either = [nodes.c.cordon.in_(known)]
        if "unknown" in filters.status:
            either.append(nodes.c.cordon.is_(None))
        found.append(sa.or_(*either))
    if filters.gpu:
        meant = [one.id for text in filters.gpu for one in find_gpus(connection, text)]
        inside = sa.select(placements.c.node_id).where(placements.c.gpu_id.in_(meant))
        found.append(nodes.c.id.in_(inside))
    if filters.job:
        used = (
            sa.select(rank_map_nodes.c.node_id)
            .join(attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id)
            .where(attempts.c.job_id.in_(jobs_meant(connection, filters)))
        )
        found.append(nodes.c.id.in_(used))
    if filters.q:
        text = filters.q.strip().casefold()
        found.append(
            sa.or_(
                nodes.c.search.contains(text, autoescape=True),
                nodes.c.instance_id.contains(text, autoescape=True),
            )
        )
    return found
