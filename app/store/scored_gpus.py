"""Which incidents and which audited work does each of many GPUs have, in two statements?"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.exposure_reading import (
    ATTEMPTS,
    INCIDENT_COLUMNS,
    INCIDENTS,
    DeviceIncident,
    Stretch,
)
from app.store.tables import attempts, incidents, jobs, placements, rank_map_nodes


def incidents_of(
    connection: Connection, gpu_ids: Collection[int]
) -> dict[int, list[DeviceIncident]]:
    """Read the newest incidents of each GPU, the oldest of them first."""
    place = sa.func.row_number().over(
        partition_by=incidents.c.gpu_id, order_by=incidents.c.first_at.desc()
    )
    newest = (
        sa.select(*INCIDENT_COLUMNS, place.label("place"))
        .join(jobs, jobs.c.id == incidents.c.job_id)
        .where(incidents.c.gpu_id.in_(gpu_ids))
        .subquery()
    )
    query = (
        sa.select(*(newest.c[column.name] for column in INCIDENT_COLUMNS))
        .where(newest.c.place <= INCIDENTS)
        .order_by(newest.c.first_at, newest.c.id)
    )
    found: dict[int, list[DeviceIncident]] = {}
    for row in connection.execute(query):
        found.setdefault(row.gpu_id, []).append(DeviceIncident(*row))
    return found


def audited_work_of(connection: Connection, gpu_ids: Collection[int]) -> dict[int, list[Stretch]]:
    """Read the audited work of the newest attempts on each GPU's machines."""
    place = sa.func.row_number().over(
        partition_by=placements.c.gpu_id, order_by=attempts.c.started_at.desc()
    )
    newest = (
        sa.select(
            placements.c.gpu_id,
            attempts.c.started_at,
            attempts.c.last_pass_at,
            attempts.c.audited_seconds,
            place.label("place"),
        )
        .select_from(
            placements.join(rank_map_nodes, rank_map_nodes.c.node_id == placements.c.node_id).join(
                attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id
            )
        )
        .where(
            placements.c.gpu_id.in_(gpu_ids),
            attempts.c.audited_seconds > 0,
            # While the GPU was in that machine.
            attempts.c.started_at >= placements.c.first_seen_at,
            attempts.c.started_at <= placements.c.last_seen_at,
        )
        .subquery()
    )
    query = sa.select(
        newest.c.gpu_id, newest.c.started_at, newest.c.last_pass_at, newest.c.audited_seconds
    ).where(newest.c.place <= ATTEMPTS)
    found: dict[int, list[Stretch]] = {}
    for gpu_id, started, passed, seconds in connection.execute(query):
        found.setdefault(gpu_id, []).append(Stretch(started, passed or started, seconds))
    return found
