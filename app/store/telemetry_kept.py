"""Which samples and readings are kept, and how are they written and found?"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.columns import micros
from app.store.intake.upsert import insert, merge
from app.store.tables import telemetry_blocks, telemetry_readings
from witness.rules.blocks import decode, encode
from witness.rules.observations import Reading
from witness.rules.samples import Part, Seen, Series

STATUSES = ("risen", "nothing_found", "refused", "not_collected")
"""In the order in which they count where there are several."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One reading as kept; `reading` is its JSON as an object."""

    alarm_id: int
    gpu_id: int
    status: str
    headline: str
    reading: Mapping[str, Any]
    whole: bool
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Packed:
    """One series as kept: compressed, with the number of its samples."""

    field_id: int
    part: str
    codec: str
    data: bytes
    sha256: str
    count: int
    about: str


def pack(series: Iterable[Series]) -> list[dict[str, Any]]:
    """Compress series for `write_blocks`; no database is touched, so the writer need not wait."""
    rows = []
    for one in series:
        block = encode(one.times, one.values)
        about = {"seen": asdict(one.seen), "joined": one.joined, "left_out": one.left_out}
        rows.append(
            {
                "field_id": one.field_id,
                "part": json.dumps(one.part, separators=(",", ":")),
                "codec": block.codec,
                "data": block.data,
                "sha256": block.sha256,
                "count": block.samples,
                "about": json.dumps(about, separators=(",", ":")),
            }
        )
    return rows


def write_blocks(
    connection: Connection, window_id: int, packed: Sequence[Mapping[str, Any]]
) -> None:
    """Keep the samples of a window instead of those it had."""
    table = telemetry_blocks
    connection.execute(table.delete().where(table.c.window_id == window_id))
    insert(connection, table, [{"window_id": window_id, **row} for row in packed])


def read_series(
    connection: Connection, windows: Mapping[int, str], fields: Collection[int] | None = None
) -> list[Series]:
    """Read series of windows; `windows` gives the UUID of each, `fields` None all fields.

    Raises `BlockError` for a block that is damaged.
    """
    packed = read_packed(connection, windows, fields)
    return [unpack(one, windows[window]) for window in sorted(packed) for one in packed[window]]


def read_packed(
    connection: Connection, window_ids: Collection[int], fields: Collection[int] | None = None
) -> dict[int, list[Packed]]:
    """Read what is kept of windows without decoding it; `fields` None: all fields."""
    table = telemetry_blocks
    query = sa.select(
        table.c.window_id, table.c.field_id, table.c.part, table.c.codec, table.c.data,
        table.c.sha256, table.c.count, table.c.about,
    ).where(table.c.window_id.in_(window_ids))  # fmt: skip
    if fields is not None:
        query = query.where(table.c.field_id.in_(fields))
    found: dict[int, list[Packed]] = {}
    for row in connection.execute(
        query.order_by(table.c.window_id, table.c.field_id, table.c.part)
    ):
        found.setdefault(row[0], []).append(Packed(*row[1:]))
    return found


def unpack(packed: Packed, gpu_uuid: str) -> Series:
    """Decode one series; raises `BlockError` where it is damaged."""
    times, values = decode(packed.codec, packed.data, packed.sha256)
    about = json.loads(packed.about)
    part: Part = tuple((str(key), str(value)) for key, value in json.loads(packed.part))
    seen = Seen(**{key: tuple(value) for key, value in about["seen"].items()})
    return Series(
        gpu_uuid, packed.field_id, part, times, values, seen, about["joined"], about["left_out"]
    )


def sizes(connection: Connection, window_ids: Collection[int]) -> tuple[int, int]:
    """Count the samples and bytes that are kept of windows."""
    table = telemetry_blocks
    row = connection.execute(
        sa.select(
            sa.func.coalesce(sa.func.sum(table.c.count), 0),
            sa.func.coalesce(sa.func.sum(sa.func.length(table.c.data)), 0),
        ).where(table.c.window_id.in_(window_ids))
    ).one()
    return int(row[0]), int(row[1])


