"""Which windows are due, who takes them, and what became of them?"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import telemetry_unread
from app.store.tables import telemetry_windows
from app.store.telemetry_queue import Window, read


def is_due(
    connection: Connection, now: datetime, lease: timedelta, without: Collection[str] = ()
) -> bool:
    """Tell whether `claim` would find anything, without writing."""
    query = sa.select(telemetry_windows.c.id).where(_due(now, lease, without)).limit(1)
    return connection.execute(query).first() is not None


def _due(now: datetime, lease: timedelta, without: Collection[str] = ()) -> sa.ColumnElement[bool]:
    table = telemetry_windows
    due = sa.or_(
        sa.and_(table.c.state.in_(("queued", "refused")), table.c.next_at <= now),
        sa.and_(table.c.state == "claimed", table.c.claimed_at < now - lease),
    )
    return sa.and_(due, table.c.cluster.not_in(without)) if without else due


def claim(
    connection: Connection, worker: str, now: datetime, lease: timedelta, limit: int,
    without: Collection[str] = (),
) -> list[Window]:  # fmt: skip
    """Take windows that are due, and those whose worker let its claim run out.

    `without` names clusters whose windows are left.
    A window that was refused is tried again; the alarms that were read with that wait once more.
    """
    table = telemetry_windows
    chosen = (
        sa.select(table.c.id, table.c.state)
        .where(_due(now, lease, without))
        .order_by(table.c.next_at, table.c.id)
        .limit(limit)
    )
    if connection.dialect.name != "sqlite":
        chosen = chosen.with_for_update(skip_locked=True)
    states = {int(row.id): str(row.state) for row in connection.execute(chosen)}
    if not states:
        return []
    found = sorted(states)
    connection.execute(
        table.update()
        .where(table.c.id.in_(found))
        .values(state="claimed", claimed_by=worker, claimed_at=now, tries=table.c.tries + 1)
    )
    refused = [one for one in found if states[one] == "refused"]
    if refused:
        telemetry_unread.open_again(connection, refused)
    return read(connection, found)


def renew(
    connection: Connection, window_ids: Collection[int], worker: str, now: datetime
) -> set[int]:
    """Hold on to claimed windows from now on; give those that are still this worker's."""
    mine = telemetry_windows.c.id.in_(window_ids), telemetry_windows.c.claimed_by == worker
    connection.execute(telemetry_windows.update().where(*mine).values(claimed_at=now))
    return set(connection.execute(sa.select(telemetry_windows.c.id).where(*mine)).scalars())


def release(connection: Connection, worker: str, window_ids: Collection[int] | None = None) -> None:
    """Give back what a worker does not get to, for the next one to take at once; None: all."""
    mine = [telemetry_windows.c.state == "claimed", telemetry_windows.c.claimed_by == worker]
    if window_ids is not None:
        mine.append(telemetry_windows.c.id.in_(window_ids))
    connection.execute(
        telemetry_windows.update()
        .where(*mine)
        .values(
            state="queued",
            claimed_by=None,
            claimed_at=None,
            tries=telemetry_windows.c.tries - 1,  # it had no turn
        )
    )


def settle(connection: Connection, window_id: int, worker: str, values: dict[str, Any]) -> bool:
    """Note what became of a claimed window; False where the claim was another worker's by then."""
    if "warnings" in values:
        values = values | {"warnings": json.dumps(values["warnings"])}
    done = connection.execute(
        telemetry_windows.update()
        .where(
            telemetry_windows.c.id == window_id,
            telemetry_windows.c.state == "claimed",
            telemetry_windows.c.claimed_by == worker,
        )
        .values(claimed_by=None, claimed_at=None, **values)
    )
    return done.rowcount == 1
