"""Which telemetry windows wait to be pulled, who takes them, and what became of them?

A window is one GPU over one time. However many alarms ask for it, it is one row and one pull.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids, telemetry_unread
from app.store.columns import micros
from app.store.intake.upsert import chunks, insert_new, merge
from app.store.tables import telemetry_asks, telemetry_wants, telemetry_windows

A_PERSON = telemetry_unread.A_PERSON
OPEN = telemetry_unread.OPEN
ENDED_EMPTY = ("refused", "given_up", "no_source")


@dataclass(frozen=True, slots=True)
class Want:
    """One window that somebody asks for; `suspect` is the GPU it is compared with or is itself."""

    cluster: str
    gpu_uuid: str
    start: datetime
    end: datetime
    role: str
    suspect: str

    @property
    def window_id(self) -> int:
        """Give the id of the window."""
        times = (micros(self.start), micros(self.end))
        return ids.derive("telemetry", self.cluster, self.gpu_uuid, *times)


@dataclass(frozen=True, slots=True)
class Window:
    """One window as it stands; see the table for the meaning of each column."""

    id: int
    cluster: str
    gpu_id: int
    gpu_uuid: str
    start: datetime
    end: datetime
    state: str
    asked_at: datetime
    tries: int
    pulled_at: datetime | None
    whole: bool
    source: str | None
    level: str | None
    interval_s: float | None
    queries: int
    samples: int
    partial: bool
    warnings: tuple[str, ...]
    said: str | None


COLUMNS = (
    telemetry_windows.c.id, telemetry_windows.c.cluster, telemetry_windows.c.gpu_id,
    telemetry_windows.c.gpu_uuid, telemetry_windows.c.start_at, telemetry_windows.c.end_at,
    telemetry_windows.c.state, telemetry_windows.c.asked_at, telemetry_windows.c.tries,
    telemetry_windows.c.pulled_at, telemetry_windows.c.whole, telemetry_windows.c.source,
    telemetry_windows.c.level, telemetry_windows.c.interval_s, telemetry_windows.c.queries,
    telemetry_windows.c.samples, telemetry_windows.c.partial, telemetry_windows.c.warnings,
    telemetry_windows.c.said,
)  # fmt: skip


def from_row(row: Any) -> Window:
    """Build a window from a row of `COLUMNS`."""
    values = list(row)
    values[17] = tuple(json.loads(values[17] or "[]"))
    return Window(*values)


def want_alarms(connection: Connection, alarm_ids: Iterable[int], now: datetime) -> None:
    """Ask for the telemetry of alarms, anew where their places became known."""
    at = micros(now)
    rows = [
        {"alarm_id": one, "state": "wanted", "wanted_at": at, "left_out": 0}
        for one in dict.fromkeys(alarm_ids)
    ]
    merge(connection, telemetry_asks, rows, {"state": "set", "wanted_at": "set"})


def wanted(connection: Connection, limit: int) -> list[tuple[int, datetime]]:
    """List alarms whose windows are not worked out yet, with since when, the longest first."""
    query = (
        sa.select(telemetry_asks.c.alarm_id, telemetry_asks.c.wanted_at)
        .where(telemetry_asks.c.state == "wanted")
        .order_by(telemetry_asks.c.wanted_at, telemetry_asks.c.alarm_id)
        .limit(limit)
    )
    return [(int(row[0]), row[1]) for row in connection.execute(query)]


def plan(
    connection: Connection, alarm_id: int, wants: Sequence[Want], left_out: int, *,
    wanted_at: datetime, now: datetime,
) -> None:  # fmt: skip
    """Queue the windows of an alarm that are not there yet, and note who asks for them.

    An alarm that was wanted anew after `wanted_at` stays wanted: its places changed meanwhile.
    """
    queue(connection, alarm_id, wants, now)
    connection.execute(
        telemetry_asks.update()
        .where(
            telemetry_asks.c.alarm_id == alarm_id,
            telemetry_asks.c.state == "wanted",
            telemetry_asks.c.wanted_at == wanted_at,
        )
        .values(state="waiting", planned_at=now, left_out=left_out)
    )


def queue(connection: Connection, alarm_id: int, wants: Sequence[Want], now: datetime) -> None:
    """Queue windows for an alarm, or for a person where `alarm_id` is `A_PERSON`."""
    at = micros(now)
    windows = {
        one.window_id: {
            "id": one.window_id,
            "cluster": one.cluster,
            "gpu_id": ids.derive("gpu", one.gpu_uuid),
            "gpu_uuid": one.gpu_uuid,
            "start_at": micros(one.start),
            "end_at": micros(one.end),
            "state": "queued",
            "next_at": at,
            "asked_at": at,
            "tries": 0,
            "whole": False,
            "queries": 0,
            "samples": 0,
            "partial": False,
        }
        for one in wants
    }
    # In one order for all processes, so that two of them cannot wait for each other.
    insert_new(connection, telemetry_windows, [windows[one] for one in sorted(windows)])
    links = {(ids.derive("gpu", one.suspect), one.window_id): one.role for one in reversed(wants)}
    insert_new(
        connection,
        telemetry_wants,
        [
            {"alarm_id": alarm_id, "gpu_id": suspect, "window_id": window, "role": role}
            for (suspect, window), role in sorted(links.items())
        ],
    )


def claim(
    connection: Connection, worker: str, now: datetime, lease: timedelta, limit: int
) -> list[Window]:
    """Take windows that are due, and those whose worker let its claim run out."""
    table = telemetry_windows
    due = sa.or_(
        sa.and_(table.c.state == "queued", table.c.next_at <= now),
        sa.and_(table.c.state == "claimed", table.c.claimed_at < now - lease),
    )
    chosen = sa.select(table.c.id).where(due).order_by(table.c.next_at, table.c.id).limit(limit)
    if connection.dialect.name != "sqlite":
        chosen = chosen.with_for_update(skip_locked=True)
    found = list(connection.execute(chosen).scalars())
    if not found:
        return []
    connection.execute(
        table.update()
        .where(table.c.id.in_(found))
        .values(state="claimed", claimed_by=worker, claimed_at=now, tries=table.c.tries + 1)
    )
    return read(connection, found)


def read(connection: Connection, window_ids: Collection[int]) -> list[Window]:
    """Read windows by id, the earliest first."""
    query = (
        sa.select(*COLUMNS)
        .where(telemetry_windows.c.id.in_(window_ids))
        .order_by(telemetry_windows.c.start_at, telemetry_windows.c.gpu_uuid)
    )
    return [from_row(row) for row in connection.execute(query)]


def renew(
    connection: Connection, window_ids: Collection[int], worker: str, now: datetime
) -> set[int]:
    """Hold on to claimed windows from now on; give those that are still this worker's."""
    mine = telemetry_windows.c.id.in_(window_ids), telemetry_windows.c.claimed_by == worker
    connection.execute(telemetry_windows.update().where(*mine).values(claimed_at=now))
    return set(connection.execute(sa.select(telemetry_windows.c.id).where(*mine)).scalars())


