"""Which windows lie beside a GPU, and which of them did people and programs ask for?"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import alarms, telemetry_asks, telemetry_wants, telemetry_windows
from app.store.telemetry_queue import A_PERSON, COLUMNS, OPEN, Window, from_row


def beside(
    connection: Connection, gpu_id: int, start: datetime, end: datetime, limit: int
) -> list[Window]:
    """List the windows that touch a time of a GPU, and of those pulled to compare it with.

    Its own come first, then the newest.
    """
    table = telemetry_windows
    wanted = sa.select(telemetry_wants.c.window_id).where(telemetry_wants.c.gpu_id == gpu_id)
    query = (
        sa.select(*COLUMNS)
        .where(
            sa.or_(table.c.gpu_id == gpu_id, table.c.id.in_(wanted)),
            table.c.start_at < end,
            table.c.end_at > start,
        )
        .order_by(table.c.gpu_id != gpu_id, table.c.start_at.desc(), table.c.id)
        .limit(limit)
    )
    return [from_row(row) for row in connection.execute(query)]


def known_wants(connection: Connection, gpu_id: int, window_ids: Collection[int]) -> int:
    """Count how many of these windows a person asked for before, for this GPU.

    One whose samples retention deleted counts as never asked for.
    """
    query = (
        sa.select(sa.func.count())
        .select_from(telemetry_wants)
        .join(telemetry_windows, telemetry_windows.c.id == telemetry_wants.c.window_id)
        .where(
            telemetry_wants.c.alarm_id == A_PERSON,
            telemetry_wants.c.gpu_id == gpu_id,
            telemetry_wants.c.window_id.in_(window_ids),
            sa.or_(telemetry_windows.c.purged_at.is_(None), telemetry_windows.c.state.in_(OPEN)),
        )
    )
    return int(connection.execute(query).scalar_one())


def waiting_for_people(connection: Connection) -> int:
    """Count the windows that people asked for and that are not settled."""
    asked = sa.select(telemetry_wants.c.window_id).where(telemetry_wants.c.alarm_id == A_PERSON)
    query = sa.select(sa.func.count()).where(
        telemetry_windows.c.state.in_(OPEN), telemetry_windows.c.id.in_(asked)
    )
    return int(connection.execute(query).scalar_one())


def times_of(connection: Connection, alarm_ids: Collection[int]) -> dict[int, datetime]:
    """Give when alarms occurred."""
    query = sa.select(alarms.c.id, alarms.c.occurred_at).where(alarms.c.id.in_(alarm_ids))
    return {int(row.id): row.occurred_at for row in connection.execute(query)}


def ask_state(connection: Connection, alarm_id: int) -> str | None:
    """Give how far an alarm's telemetry is (see the table); None where nothing asks for it."""
    query = sa.select(telemetry_asks.c.state).where(telemetry_asks.c.alarm_id == alarm_id)
    return connection.execute(query).scalar_one_or_none()
