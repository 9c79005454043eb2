"""What is kept of one GPU over one time, put together from all windows that touch it?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from app.actions.telemetry.on_demand import WINDOWS, Range
from app.actions.telemetry.shown import PANELS, Curve, Panel
from app.store import telemetry_asked, telemetry_kept
from app.store.connection import Connection
from app.store.device_reading import Gpu
from app.store.telemetry_queue import Window
from witness.rules.blocks import BlockError
from witness.rules.dcgm_fields import BY_ID
from witness.rules.samples import Part, Series

OWN_WINDOWS = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """A GPU's own windows and series; `damaged` says what of them cannot be read."""

    windows: tuple[Window, ...]
    series: tuple[Series, ...]
    damaged: str | None


@dataclass(frozen=True, slots=True)
class Ranged:
    """A GPU over a time beside others; `windows` are all of them, its own first."""

    windows: tuple[Window, ...]
    own: Kept
    panels: tuple[Panel, ...]
    panels_in_all: int


def read_own(
    connection: Connection, gpu: Gpu, span: Range, cluster: str | None = None,
    fields: Collection[int] | None = None,
) -> Kept:  # fmt: skip
    """Read a GPU's own samples of a time; `cluster` limits it to what was pulled for that one."""
    found = telemetry_asked.beside(connection, gpu.id, span.start, span.end, WINDOWS)
    mine = [one for one in found if one.gpu_id == gpu.id and cluster in (None, one.cluster)]
    return _own(connection, mine[:OWN_WINDOWS], span, fields)


def read_ranged(connection: Connection, gpu: Gpu, span: Range) -> Ranged:
    """Read what a page draws: the GPU's fields, and the same of the GPUs pulled beside it."""
    found = telemetry_asked.beside(connection, gpu.id, span.start, span.end, WINDOWS)
    own = _own(connection, [one for one in found if one.gpu_id == gpu.id], span, None)
    keys = sorted({(one.field_id, one.part) for one in own.series}, key=_weight)
    drawn = keys[:PANELS]
    others = [one for one in found if one.gpu_id != gpu.id]
    fields = {field_id for field_id, _ in drawn}
    beside = _series(connection, others, span, fields)[0] if fields else []
    panels = tuple(_panel(key, own.series, beside) for key in drawn)
    return Ranged(tuple(found), own, panels, len(keys))


def _own(
    connection: Connection, windows: Sequence[Window], span: Range, fields: Collection[int] | None
) -> Kept:
    series, damaged = _series(connection, windows, span, fields)
    return Kept(tuple(windows), tuple(series), damaged)


def _weight(key: tuple[int, Part]) -> tuple[bool, int, Part]:
    return (not BY_ID[key[0]].is_evidence, *key)


def _panel(key: tuple[int, Part], own: Iterable[Series], beside: Iterable[Series]) -> Panel:
    curves = [
        Curve(one, role)
        for role, listed in (("node", beside), ("suspect", own))
        for one in listed
        if (one.field_id, one.part) == key
    ]
    return Panel(BY_ID[key[0]], key[1], tuple(curves), risen=False)


def _series(
    connection: Connection, windows: Sequence[Window], span: Range, fields: Collection[int] | None
) -> tuple[list[Series], str | None]:
    uuids = {one.id: one.gpu_uuid for one in _needed(windows) if one.pulled_at is not None}
    try:
        found = telemetry_kept.read_series(connection, uuids, fields)
    except BlockError as error:
        return [], f"What was kept cannot be read: {error}."
    by_key: dict[tuple[str, int, Part], list[Series]] = {}
    for one in found:
        by_key.setdefault((one.gpu_uuid, one.field_id, one.part), []).append(one)
    first, last = span.start.timestamp(), span.end.timestamp()
    joined = (_together(parts, first, last) for parts in by_key.values())
    return [one for one in joined if one.times], None


def _needed(windows: Iterable[Window]) -> list[Window]:
    """Leave out windows that lie in a longer one of the same GPU that was pulled whole."""
    kept: list[Window] = []
    for one in sorted(windows, key=lambda window: window.start - window.end):
        inside = (
            other.gpu_id == one.gpu_id
            and other.cluster == one.cluster
            and other.start <= one.start
            and one.end <= other.end
            and other.whole
            and other.samples
            and not other.partial
            and other.purged_at is None
            for other in kept
        )
        if not any(inside):
            kept.append(one)
    return kept


def _together(parts: Sequence[Series], first: float, last: float) -> Series:
    """Put the samples of several windows together; of one time the first counts."""
    if (
        len(parts) == 1
        and parts[0].times
        and first <= parts[0].times[0] <= parts[0].times[-1] <= last
    ):
        return parts[0]
    samples: dict[float, float] = {}
    for one in parts:
        for time, value in zip(one.times, one.values, strict=True):
            if first <= time <= last:
                samples.setdefault(time, value)
    times = tuple(sorted(samples))
    values = tuple(samples[time] for time in times)
    left_out = max(one.left_out for one in parts)
    joined = max(one.joined for one in parts)
    return replace(parts[0], times=times, values=values, joined=joined, left_out=left_out)