def release(connection: Connection, worker: str) -> None:
    """Give back what a worker that stops did not get to, for the next one to take at once."""
    connection.execute(
        telemetry_windows.update()
        .where(telemetry_windows.c.state == "claimed", telemetry_windows.c.claimed_by == worker)
        .values(state="queued", claimed_by=None, claimed_at=None)
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


def ask_again(connection: Connection, window_ids: Collection[int], now: datetime) -> int:
    """Queue windows once more that came to nothing; give how many."""
    done = connection.execute(
        telemetry_windows.update()
        .where(
            telemetry_windows.c.id.in_(window_ids),
            telemetry_windows.c.state.in_(ENDED_EMPTY),
        )
        .values(state="queued", next_at=now, asked_at=now, tries=0)
    )
    telemetry_unread.open_again(connection, window_ids)
    return done.rowcount


def ask_again_in(connection: Connection, clusters: Collection[str], now: datetime) -> int:
    """Queue the windows of clusters that had no source when they were asked for; give how many."""
    query = sa.select(telemetry_windows.c.id).where(
        telemetry_windows.c.cluster.in_(clusters), telemetry_windows.c.state == "no_source"
    )
    found = sorted(connection.execute(query).scalars())
    return sum(ask_again(connection, some, now) for some in chunks(found))


def of_alarm(connection: Connection, alarm_id: int) -> list[tuple[int, str, Window]]:
    """List what an alarm asks for: the suspect's id, the role, and the window."""
    query = (
        sa.select(telemetry_wants.c.gpu_id, telemetry_wants.c.role, *COLUMNS)
        .join(telemetry_windows, telemetry_windows.c.id == telemetry_wants.c.window_id)
        .where(telemetry_wants.c.alarm_id == alarm_id)
        .order_by(telemetry_wants.c.gpu_id, telemetry_windows.c.gpu_uuid)
    )
    return [(row[0], row[1], from_row(row[2:])) for row in connection.execute(query)]


def of_gpu(
    connection: Connection, gpu_id: int, start: datetime, end: datetime, limit: int
) -> list[Window]:
    """List the windows of a GPU that touch a time, the newest first."""
    table = telemetry_windows
    query = (
        sa.select(*COLUMNS)
        .where(table.c.gpu_id == gpu_id, table.c.start_at <= end, table.c.end_at >= start)
        .order_by(table.c.start_at.desc(), table.c.id)
        .limit(limit)
    )
    return [from_row(row) for row in connection.execute(query)]


def waiting(connection: Connection) -> dict[str, int]:
    """Count windows that are not settled, by state."""
    query = (
        sa.select(telemetry_windows.c.state, sa.func.count())
        .where(telemetry_windows.c.state.in_(OPEN))
        .group_by(telemetry_windows.c.state)
    )
    return {str(state): int(count) for state, count in connection.execute(query)}
