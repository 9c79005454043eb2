"""How are kept windows written out with their samples, however many there are?

One window is held at a time, each read in a transaction of its own: an export of a year takes no
more memory than one of an hour, and keeps nobody from writing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from app.csv_table import cell
from app.store import ids
from app.store.columns import micros, moment
from app.store.store import Store
from app.store.telemetry_export import Chosen, Key, whole_window, windows_after
from app.store.telemetry_kept import Packed, unpack
from app.store.telemetry_queue import Window
from app.strict_json import dumps, rfc3339
from witness.rules.blocks import BlockError
from witness.rules.dcgm_fields import BY_ID
from witness.rules.samples import Series

AT_ONCE = 100
"""Windows whose rows are listed at once; their samples are read one window at a time."""
FORMS = ("ndjson", "csv")
COLUMNS = (
    "time", "cluster", "gpu_uuid", "field", "field_id", "part", "unit", "value", "source",
    "window", "sha256",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Whole:
    """One window with its series; `damaged` are sentences about those that cannot be decoded."""

    window: Window
    series: tuple[tuple[Packed, Series], ...]
    damaged: tuple[str, ...]


def first_key(store: Store, chosen: Chosen, after: Key | None) -> Key | None:
    """Find where an export begins, None where it is empty; raises while the database is away."""
    with store.reading() as connection:
        found = windows_after(connection, chosen, after, 1)
    return _key(found[0]) if found else None


def write_out(store: Store, chosen: Chosen, form: str, after: Key | None = None) -> Iterator[str]:
    """Give the lines of an export, in `form` ndjson or csv, a piece a series.

    A window that is pulled again meanwhile is written as it was at one moment. NDJSON ends with a
    line that counts what there was: without it the export is not whole, and `after` takes the
    cursor of the last window that is.
    """
    windows = _windows(store, chosen, after)
    return _ndjson(windows) if form == "ndjson" else _csv(windows)


def _windows(store: Store, chosen: Chosen, after: Key | None) -> Iterator[Whole]:
    while True:
        with store.reading() as connection:
            listed = windows_after(connection, chosen, after, AT_ONCE)
        for one in listed:
            with store.reading() as connection:
                found = whole_window(connection, one.id)
            if found is not None:
                yield _whole(*found)
        if len(listed) < AT_ONCE:
            return
        after = _key(listed[-1])


def _whole(window: Window, packed: Iterable[Packed]) -> Whole:
    series, damaged = [], []
    for one in packed:
        try:
            series.append((one, unpack(one, window.gpu_uuid)))
        except BlockError as error:
            damaged.append(f"Field {one.field_id} {one.part} cannot be read: {error}.")
    return Whole(window, tuple(series), tuple(damaged))


def _ndjson(windows: Iterable[Whole]) -> Iterator[str]:
    told = {"windows": 0, "series": 0, "samples": 0, "damaged": 0}
    for one in windows:
        yield dumps(_about(one)) + "\n"
        for packed, series in one.series:
            yield dumps({"kind": "series", **_series(one.window, packed, series)}) + "\n"
            told["samples"] += len(series.times)
        told["windows"] += 1
        told["series"] += len(one.series)
        told["damaged"] += len(one.damaged)
    yield dumps({"kind": "end", **told}) + "\n"


def _about(one: Whole) -> dict[str, Any]:
    window = one.window
    return {
        "kind": "window",
        "window": ids.show(window.id),
        "cursor": write_cursor(_key(window)),
        "cluster": window.cluster,
        "gpu_uuid": window.gpu_uuid,
        "from": window.start,
        "to": window.end,
        "state": window.state,
        "pulled_at": window.pulled_at,
        "whole": window.whole,
        "partial": window.partial,
        "source": window.source,
        "level": window.level,
        "interval_s": window.interval_s,
        "warnings": list(window.warnings),
        "samples_deleted_at": window.purged_at,
        "series": len(one.series),
        "damaged": list(one.damaged),
    }


def _series(window: Window, packed: Packed, series: Series) -> dict[str, Any]:
    field = BY_ID.get(series.field_id)
    return {
        "window": ids.show(window.id),
        "gpu_uuid": series.gpu_uuid,
        "field": field.names[0] if field else None,
        "field_id": series.field_id,
        "unit": field.unit if field else None,
        "part": dict(series.part),
        "named": list(series.seen.metrics),
        "hosts": list(series.seen.hosts),
        "joined": series.joined,
        "left_out": series.left_out,
        "sha256": packed.sha256,
        "times": list(series.times),
        "values": list(series.values),
    }


def _csv(windows: Iterable[Whole]) -> Iterator[str]:
    yield _row(COLUMNS) + "\r\n"
    for one in windows:
        moments: dict[float, str] = {}  # the fields of a window share their times
        for packed, series in one.series:
            yield "".join(_samples(one.window, packed, series, moments))


def _samples(
    window: Window, packed: Packed, series: Series, moments: dict[float, str]
) -> Iterator[str]:
    """Write a line a sample; what all lines of a series share is written once."""
    field = BY_ID.get(series.field_id)
    before = _row(
        map(cell, (
            window.cluster, series.gpu_uuid, field.names[0] if field else None, series.field_id,
            dict(series.part) or None, field.unit if field else None,
        ))
    )  # fmt: skip
    behind = _row(map(cell, (window.source, ids.show(window.id), packed.sha256)))
    for time, value in zip(series.times, series.values, strict=True):
        at = moments.get(time)
        if at is None:
            at = moments[time] = rfc3339(datetime.fromtimestamp(time, UTC))
        yield f"{at},{before},{value if isfinite(value) else cell(value)},{behind}\r\n"


def _row(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()


def in_pieces(lines: Iterable[str], size: int = 1 << 16) -> Iterator[bytes]:
    """Join lines into pieces of about `size` bytes, so that each is worth being sent."""
    held: list[bytes] = []
    length = 0
    for one in lines:
        held.append(one.encode("utf-8", "replace"))
        length += len(held[-1])
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    yield b"".join(held)


def _key(window: Window) -> Key:
    return micros(window.start), window.id


def write_cursor(key: Key) -> str:
    """Write where an export may go on: behind this window."""
    return f"{key[0]}-{ids.show(key[1])}"


def read_cursor(text: str) -> Key:
    """Read a cursor of a line back; ValueError for anything else."""
    at, _, window = text.partition("-")
    if not (at.isascii() and at.isdigit() and len(at) < 18):
        raise ValueError("a cursor is that of a window's line")
    moment(int(at))
    return int(at), ids.read(window)