def write_reading(
    connection: Connection, alarm_id: int, gpu_id: int, reading: Reading, *, whole: bool,
    now: datetime,
) -> None:  # fmt: skip
    """Keep what was read of one suspect for one alarm, instead of an earlier reading."""
    row = {
        "alarm_id": alarm_id,
        "gpu_id": gpu_id,
        "status": reading.status,
        "headline": reading.headline,
        "reading": json.dumps(asdict(reading), separators=(",", ":"), default=sorted),
        "whole": whole,
        "made_at": micros(now),
    }
    changed = ("status", "headline", "reading", "whole", "made_at")
    merge(connection, telemetry_readings, [row], dict.fromkeys(changed, "set"))


def keep_readings_of(connection: Connection, alarm_id: int, gpu_ids: Collection[int]) -> None:
    """Delete what was read for an alarm of other GPUs than these: they are not in doubt."""
    table = telemetry_readings
    gone = table.c.alarm_id == alarm_id, table.c.gpu_id.not_in(gpu_ids)
    connection.execute(table.delete().where(*gone))


def gpus_read(connection: Connection, alarm_id: int) -> set[int]:
    """Give the GPUs of which something was read for an alarm."""
    table = telemetry_readings
    query = sa.select(table.c.gpu_id).where(table.c.alarm_id == alarm_id)
    return set(connection.execute(query).scalars())


def readings_of_alarms(
    connection: Connection, alarm_ids: Collection[int], in_full: Collection[int] | None = None
) -> list[Kept]:
    """Read what was read for alarms, by alarm and GPU.

    `in_full` names the GPUs whose whole reading is wanted, None all; of the others only the status
    and the headline are read, and `reading` is empty: one is 20 kB, and an alarm can have 128.
    """
    table = telemetry_readings
    text: sa.ColumnElement[str] = table.c.reading
    if in_full is not None:
        text = sa.case((table.c.gpu_id.in_(in_full), text), else_="{}").label("reading")
    query = (
        sa.select(
            table.c.alarm_id, table.c.gpu_id, table.c.status, table.c.headline, text,
            table.c.whole, table.c.made_at,
        )
        .where(table.c.alarm_id.in_(alarm_ids))
        .order_by(table.c.alarm_id, table.c.gpu_id)
    )  # fmt: skip
    return [_kept(row) for row in connection.execute(query)]


def readings_of_gpu(connection: Connection, gpu_id: int, limit: int) -> list[Kept]:
    """Read what was read of a GPU, the newest first."""
    table = telemetry_readings
    query = (
        sa.select(table).where(table.c.gpu_id == gpu_id)
        .order_by(table.c.made_at.desc(), table.c.alarm_id).limit(limit)
    )  # fmt: skip
    return [_kept(row) for row in connection.execute(query)]


def of_cases(
    connection: Connection, cases: Iterable[tuple[int, int | None, int]]
) -> dict[int, str]:
    """Give what the telemetry of cases says; each as its id, its GPU (or None), its newest alarm.

    What counts first among all readings of a GPU: no later reading takes a rise back. A case
    without a GPU goes by its newest alarm. Cases without any reading are left out.
    """
    table, listed = telemetry_readings, list(cases)
    of_gpus = table.c.gpu_id.in_({gpu for _, gpu, _ in listed if gpu is not None})
    of_alarms = table.c.alarm_id.in_({alarm for _, gpu, alarm in listed if gpu is None})
    by_gpu = _statuses(connection, table.c.gpu_id, of_gpus)
    by_alarm = _statuses(connection, table.c.alarm_id, of_alarms)
    found = {}
    for case_id, gpu, alarm in listed:
        known = by_alarm.get(alarm, set()) if gpu is None else by_gpu.get(gpu, set())
        if known:
            found[case_id] = min(known, key=STATUSES.index)
    return found


def _statuses(
    connection: Connection, owner: sa.Column[Any], wanted: sa.ColumnElement[bool]
) -> dict[int, set[str]]:
    """Collect the statuses of each owner, each once: a GPU may have thousands of readings."""
    found: dict[int, set[str]] = {}
    query = sa.select(owner, telemetry_readings.c.status).where(wanted).distinct()
    for one, status in connection.execute(query):
        found.setdefault(one, set()).add(status)
    return found


def _kept(row: Any) -> Kept:
    return Kept(
        row.alarm_id, row.gpu_id, row.status, row.headline, json.loads(row.reading), row.whole,
        row.made_at,
    )  # fmt: skip
