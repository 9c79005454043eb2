"""What moved on a GPU in each of its kept windows, and which windows were not looked at yet?

A row is written in the transaction that keeps the samples, and stays when retention deletes them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.intake.upsert import merge
from app.store.tables import telemetry_wants, telemetry_windows
from app.store.tables.telemetry import telemetry_moved
from app.store.telemetry_queue import A_PERSON, COLUMNS, Window, from_row
from witness.rules.moved import BoardCounter, Kept
from witness.rules.observations import Observation

_CHANGED = ("cluster", "start_at", "end_at", "looked_at", "moved", "board", "hardware")


def write_moved(connection: Connection, window: Window, kept: Kept | None) -> None:
    """Keep what moved in a window instead of what stood there; None: nothing was collected."""
    table = telemetry_moved
    if kept is None:
        mine = table.c.gpu_id == window.gpu_id, table.c.window_id == window.id
        connection.execute(table.delete().where(*mine))
        return
    row = {
        "gpu_id": window.gpu_id,
        "window_id": window.id,
        "cluster": window.cluster,
        "start_at": micros(window.start),
        "end_at": micros(window.end),
        "looked_at": _json(kept.looked_at),
        "moved": _json([_told(one) for one in kept.observations]),
        "board": _json([asdict(one) for one in kept.board]),
        "hardware": any(one.evidence == "hardware" for one in kept.observations),
    }
    merge(connection, table, [row], dict.fromkeys(_CHANGED, "set"))


def read_moved(
    connection: Connection, gpu_id: int, gpu_uuid: str, limit: int, *,
    cluster: str | None = None, since: datetime | None = None,
) -> list[Kept]:  # fmt: skip
    """Read what moved in a GPU's newest windows, `limit` of them, the newest first."""
    table = telemetry_moved
    query = sa.select(table).where(table.c.gpu_id == gpu_id)
    if cluster is not None:
        query = query.where(table.c.cluster == cluster)
    if since is not None:
        query = query.where(table.c.start_at >= since)
    query = query.order_by(table.c.start_at.desc(), table.c.window_id).limit(limit)
    return [_kept(row, gpu_uuid) for row in connection.execute(query)]


def not_looked_at(connection: Connection, after: int, until: datetime, limit: int) -> list[Window]:
    """List windows with samples of which nothing stands here, by id, from behind `after`.

    They were pulled before this was kept; `until` leaves out what is being pulled by now.
    """
    table = telemetry_windows
    stands = (
        sa.select(telemetry_moved.c.window_id)
        .where(
            telemetry_moved.c.gpu_id == table.c.gpu_id, telemetry_moved.c.window_id == table.c.id
        )
        .correlate(table)
        .exists()
    )
    query = (
        sa.select(*COLUMNS)
        .where(table.c.id > after, table.c.samples > 0, table.c.pulled_at < until)
        .where(table.c.purged_at.is_(None), ~stands)
        .order_by(table.c.id)
        .limit(limit)
    )
    return [from_row(row) for row in connection.execute(query)]


def write_if_still(connection: Connection, window: Window, kept: Kept) -> bool:
    """Keep what moved in a window unless it was pulled again, or emptied, since it was read."""
    table = telemetry_windows
    row = connection.execute(
        sa.select(table.c.pulled_at, table.c.purged_at).where(table.c.id == window.id)
    ).first()
    if row is None or row.pulled_at != window.pulled_at or row.purged_at is not None:
        return False
    write_moved(connection, window, kept)
    return True


def nodes_of(connection: Connection, window_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Name the node of windows by who asks: those with one name are known to share a node.

    A name is the first (alarm, suspect) for whose node the window was asked; windows that are
    only compared from other nodes have none.
    """
    table = telemetry_wants
    query = (
        sa.select(table.c.window_id, table.c.alarm_id, table.c.gpu_id)
        .where(table.c.window_id.in_(window_ids), table.c.role.in_(("suspect", "node", "asked")))
        .order_by(table.c.alarm_id != A_PERSON, table.c.alarm_id.desc(), table.c.gpu_id.desc())
    )
    return {row.window_id: (row.alarm_id, row.gpu_id) for row in connection.execute(query)}


def _told(one: Observation) -> dict[str, Any]:
    """Leave the sentence out: the reading of an alarm holds it, and months of them are much."""
    about = asdict(one)
    del about["text"], about["risen"], about["chance"]
    return about


def _kept(row: Any, gpu_uuid: str) -> Kept:
    return Kept(
        gpu_uuid,
        row.start_at.astimezone(UTC).timestamp(),
        row.end_at.astimezone(UTC).timestamp(),
        tuple(json.loads(row.looked_at)),
        tuple(_observation(one) for one in json.loads(row.moved)),
        tuple(BoardCounter(**{**one, "part": _part(one)}) for one in json.loads(row.board)),
    )


def _observation(told: Mapping[str, Any]) -> Observation:
    return Observation(**{**told, "part": _part(told), "risen": True, "text": ""})


def _part(told: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in told["part"])


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
