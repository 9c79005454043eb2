"""In how many of the kept windows of some GPUs did anything move?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables.telemetry import telemetry_moved


@dataclass(frozen=True, slots=True)
class Moved:
    """Windows that were kept of a GPU, those in which something moved, and was the hardware's."""

    windows: int
    moved: int
    hardware: int


def moved_counts(
    connection: Connection,
    gpu_ids: Collection[int],
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[int, Moved]:
    """Count for each GPU; one without any window that began in the time is left out."""
    table = telemetry_moved
    did = sa.case((table.c.moved != "[]", 1), else_=0)
    told = sa.case((table.c.hardware, 1), else_=0)
    query = (
        sa.select(table.c.gpu_id, sa.func.count(), sa.func.sum(did), sa.func.sum(told))
        .where(table.c.gpu_id.in_(gpu_ids))
        .group_by(table.c.gpu_id)
    )
    if since is not None:
        query = query.where(table.c.start_at >= since)
    if until is not None:
        query = query.where(table.c.start_at < until)
    return {
        int(gpu_id): Moved(int(windows), int(moved), int(hardware))
        for gpu_id, windows, moved, hardware in connection.execute(query)
    }
