"""How does one round of pulling go: plan, take, ask, keep, read?

Work waits in the database. A crash at any point leaves a claim that runs out, and the window is
pulled again; what was kept is replaced, never added to.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

from app.actions.alarm_dossier import read_dossier
from app.actions.telemetry import reading
from app.actions.telemetry.planning import plan
from app.context import Context
from app.sources.ports import About, Away, MetricSource, Pulled, Question, Refused, SourceError
from app.store import telemetry_kept, telemetry_queue
from app.store.connection import Connection
from app.store.telemetry_queue import Window
from witness.rules.samples import RawSeries, Series, join

log = logging.getLogger(__name__)

PLANNED = 50  # alarms whose windows are worked out in one round
TAKEN = 64  # windows taken in one round
AT_ONCE = 16  # GPUs asked for in one question
LEASE = timedelta(minutes=15)  # longer than the slowest pull
STORED_AFTER = timedelta(minutes=2)  # a scrape of 30 s, an exporter of 30 s, a remote write
BACK_OFF = (30, 60, 120, 300, 600, 1800, 3600)  # seconds; then once an hour
GIVE_UP = timedelta(hours=24)


def plan_wanted(context: Context) -> int:
    """Work out the windows of alarms that want telemetry; give how many alarms there were."""
    now = context.now()
    with context.store.reading() as connection:
        alarm_ids = telemetry_queue.wanted(connection, PLANNED)
    for alarm_id in alarm_ids:
        with context.store.reading() as connection:
            dossier = read_dossier(connection, alarm_id, now)
        made = None if dossier is None else plan(dossier)
        wants, left_out = (made.wants, made.left_out) if made else ((), 0)

        def write(
            connection: Connection, alarm_id: int = alarm_id, wants: Any = wants,
            left_out: int = left_out,
        ) -> None:  # fmt: skip
            telemetry_queue.plan(connection, alarm_id, wants, left_out, now)

        context.store.write(write)
        # An alarm without a known GPU, or whose windows are all there, has nothing to wait for.
        reading.read_alarm(context, alarm_id)
    return len(alarm_ids)


def pull_due(context: Context, worker: str) -> int:
    """Pull windows that are due and read the alarms that ask for them; give how many windows."""
    now = context.now()
    taken = context.store.write(
        lambda connection: telemetry_queue.claim(connection, worker, now, LEASE, TAKEN)
    )
    taken.sort(key=_moment)
    for _, alike in groupby(taken, key=_moment):
        windows = list(alike)
        for first in range(0, len(windows), AT_ONCE):
            _pull(context, worker, windows[first : first + AT_ONCE])
    with context.store.reading() as connection:
        alarms = telemetry_queue.askers(connection, [one.id for one in taken]) if taken else []
    for alarm_id in alarms:
        reading.read_alarm(context, alarm_id)
    return len(taken)


_moment = attrgetter("cluster", "start", "end")


@dataclass(slots=True)
class _Found:
    """What the sources of a cluster gave for one question, by UUID."""

    series: dict[str, list[Series]]
    about: dict[str, About]
    pulled: list[Pulled]
    warnings: list[str]
    failure: SourceError | None = None


def _pull(context: Context, worker: str, windows: Sequence[Window]) -> None:
    """Ask for windows of one cluster and one time, and note what came."""
    sources = context.sources.get(windows[0].cluster, ())
    now = context.now()
    if not sources:
        _settle_all(context, worker, windows, {"state": "no_source", "said": reading.NO_SOURCE})
        return
    found = ask(sources, windows, now)
    if found.failure is not None and not found.pulled:
        for window in windows:
            _settle_all(context, worker, [window], _failed(window, found.failure, now))
        return
    packed = {one.id: telemetry_kept.pack(found.series.get(one.gpu_uuid, ())) for one in windows}

    def write(connection: Connection) -> None:
        for window in windows:
            values = _done(window, found, now)
            if telemetry_queue.settle(connection, window.id, worker, values):
                telemetry_kept.write_blocks(connection, window.id, packed[window.id])

    context.store.write(write)


def ask(sources: Sequence[MetricSource], windows: Sequence[Window], now: datetime) -> _Found:
    """Ask the sources in their order, each for the GPUs of which none before it knows anything."""
    found = _Found({}, {}, [], [])
    start, end = windows[0].start.timestamp(), min(windows[0].end, now).timestamp()
    left = [one.gpu_uuid for one in windows]
    for source in sources:
        if not left or end <= start:
            break
        about = source.about()
        try:
            pulled = source.pull(Question(tuple(left), start, end))
        except SourceError as error:
            found.failure = error
            found.warnings.append(f"{about.name}: {error}")
            continue
        found.pulled.append(pulled)
        found.warnings += pulled.warnings
        _take(found, about, pulled.series)
        left = [uuid for uuid in left if uuid not in found.series]
    return found


def _take(found: _Found, about: About, raw: Sequence[RawSeries]) -> None:
    joined = join(raw, about.interval_s)
    for series in joined.series:
        found.series.setdefault(series.gpu_uuid, []).append(series)
        found.about[series.gpu_uuid] = about
    # What the table of fields does not know is no fault: sources hold more than is evidence.
    found.warnings += [
        f"{one.series} series of {one.metric} were left out: {one.why}."
        for one in joined.not_joined
        if "UUID" in one.why
    ]


def _done(window: Window, found: _Found, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a window that was answered for."""
    whole = now >= window.end + STORED_AFTER
    about = found.about.get(window.gpu_uuid)
    values: dict[str, Any] = {
        "state": "done" if whole else "queued",
        "next_at": window.end + STORED_AFTER,
        "pulled_at": now,
        "whole": whole,
        "source": about.name if about else None,
        "level": about.level if about else None,
        "interval_s": about.interval_s if about else None,
        "queries": window.queries + sum(one.queries for one in found.pulled),
        "samples": sum(len(one.times) for one in found.series.get(window.gpu_uuid, ())),
        "partial": any(one.partial for one in found.pulled),
        "warnings": list(dict.fromkeys(found.warnings))[:20],
        "said": None,
        "tries": 0,
    }
    return values


def _failed(window: Window, failure: SourceError, now: datetime) -> dict[str, Any]:
    """Say what stands in the row of a window that no source answered for."""
    if isinstance(failure, Refused):
        return {"state": "refused", "said": str(failure)}
    if now - window.asked_at >= GIVE_UP:
        return {"state": "given_up", "said": f"No answer for a day. {failure}"}
    wait = BACK_OFF[min(window.tries, len(BACK_OFF)) - 1]
    if isinstance(failure, Away) and failure.after_s is not None:
        wait = max(wait, int(failure.after_s) + 1)
    return {"state": "queued", "next_at": now + timedelta(seconds=wait), "said": str(failure)}


def _settle_all(
    context: Context, worker: str, windows: Sequence[Window], values: dict[str, Any]
) -> None:
    def write(connection: Connection) -> None:
        for window in windows:
            telemetry_queue.settle(connection, window.id, worker, values)

    context.store.write(write)
