"""What does the page of a case say and draw of telemetry?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions.telemetry.node_log import read_node_log
from app.actions.telemetry.of_gpu import OfGpu, read_of_gpu, readings_in
from app.actions.telemetry.planning import window_at
from app.actions.telemetry.shown import EXAMPLE, NO_GPU, NOT_PULLED
from app.store import alarm_reading, telemetry_queue
from app.store.case_reading import CaseFinding
from app.store.connection import Connection
from app.store.device_reading import Gpu, gpu_by_id
from app.store.docket_reading import DocketCase
from app.store.telemetry_kept import Kept
from app.web.telemetry import log_rows
from app.web.telemetry.around import Suspected, suspects
from app.web.telemetry.grafana import Entries
from app.web.telemetry.log_rows import LogRows
from app.web.telemetry.stamps import Stamp, of_alarm
from app.web.telemetry.statuses import WORDS

DRAWN = 6
"""Fields drawn here; the alarm's own page draws twice as many."""


@dataclass(frozen=True, slots=True)
class AlarmLine:
    """What was read for one alarm of the case, the status that counts first of its GPUs.

    `gpus` counts those that were read: more than one where the case is not about a GPU.
    """

    alarm_id: int
    at: datetime
    step: int
    status: str
    word: str
    says: str
    whole: bool
    gpus: int


@dataclass(frozen=True, slots=True)
class OnCase:
    """The section; `suspect` None: the case is not about one GPU, or its alarm is not known."""

    lines: tuple[AlarmLine, ...]
    more: int
    newest_id: int
    drawn: Suspected | None
    waiting: int
    failed: int
    log: LogRows
    stamp: Stamp


def read_on_case(
    connection: Connection, case: DocketCase, findings: Sequence[CaseFinding], entries: Entries
) -> OnCase | None:
    """Read what the page shows; None while no alarm of the case is known."""
    alarms = {one.alarm_id: one for one in findings}
    if not alarms:
        return None
    newest_id = next(iter(alarms))
    gpu = None if case.gpu_id is None else gpu_by_id(connection, case.gpu_id)
    found = None if gpu is None else read_of_gpu(connection, newest_id, gpu)
    kept = readings_in(connection, list(alarms), case.gpu_id)
    nothing = _nothing(case, gpu)
    lines = [_line(one, kept.get(one.alarm_id, ()), nothing) for one in alarms.values()]
    return OnCase(
        tuple(lines),
        max(case.alarms - len(lines), 0),
        newest_id,
        _drawn(connection, found, entries) if found else None,
        found.telemetry.waiting if found else 0,
        found.telemetry.failed if found else 0,
        _log(connection, newest_id, found),
        of_alarm(connection, newest_id),
    )


def _nothing(case: DocketCase, gpu: Gpu | None) -> str:
    """Say why an alarm has no reading."""
    if case.example:
        return EXAMPLE
    return NO_GPU if gpu is not None and gpu.form != "full" else NOT_PULLED


def _line(alarm: CaseFinding, kept: Sequence[Kept], nothing: str) -> AlarmLine:
    first = kept[0] if kept else None
    status = first.status if first else "not_collected"
    return AlarmLine(
        alarm.alarm_id,
        alarm.occurred_at,
        alarm.step,
        status,
        WORDS[status],
        first.headline if first else nothing,
        all(one.whole for one in kept),
        len(kept),
    )


def _drawn(connection: Connection, found: OfGpu, entries: Entries) -> Suspected:
    (one,) = suspects(connection, found.telemetry, found.facts, entries)
    return one.with_fields(DRAWN)


def _log(connection: Connection, alarm_id: int, found: OfGpu | None) -> LogRows:
    """Lay out the log of the newest alarm's machines."""
    log = read_node_log(connection, alarm_id)
    if found is not None:
        meant = {one.uuid for one in found.telemetry.suspects}
        return log_rows.of_alarm(log, meant, found.telemetry.times.suspect_from)
    asked = telemetry_queue.of_alarm(connection, alarm_id)
    meant = {one.gpu_uuid for _, role, one in asked if role == "suspect"}
    facts = alarm_reading.read_alarm(connection, alarm_id)
    since = None if facts is None else window_at(facts, ()).suspect_from
    return log_rows.of_alarm(log, meant, since)
