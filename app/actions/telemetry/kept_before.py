"""What of a window's kept samples does its source not give any more?

A window is pulled twice. Between the two a store can go away that held part of it, or a server
start again with an empty memory: what came the second time must not push out what came the first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from app.actions.telemetry.asking import Found
from app.store import telemetry_kept
from app.store.connection import Connection
from app.store.telemetry_kept import unpack
from app.store.telemetry_queue import Window
from witness.rules.blocks import BlockError
from witness.rules.merging import merged
from witness.rules.samples import Series

log = logging.getLogger(__name__)


def add_kept(connection: Connection, found: Found, windows: Sequence[Window]) -> None:
    """Put kept samples where the answer has holes in their place; `found.less` names such GPUs."""
    again = {
        one.id: one.gpu_uuid for one in windows if one.samples and one.gpu_uuid in found.series
    }
    if not again:
        return
    for window_id, packed in telemetry_kept.read_packed(connection, again).items():
        uuid = again[window_id]
        try:
            kept = [unpack(one, uuid) for one in packed]
        except BlockError as error:
            log.warning("what was kept of %s cannot be read, and goes: %s", uuid, error)
            continue
        about = found.about.get(uuid)
        both = _both(kept, found.series[uuid], about.interval_s if about else None)
        if both != found.series[uuid]:
            found.series[uuid] = both
            found.less.add(uuid)


def _both(kept: Sequence[Series], new: Sequence[Series], interval: float | None) -> list[Series]:
    before = {(one.field_id, one.part): one for one in kept}
    both = [_filled(before.pop((one.field_id, one.part), None), one, interval) for one in new]
    return [*both, *before.values()]


def _filled(kept: Series | None, new: Series, interval: float | None) -> Series:
    """Fill the holes of a series; the usual case is that there are none."""
    if kept is None or set(kept.times) <= set(new.times):
        return new
    members = [[*zip(one.times, one.values, strict=True)] for one in (kept, new)]
    members.sort(key=lambda one: one[0][0] if one else 0.0)
    times, values, _ = merged(members, interval)
    return replace(new, times=tuple(times), values=tuple(values))
