"""Which kept windows does an export hold, in which order, and what is in one of them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import moment
from app.store.tables import findings, telemetry_blocks, telemetry_wants, telemetry_windows
from app.store.telemetry_kept import Packed
from app.store.telemetry_queue import COLUMNS, Window, from_row

Key = tuple[int, int]
"""Begin of a window in microseconds since 1970, and its id: windows stand in this order."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which windows: those of a cluster, a GPU, an alarm, the alarms of a case; None: any.

    `since` and `until` choose windows that touch this time.
    """

    cluster: str | None = None
    gpu_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    alarm_id: int | None = None
    case_id: int | None = None


def windows_after(
    connection: Connection, chosen: Chosen, after: Key | None, limit: int
) -> list[Window]:
    """List windows that were pulled, those that began first before others, from behind `after`."""
    table = telemetry_windows
    query = sa.select(*COLUMNS).where(
        sa.or_(table.c.pulled_at.is_not(None), table.c.purged_at.is_not(None)), *_wanted(chosen)
    )
    if after is not None:
        at, last = moment(after[0]), after[1]
        later = sa.and_(table.c.start_at == at, table.c.id > last)
        query = query.where(table.c.start_at >= at, sa.or_(table.c.start_at > at, later))
    query = query.order_by(table.c.start_at, table.c.id).limit(limit)
    return [from_row(row) for row in connection.execute(query)]


def _wanted(chosen: Chosen) -> list[sa.ColumnElement[bool]]:
    table, wants = telemetry_windows, telemetry_wants
    found = []
    if chosen.cluster is not None:
        found.append(table.c.cluster == chosen.cluster)
    if chosen.gpu_id is not None:
        found.append(table.c.gpu_id == chosen.gpu_id)
    if chosen.since is not None:
        found.append(table.c.end_at > chosen.since)
    if chosen.until is not None:
        found.append(table.c.start_at < chosen.until)
    if chosen.alarm_id is not None:
        asked = sa.select(wants.c.window_id).where(wants.c.alarm_id == chosen.alarm_id)
        found.append(table.c.id.in_(asked))
    if chosen.case_id is not None:
        alarms = sa.select(findings.c.alarm_id).where(findings.c.case_id == chosen.case_id)
        asked = sa.select(wants.c.window_id).where(wants.c.alarm_id.in_(alarms))
        found.append(table.c.id.in_(asked))
    return found


def whole_window(connection: Connection, window_id: int) -> tuple[Window, Sequence[Packed]] | None:
    """Read a window and all its series in one statement, so that both are of one pull."""
    table = telemetry_blocks
    columns = (
        table.c.field_id, table.c.part, table.c.codec, table.c.data, table.c.sha256, table.c.count,
        table.c.about,
    )  # fmt: skip
    query = (
        sa.select(*COLUMNS, *columns)
        .select_from(
            telemetry_windows.outerjoin(table, table.c.window_id == telemetry_windows.c.id)
        )
        .where(telemetry_windows.c.id == window_id)
        .order_by(table.c.field_id, table.c.part)
    )
    rows = connection.execute(query).all()
    if not rows:
        return None
    cut = len(COLUMNS)
    packed = [Packed(*row[cut:]) for row in rows if row[cut] is not None]
    return from_row(rows[0][:cut]), packed
