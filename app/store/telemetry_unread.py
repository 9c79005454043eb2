"""Which alarms wait to be read although all that they ask for is settled?

A process that ends between keeping a window and reading its alarms leaves such alarms behind, and
nothing else would come back to them.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.upsert import chunks
from app.store.tables import telemetry_asks, telemetry_wants, telemetry_windows

A_PERSON = 0
"""Stands for an alarm where a person asked."""
OPEN = ("queued", "claimed")

_has_open = (
    sa.select(telemetry_wants.c.window_id)
    .join(telemetry_windows, telemetry_windows.c.id == telemetry_wants.c.window_id)
    .where(
        telemetry_wants.c.alarm_id == telemetry_asks.c.alarm_id,
        telemetry_windows.c.state.in_(OPEN),
    )
    .correlate(telemetry_asks)
    .exists()
)


def askers(connection: Connection, window_ids: Collection[int]) -> list[int]:
    """List the alarms that ask for any of these windows and have none that was never tried.

    An alarm of many windows is read once they have all had their turn, not after each round.
    """
    other = telemetry_wants.alias()
    has_untried = (
        sa.select(other.c.window_id)
        .join(telemetry_windows, telemetry_windows.c.id == other.c.window_id)
        .where(
            other.c.alarm_id == telemetry_wants.c.alarm_id,
            telemetry_windows.c.state == "queued",
            telemetry_windows.c.tries == 0,
            telemetry_windows.c.pulled_at.is_(None),
        )
        .correlate(telemetry_wants)
        .exists()
    )
    query = (
        sa.select(telemetry_wants.c.alarm_id)
        .where(telemetry_wants.c.window_id.in_(window_ids), telemetry_wants.c.alarm_id != A_PERSON)
        .where(~has_untried)
        .distinct()
        .order_by(telemetry_wants.c.alarm_id)
    )
    return list(connection.execute(query).scalars())


def unread(connection: Connection, limit: int) -> list[int]:
    """List alarms that were planned, have no window left to wait for, and were not read since."""
    query = (
        sa.select(telemetry_asks.c.alarm_id)
        .where(telemetry_asks.c.state == "waiting", ~_has_open)
        .order_by(telemetry_asks.c.wanted_at, telemetry_asks.c.alarm_id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def set_read(connection: Connection, alarm_id: int) -> None:
    """Note that every window of an alarm is settled and read; nothing while one is not."""
    connection.execute(
        telemetry_asks.update()
        .where(
            telemetry_asks.c.alarm_id == alarm_id,
            telemetry_asks.c.state.in_(("waiting", "failed")),
            ~_has_open,
        )
        .values(state="read")
    )


def hold(connection: Connection, window_ids: Collection[int], *alarm_ids: int) -> list[int]:
    """Lock the asks of these alarms and of all that ask for these windows; give them, by id.

    In one order for all processes, and after whatever of windows is changed in the transaction:
    two that lock rows of both in different orders would wait for each other.
    """
    found = set(alarm_ids)
    for some in chunks(sorted(window_ids)):
        query = sa.select(telemetry_wants.c.alarm_id).where(telemetry_wants.c.window_id.in_(some))
        found.update(connection.execute(query.distinct()).scalars())
    held = sorted(found - {A_PERSON})
    if connection.dialect.name != "sqlite":
        for some in chunks(held):
            rows = sa.select(telemetry_asks.c.alarm_id).where(telemetry_asks.c.alarm_id.in_(some))
            connection.execute(rows.order_by(telemetry_asks.c.alarm_id).with_for_update()).all()
    return held


def open_again(connection: Connection, window_ids: Collection[int]) -> None:
    """Let the alarms that ask for these windows wait once more: a window is to be pulled again."""
    for some in chunks(hold(connection, window_ids)):
        connection.execute(
            telemetry_asks.update()
            .where(telemetry_asks.c.alarm_id.in_(some), telemetry_asks.c.state == "read")
            .values(state="waiting")
        )


def set_aside(connection: Connection, alarm_id: int) -> None:
    """Take an alarm out of the way that cannot be planned or read: a fault of ours."""
    connection.execute(
        telemetry_asks.update().where(telemetry_asks.c.alarm_id == alarm_id).values(state="failed")
    )


def take_up_failed(connection: Connection) -> int:
    """Want once more what was set aside: a newer version may know better; give how many."""
    query = sa.select(telemetry_asks.c.alarm_id).where(telemetry_asks.c.state == "failed")
    failed = hold(connection, (), *connection.execute(query).scalars())
    for some in chunks(failed):
        connection.execute(
            telemetry_asks.update()
            .where(telemetry_asks.c.alarm_id.in_(some), telemetry_asks.c.state == "failed")
            .values(state="wanted")
        )
    return len(failed)
