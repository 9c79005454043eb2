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

from app.actions.alarm_dossier import read_core
from app.actions.telemetry import machines, moved, reading, settling
from app.actions.telemetry.asking import Found, ask
from app.actions.telemetry.kept_before import add_kept
from app.actions.telemetry.planning import plan
from app.actions.telemetry.slow_sources import SlowSources
from app.context import Context
from app.sources.ports import Away
from app.store import (
    ids,
    telemetry_claims,
    telemetry_kept,
    telemetry_moved,
    telemetry_queue,
    telemetry_unread,
)
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.telemetry_queue import Window
from app.store.writer import QueueFull
from witness.rules import moved as rules

log = logging.getLogger(__name__)

PLANNED = 50  # alarms whose windows are worked out in one round
TAKEN = 64  # windows taken in one round
AT_ONCE = 16  # GPUs asked for in one question
LONG = timedelta(hours=6)  # of longer windows fewer GPUs at once: the answer is held in memory
LEASE = timedelta(minutes=15)  # longer than the slowest pull


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
        core = read_core(connection, alarm_id)
    made = None if core is None else plan(core)
    wants, left_out = (made.wants, made.left_out) if made else ((), 0)
    further = machines.wanted(core, made) if core is not None and made is not None else None

    def write(connection: Connection) -> None:
        clusters = [*context.sources]
        telemetry_queue.plan(
            connection, alarm_id, wants, left_out, wanted_at=wanted_at, now=now, clusters=clusters
        )
        if further is not None:
            further.ask(connection, alarm_id, now)

    try:
        context.store.write(write)
    except telemetry_queue.StalePlanError:
        return  # Wanted anew meanwhile: the next round plans it.
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


def pull_due(
    context: Context, worker: str, is_stopping: Callable[[], bool] = lambda: False,
    slow: SlowSources | None = None, *, waits: bool = True,
) -> int:  # fmt: skip
    """Pull windows that are due and read the alarms that ask for them; give how many windows.

    `waits` tells whether this worker takes windows of `slow` clusters where no others are due.
    """
    now, slow = context.now(), slow or SlowSources()
    taken = _claim(context, worker, now, TAKEN, slow.names())
    if not taken and waits and slow.names():
        taken = _claim(context, worker, now, AT_ONCE, ())
    if not taken:
        return 0
    with context.store.reading() as connection:
        nodes = telemetry_moved.nodes_of(connection, [one.id for one in taken])
    if not _pull_all(_Round(context, worker, now, nodes, slow), taken, is_stopping):
        return len(taken)
    with context.store.reading() as connection:
        alarms = telemetry_unread.askers(connection, [one.id for one in taken])
    _read(context, alarms)
    return len(taken)


def _claim(
    context: Context, worker: str, now: datetime, most: int, without: Sequence[str]
) -> list[Window]:
    with context.store.reading() as connection:
        if not telemetry_claims.is_due(connection, now, LEASE, without):
            return []  # An idle service writes nothing.
    return context.store.write(
        lambda connection: telemetry_claims.claim(connection, worker, now, LEASE, most, without)
    )


def _pull_all(work: _Round, taken: list[Window], is_stopping: Callable[[], bool]) -> bool:
    """Pull what was taken, and give back what a slow source or a stop leaves; False: stopped."""
    # GPUs of one node in one question where they fit: they are compared with each other.
    taken.sort(key=lambda one: (*_moment(one), work.nodes.get(one.id, (0, 0))))
    met: set[str] = set()  # slow in this round: its other windows have had no turn
    for _, alike in groupby(taken, key=_moment):
        windows = list(alike)
        step = _at_once(windows[0])
        for first in range(0, len(windows), step):
            some = windows[first : first + step]
            if is_stopping():
                work.release(None)
                return False
            if some[0].cluster in met:
                work.release([one.id for one in some])
                continue
            _pull_held(work, some)
            met |= {some[0].cluster} & {*work.slow.names()}
    return True


