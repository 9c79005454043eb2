"""How does one round of pulling go: plan, take, ask, keep, read?

Work waits in the database. A crash at any point leaves a claim that runs out, and the window is
pulled again; what was kept is replaced, never added to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from app.actions.alarm_dossier import read_dossier
from app.actions.telemetry import reading
from app.actions.telemetry.planning import plan
from app.context import Context
from app.sources.ports import About, Away, MetricSource, Pulled, Question, Refused, SourceError
from app.store import ids, telemetry_kept, telemetry_queue, telemetry_unread
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.telemetry_queue import Window
from app.store.writer import QueueFull
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
    with context.store.reading() as connection:
        alarms = telemetry_queue.wanted(connection, PLANNED)
    for alarm_id, wanted_at in alarms:
        _apart(context, alarm_id, partial(_plan, context, alarm_id, wanted_at))
    return len(alarms)


def read_unread(context: Context) -> int:
    """Read alarms whose windows are settled and that were left unread; give how many."""
    with context.store.reading() as connection:
        alarms = telemetry_unread.unread(connection, PLANNED)
    _read(context, alarms)
    return len(alarms)


def _plan(context: Context, alarm_id: int, wanted_at: datetime) -> None:
    now = context.now()
    with context.store.reading() as connection:
        dossier = read_dossier(connection, alarm_id, now)
    made = None if dossier is None else plan(dossier)
    wants, left_out = (made.wants, made.left_out) if made else ((), 0)
    context.store.write(
        lambda connection: telemetry_queue.plan(
            connection, alarm_id, wants, left_out, wanted_at=wanted_at, now=now
        )
    )
    # An alarm without a known GPU, or whose windows are all there, has nothing to wait for.
    reading.read_alarm(context, alarm_id)


def _read(context: Context, alarm_ids: Sequence[int]) -> None:
    for alarm_id in alarm_ids:
        _apart(context, alarm_id, partial(reading.read_alarm, context, alarm_id))


def _apart(context: Context, alarm_id: int, work: Callable[[], object]) -> None:
    """Do the work of one alarm; a fault of ours there must not hold up all others for ever."""
    try:
        work()
    except (StoreUnavailable, QueueFull):
        raise
    except Exception:
        log.exception("the telemetry of alarm %s cannot be worked out", ids.show(alarm_id))
        context.store.write(lambda connection: telemetry_unread.set_aside(connection, alarm_id))


def pull_due(context: Context, worker: str, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Pull windows that are due and read the alarms that ask for them; give how many windows."""
    now = context.now()
    taken = context.store.write(
        lambda connection: telemetry_queue.claim(connection, worker, now, LEASE, TAKEN)
    )
    taken.sort(key=_moment)
    for _, alike in groupby(taken, key=_moment):
        windows = list(alike)
        for first in range(0, len(windows), AT_ONCE):
            if is_stopping():
                context.store.write(lambda connection: telemetry_queue.release(connection, worker))
                return len(taken)
            _pull_held(context, worker, windows[first : first + AT_ONCE], now)
    with context.store.reading() as connection:
        alarms = telemetry_unread.askers(connection, [one.id for one in taken]) if taken else []
    _read(context, alarms)
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


def _pull_held(
    context: Context, worker: str, windows: Sequence[Window], claimed_at: datetime
) -> None:
    """Pull windows that are still this worker's; what is in its way there stays there."""
    now = context.now()
    if now - claimed_at > LEASE / 3:
        ids_of = [one.id for one in windows]
        held = context.store.write(lambda c: telemetry_queue.renew(c, ids_of, worker, now))
        windows = [one for one in windows if one.id in held]
    try:
        if windows:
            _pull(context, worker, windows)
    except (StoreUnavailable, QueueFull):
        raise
    except Exception:
        log.exception("%d windows of %s cannot be pulled", len(windows), windows[0].cluster)
        fault = Away("A fault of this service; its log says more.")
        _settle_all(context, worker, [(one, _failed(one, fault, now)) for one in windows])


def _pull(context: Context, worker: str, windows: Sequence[Window]) -> None:
    """Ask for windows of one cluster and one time, and note what came."""
    sources = context.sources.get(windows[0].cluster, ())
    now = context.now()
    if not sources:
        nothing = {"state": "no_source", "said": reading.NO_SOURCE}
        _settle_all(context, worker, [(one, nothing) for one in windows])
        return
    found = ask(sources, windows, now)
    failed = [(one, _failed(one, found.failure, now)) for one in windows if _is_missed(one, found)]
    missed = {one.id for one, _ in failed}
    done = [(one, _done(one, found, now)) for one in windows if one.id not in missed]
    packed = {one.id: telemetry_kept.pack(found.series.get(one.gpu_uuid, ())) for one, _ in done}
    _settle_all(context, worker, [*failed, *done], packed)


def _is_missed(window: Window, found: _Found) -> bool:
    """Tell whether a source that may know the GPU is still to be heard."""
    if found.failure is None or window.gpu_uuid in found.series:
        return False
    return not found.pulled or isinstance(found.failure, Away)


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
            pulled = _answer(source, Question(tuple(left), start, end))
        except SourceError as error:
            # What may pass counts first: it is worth asking again.
            found.failure = found.failure if isinstance(found.failure, Away) else error
            found.warnings.append(f"{about.name}: {error}")
            continue
        found.pulled.append(pulled)
        found.warnings += pulled.warnings
        _take(found, about, pulled.series)
        left = [uuid for uuid in left if uuid not in found.series]
    return found


def _answer(source: MetricSource, question: Question) -> Pulled:
    """Ask one source; what it did not foresee (credentials, a header) may pass, as `Away`."""
    try:
        return source.pull(question)
    except SourceError:
        raise
    except Exception as error:
        log.exception("a source of metrics failed in a way of its own")
        raise Away(
            f"A fault of this service ({type(error).__name__}); its log says more."
        ) from None


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


def _failed(window: Window, failure: SourceError | None, now: datetime) -> dict[str, Any]:
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
    context: Context,
    worker: str,
    settled: Sequence[tuple[Window, dict[str, Any]]],
    packed: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
) -> None:
    """Note what became of windows, with their samples where there are any to keep."""

    def write(connection: Connection) -> None:
        for window, values in settled:
            is_mine = telemetry_queue.settle(connection, window.id, worker, values)
            if is_mine and packed is not None and window.id in packed:
                telemetry_kept.write_blocks(connection, window.id, packed[window.id])

    context.store.write(write)
