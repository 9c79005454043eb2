"""Has the telemetry that a page shows changed since, and is something still to come?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.store import node_evidence, telemetry_asked, telemetry_kept, telemetry_queue
from app.store.connection import Connection
from app.store.node_evidence import Evidence
from app.store.telemetry_kept import Kept
from app.store.telemetry_queue import OPEN, Window


@dataclass(frozen=True, slots=True)
class Stamp:
    """`text` changes with anything that is shown; `waits` tells whether a change is expected."""

    text: str
    waits: bool


def of_alarm(connection: Connection, alarm_id: int) -> Stamp:
    """Stamp what is kept of an alarm: windows, readings, what was asked of machines."""
    windows = [one for _, _, one in telemetry_queue.of_alarm(connection, alarm_id)]
    kept = telemetry_kept.readings_of_alarms(connection, [alarm_id], ())
    found = stamp(windows, kept, node_evidence.of_alarm(connection, alarm_id))
    # Nothing asks for windows before the alarm was planned, nor reads them before all had a turn.
    state = telemetry_asked.ask_state(connection, alarm_id)
    unread = state == "wanted" or (state == "waiting" and not kept)
    return Stamp(found.text, found.waits or unread)


def stamp(
    windows: Iterable[Window], readings: Iterable[Kept], asked: Sequence[Evidence] = ()
) -> Stamp:
    """Stamp what a page shows; a window that was pulled and waits for its end is not waited for."""
    states = sorted({(one.id, one.state, str(one.pulled_at), str(one.said)) for one in windows})
    waits = any(state in OPEN and pulled == "None" for _, state, pulled, _ in states)
    waits = waits or any(one.state in node_evidence.OPEN for one in asked)
    read = sorted((one.alarm_id, one.gpu_id, str(one.made_at), one.whole) for one in readings)
    looked = [(one.id, one.state, str(one.read_at)) for one in asked]
    text = hashlib.sha256(repr((states, read, looked)).encode()).hexdigest()[:16]
    return Stamp(text, waits)