def _at_once(window: Window) -> int:
    return max(1, min(AT_ONCE, int(AT_ONCE * LONG / (window.end - window.start))))


_moment = attrgetter("cluster", "start", "end")


@dataclass(frozen=True, slots=True)
class _Round:
    """Windows that one worker took at one time; `nodes` names the node of each, where known."""

    context: Context
    worker: str
    claimed_at: datetime
    nodes: Mapping[int, tuple[int, int]]
    slow: SlowSources

    def release(self, window_ids: Sequence[int] | None) -> None:
        """Give back windows that had no turn; None: all."""
        self.context.store.write(lambda c: telemetry_claims.release(c, self.worker, window_ids))


@dataclass(frozen=True, slots=True)
class _Keep:
    """What is kept of a window: its compressed samples, and what moved in them."""

    packed: Sequence[Mapping[str, Any]]
    moved: rules.Kept | None


def _pull_held(work: _Round, windows: Sequence[Window]) -> None:
    """Pull windows that are still this worker's; what is in its way there stays there."""
    now, store = work.context.now(), work.context.store
    if now - work.claimed_at > LEASE / 3:
        ids_of = [one.id for one in windows]
        held = store.write(lambda c: telemetry_claims.renew(c, ids_of, work.worker, now))
        windows = [one for one in windows if one.id in held]
    try:
        if windows:
            _pull(work, windows)
    except (StoreUnavailable, QueueFull):
        raise
    except Exception:
        log.exception("%d windows of %s cannot be pulled", len(windows), windows[0].cluster)
        fault = Away("A fault of this service; its log says more.")
        _settle_all(work, [(one, settling.failed(one, fault, now)) for one in windows])


def _pull(work: _Round, windows: Sequence[Window]) -> None:
    """Ask for windows of one cluster and one time, and note what came."""
    sources = work.context.sources.get(windows[0].cluster, ())
    now = work.context.now()
    if not sources:
        nothing = {"state": "no_source", "said": reading.NO_SOURCE}
        _settle_all(work, [(one, nothing) for one in windows])
        return
    if windows[0].start >= now:
        _settle_all(work, [(one, settling.early(one)) for one in windows])
        return
    began = work.slow.clock()
    found = ask(sources, windows, now)
    work.slow.note(windows[0].cluster, work.slow.clock() - began)
    if any(one.samples for one in windows):
        with work.context.store.reading() as connection:
            add_kept(connection, found, windows)
    came = [one for one in windows if not found.misses(one)]
    settled = [(one, settling.done(one, found, now)) for one in came]
    settled += [
        (one, settling.failed(one, found.failure, now)) for one in windows if found.misses(one)
    ]
    kept = {
        one.id: _keep(work, one, came, found) for one in came if not settling.has_lost(one, found)
    }
    _settle_all(work, settled, kept)


def _keep(work: _Round, window: Window, came: Sequence[Window], found: Found) -> _Keep:
    """Make all that is kept of a window before the writer has to wait for it."""
    about, node = found.about.get(window.gpu_uuid), work.nodes.get(window.id)
    beside = [one.gpu_uuid for one in came if node and work.nodes.get(one.id) == node]
    interval = about.interval_s if about else None
    return _Keep(
        telemetry_kept.pack(found.series.get(window.gpu_uuid, ())),
        moved.look(window, found.series, beside, interval),
    )


def _settle_all(
    work: _Round,
    settled: Sequence[tuple[Window, dict[str, Any]]],
    kept: Mapping[int, _Keep] | None = None,
) -> None:
    """Note what became of windows, with their samples where there are any to keep."""

    def write(connection: Connection) -> None:
        for window, values in settled:
            is_mine = telemetry_claims.settle(connection, window.id, work.worker, values)
            if is_mine and kept is not None and window.id in kept:
                telemetry_kept.write_blocks(connection, window.id, kept[window.id].packed)
                telemetry_moved.write_moved(connection, window, kept[window.id].moved)

    work.context.store.write(write)
