"""What does the telemetry of one GPU around one alarm say, without working out the whole alarm?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.actions.telemetry.planning import window_at
from app.actions.telemetry.shown import Telemetry, show
from app.store import alarm_reading, attempt_reading, telemetry_kept, telemetry_queue
from app.store.alarm_reading import AlarmFacts
from app.store.attempt_reading import Beat
from app.store.connection import Connection
from app.store.device_reading import Gpu
from app.store.telemetry_kept import Kept
from app.store.telemetry_queue import ENDED_EMPTY, OPEN


@dataclass(frozen=True, slots=True)
class OfGpu:
    """One alarm and what is kept of one GPU around it."""

    facts: AlarmFacts
    telemetry: Telemetry


def read_of_gpu(connection: Connection, alarm_id: int, gpu: Gpu) -> OfGpu | None:
    """Read the samples and the reading of a GPU; None where there is no such alarm.

    Those that it is compared with are the GPUs whose windows the alarm asked for beside it.
    """
    facts = alarm_reading.read_alarm(connection, alarm_id)
    if facts is None:
        return None
    beats: tuple[Beat, ...] = ()
    if facts.attempt_id is not None:
        beats = attempt_reading.read_beats(connection, facts.attempt_id, facts.step)
    asked = [one for one in telemetry_queue.of_alarm(connection, alarm_id) if one[0] == gpu.id]
    readings = telemetry_kept.readings_of_alarms(connection, [alarm_id], [gpu.id])
    shown = show(connection, gpu.uuid, asked, {one.gpu_id: one for one in readings}, drawn=True)
    windows = {one.id: one for _, _, one in asked}
    samples, size = telemetry_kept.sizes(connection, list(windows))
    telemetry = Telemetry(
        window_at(facts, beats),
        (shown,),
        0,
        sum(one.state in OPEN and not one.pulled_at for one in windows.values()),
        sum(one.state in ENDED_EMPTY for one in windows.values()),
        samples,
        size,
        facts.example,
    )
    return OfGpu(facts, telemetry)


def readings_in(
    connection: Connection, alarm_ids: Collection[int], gpu_id: int | None
) -> dict[int, tuple[Kept, ...]]:
    """Give status and headline of each alarm's readings, of one GPU or all, what counts first."""
    found: dict[int, list[Kept]] = {}
    for one in telemetry_kept.readings_of_alarms(connection, alarm_ids, ()):
        if gpu_id in (None, one.gpu_id):
            found.setdefault(one.alarm_id, []).append(one)
    order = telemetry_kept.STATUSES.index
    return {
        alarm_id: tuple(sorted(listed, key=lambda one: order(one.status)))
        for alarm_id, listed in found.items()
    }
