"""Which telemetry windows wait to be pulled, who takes them, and what became of them?

A window is one GPU over one time. However many alarms ask for it, it is one row and one pull.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
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
    purged_at: datetime | None = None


COLUMNS = (
    telemetry_windows.c.id, telemetry_windows.c.cluster, telemetry_windows.c.gpu_id,
    telemetry_windows.c.gpu_uuid, telemetry_windows.c.start_at, telemetry_windows.c.end_at,
    telemetry_windows.c.state, telemetry_windows.c.asked_at, telemetry_windows.c.tries,
    telemetry_windows.c.pulled_at, telemetry_windows.c.whole, telemetry_windows.c.source,
    telemetry_windows.c.level, telemetry_windows.c.interval_s, telemetry_windows.c.queries,
    telemetry_windows.c.samples, telemetry_windows.c.partial, telemetry_windows.c.warnings,
    telemetry_windows.c.said, telemetry_windows.c.purged_at,
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


class StalePlanError(Exception):
    """The alarm was wanted anew while its plan was written: what was planned is not kept."""


def plan(
    connection: Connection, alarm_id: int, wants: Sequence[Want], left_out: int, *,
    wanted_at: datetime, now: datetime, clusters: Collection[str] = (),
) -> None:  # fmt: skip
    """Queue the windows of an alarm that are not there yet, and note who asks for them.

    What an earlier plan of the alarm asked for and this one does not is not asked for any more.
    `clusters` are those with a source. An alarm that was wanted anew after `wanted_at` stays
    wanted, and nothing is written: its places changed meanwhile.
    """
    if not _is_current(connection, alarm_id, wanted_at):
        return
    again = queue(connection, alarm_id, wants, now, clusters)
    forget_others(connection, alarm_id, wants)
    # After windows and wants, and all of them at once: see `telemetry_unread.hold`.
    telemetry_unread.hold(connection, again, alarm_id)
    if not _is_current(connection, alarm_id, wanted_at):
        raise StalePlanError(ids.show(alarm_id))
    telemetry_unread.open_again(connection, again)
    connection.execute(
        telemetry_asks.update()
        .where(telemetry_asks.c.alarm_id == alarm_id)
        .values(state="waiting", planned_at=now, left_out=left_out)
    )


def _is_current(connection: Connection, alarm_id: int, wanted_at: datetime) -> bool:
    query = sa.select(telemetry_asks.c.alarm_id).where(
        telemetry_asks.c.alarm_id == alarm_id,
        telemetry_asks.c.state == "wanted",
        telemetry_asks.c.wanted_at == wanted_at,
    )
    return connection.execute(query).first() is not None


def queue(
    connection: Connection, alarm_id: int, wants: Sequence[Want], now: datetime,
    clusters: Collection[str] = (),
) -> list[int]:  # fmt: skip
    """Queue windows for an alarm, or for a person where `alarm_id` is `A_PERSON`.

    Whoever asks for a window for the first time lets it begin anew if it had come to nothing, one
    without a source only where its cluster is one of `clusters`; a person also if its samples were
    deleted. Gives the ids of these; their alarms are to be opened with `telemetry_unread`.
    """
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
    known = set() if not windows else _asked_before(connection, alarm_id, windows)
    # In one order for all processes, so that two of them cannot wait for each other.
    insert_new(connection, telemetry_windows, [windows[one] for one in sorted(windows)])
    rows = [
        {"alarm_id": alarm_id, "gpu_id": suspect, "window_id": window, "role": role}
        for (suspect, window), role in _links(wants).items()
    ]
    merge(connection, telemetry_wants, rows, {"role": "set"})
    deleted = windows if alarm_id == A_PERSON else windows.keys() - known
    table = telemetry_windows
    empty = sa.or_(
        table.c.state.in_(("refused", "given_up")),
        sa.and_(table.c.state == "no_source", table.c.cluster.in_(clusters)),
    )
    return sorted(
        {
            *_begin_anew(connection, windows.keys() - known, empty, now),
            *_begin_anew(connection, deleted, _was_purged(), now, pulled_at=None),
        }
    )


def _links(wants: Iterable[Want]) -> dict[tuple[int, int], str]:
    """Give the roles by suspect and window; where one window has two, the first counts."""
    return {(ids.derive("gpu", one.suspect), one.window_id): one.role for one in reversed([*wants])}


def _asked_before(connection: Connection, alarm_id: int, window_ids: Collection[int]) -> set[int]:
    query = sa.select(telemetry_wants.c.window_id).where(
        telemetry_wants.c.alarm_id == alarm_id, telemetry_wants.c.window_id.in_(window_ids)
    )
    return set(connection.execute(query).scalars())


def forget_others(connection: Connection, alarm_id: int, wants: Sequence[Want]) -> None:
    """Note that an alarm asks for these windows only; those of former suspects stay kept."""
    table = telemetry_wants
    query = sa.select(table.c.gpu_id, table.c.window_id).where(table.c.alarm_id == alarm_id)
    known = {(int(row[0]), int(row[1])) for row in connection.execute(query)}
    gone = sorted(known - _links(wants).keys())
    if gone:
        connection.execute(
            table.delete().where(
                table.c.alarm_id == alarm_id,
                table.c.gpu_id == sa.bindparam("suspect"),
                table.c.window_id == sa.bindparam("window"),
            ),
            [{"suspect": suspect, "window": window} for suspect, window in gone],
        )


def _was_purged() -> sa.ColumnElement[bool]:
    return sa.and_(
        telemetry_windows.c.purged_at.is_not(None), telemetry_windows.c.state.not_in(OPEN)
    )


def _begin_anew(
    connection: Connection, window_ids: Collection[int], which: sa.ColumnElement[bool],
    now: datetime, **more: None,
) -> list[int]:  # fmt: skip
    """Queue windows once more, as if they had never been tried; give which."""
    table, begun = telemetry_windows, []
    for some in chunks(sorted(window_ids)):
        chosen = sa.select(table.c.id).where(table.c.id.in_(some), which).order_by(table.c.id)
        found = list(connection.execute(_held(connection, chosen)).scalars())
        if found:
            connection.execute(
                table.update()
                .where(table.c.id.in_(found))
                .values(state="queued", next_at=now, asked_at=now, tries=0, **more)
            )
        begun += found
    return begun


def _held(connection: Connection, query: sa.Select[tuple[Any]]) -> sa.Select[tuple[Any]]:
    """Lock the rows in the order of the query; SQLite has one writer and no such lock.

    A row that somebody else holds is being changed right now, and is left to him.
    """
    if connection.dialect.name == "sqlite":
        return query
    return query.with_for_update(skip_locked=True)


def read(connection: Connection, window_ids: Collection[int]) -> list[Window]:
    """Read windows by id, the earliest first."""
    query = (
        sa.select(*COLUMNS)
        .where(telemetry_windows.c.id.in_(window_ids))
        .order_by(telemetry_windows.c.start_at, telemetry_windows.c.gpu_uuid)
    )
    return [from_row(row) for row in connection.execute(query)]


def ask_again(connection: Connection, window_ids: Collection[int], now: datetime) -> int:
    """Queue windows once more that came to nothing; give how many."""
    empty = telemetry_windows.c.state.in_(ENDED_EMPTY)
    found = _begin_anew(connection, window_ids, empty, now)
    telemetry_unread.open_again(connection, found)
    return len(found)


def ask_again_in(connection: Connection, clusters: Collection[str], now: datetime) -> int:
    """Queue the windows of clusters that had no source when they were asked for; give how many."""
    query = sa.select(telemetry_windows.c.id).where(
        telemetry_windows.c.cluster.in_(clusters), telemetry_windows.c.state == "no_source"
    )
    return ask_again(connection, sorted(connection.execute(query).scalars()), now)


def of_alarm(connection: Connection, alarm_id: int) -> list[tuple[int, str, Window]]:
    """List what an alarm asks for: the suspect's id, the role, and the window."""
    query = (
        sa.select(telemetry_wants.c.gpu_id, telemetry_wants.c.role, *COLUMNS)
        .join(telemetry_windows, telemetry_windows.c.id == telemetry_wants.c.window_id)
        .where(telemetry_wants.c.alarm_id == alarm_id)
        .order_by(telemetry_wants.c.gpu_id, telemetry_windows.c.gpu_uuid)
    )
    return [(row[0], row[1], from_row(row[2:])) for row in connection.execute(query)]
