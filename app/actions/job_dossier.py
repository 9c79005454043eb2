"""What does one job come to: its attempts, coverage, checkpoints, alarms and notes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.actions.resume_floor import Floor, floor_of
from app.actions.taint import key_of, tainted_by
from app.store import checkpoint_reading, job_details, job_reading, notes
from app.store.checkpoint_reading import SavedState
from app.store.connection import Connection
from app.store.job_details import Covered, ElasticEvent, Hour, JobAlarm, Replay
from app.store.job_reading import AttemptRow, JobRow
from app.store.notes import JobNote
from witness.rules.coverage import Bound, bound
from witness.rules.resume import Trust, trust

ATTEMPTS_PAGE = 20
CHECKPOINTS = 30
ALARMS = 25
EVENTS = 50
STRIP_HOURS = 168
"""The strip of passes shows a week at most."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One checkpoint with its trust and, where it is tainted, why."""

    saved: SavedState
    trust: Trust
    tainted_by: int | None  # the alarm whose window taints it


@dataclass(frozen=True, slots=True)
class CheckCover:
    """One check's passes with the bound that they prove if none of its alarms was false."""

    covered: Covered
    bound: Bound


@dataclass(frozen=True, slots=True)
class Strip:
    """Passes by hour from `first` to `last`, hours from 1970; `left_out` earlier hours."""

    first: int
    last: int
    left_out: int
    hours: tuple[Hour, ...]


@dataclass(frozen=True, slots=True)
class JobDossier:
    """One job, whole; lists hold their newest entries."""

    job: JobRow
    newest: AttemptRow | None
    attempts: tuple[AttemptRow, ...]
    attempts_in_all: int
    overlaps: dict[int, tuple[int, ...]]
    silent: bool
    audited_gpu_hours: float
    covers: tuple[CheckCover, ...]
    strip: Strip
    alarms: tuple[JobAlarm, ...]
    checkpoints: tuple[Judged, ...]
    floor: Floor
    replays: tuple[Replay, ...]
    events: tuple[ElasticEvent, ...]
    notes: tuple[JobNote, ...]

    def attempt(self, attempt_id: int | None) -> AttemptRow | None:
        """Find one of the attempts shown."""
        return next((one for one in self.attempts if one.id == attempt_id), None)


def read_dossier(
    connection: Connection, job_id: int, now: datetime, silent_after: timedelta, page: int = 1
) -> JobDossier | None:
    """Read one job; None when there is none with this id."""
    job = job_reading.read_job(connection, job_id)
    if job is None:
        return None
    offset = (page - 1) * ATTEMPTS_PAGE
    attempts, count = job_reading.read_attempts(connection, job_id, offset, ATTEMPTS_PAGE)
    newest = job_reading.newest_attempt(connection, job_id)
    shown = [one.id for one in attempts]
    return JobDossier(
        job=job,
        newest=newest,
        attempts=attempts,
        attempts_in_all=count,
        overlaps=job_reading.overlaps(attempts),
        silent=job_reading.is_silent(newest, job, now - silent_after),
        audited_gpu_hours=job_details.audited_gpu_hours(connection, job_id),
        covers=tuple(
            CheckCover(one, bound(one.gpu_audits))
            for one in job_details.covered_by_check(connection, job_id)
        ),
        strip=_strip(connection, job, attempts),
        alarms=job_details.alarms_of(connection, job_id, ALARMS),
        checkpoints=_checkpoints(connection, job_id),
        floor=floor_of(connection, job_id),
        replays=job_details.replays_of(connection, shown, EVENTS),
        events=job_details.elastic_of(connection, job_id, EVENTS),
        notes=notes.of_job(connection, job_id),
    )


def _strip(connection: Connection, job: JobRow, attempts: Sequence[AttemptRow]) -> Strip:
    """Cut the strip to the hours in which something ran, passed or alarmed."""
    ends = [job.last_alarm_at, job.last_pass_at, *(one.ended for one in attempts)]
    last = _hour(max((one for one in ends if one is not None), default=job.last_seen_at))
    begin = min(_hour(job.first_seen_at), last)
    first = max(begin, last - STRIP_HOURS + 1)
    return Strip(first, last, first - begin, job_details.hours(connection, job.id, first, last))


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // 3600


def _checkpoints(connection: Connection, job_id: int) -> tuple[Judged, ...]:
    saved = checkpoint_reading.read_newest(connection, job_id, CHECKPOINTS)
    tainted: dict[tuple[int, str | None], int] = {}
    for window in checkpoint_reading.read_windows(connection, job_id):
        for key in tainted_by(window, saved):
            tainted.setdefault(key, window.alarm_id)
    passed = job_details.last_passes(connection, _attempts_of(saved))
    return tuple(_judged(one, tainted, passed) for one in saved)


def _judged(
    one: SavedState,
    tainted: dict[tuple[int, str | None], int],
    passed: dict[tuple[int, str], int],
) -> Judged:
    """Hold a checkpoint against the passes of the attempt that saved it and went on from it."""
    by = tainted.get(key_of(one.checkpoint))
    ring = weights = None
    if one.attempt_id is not None:
        ring = passed.get((one.attempt_id, "ring"))
        weights = passed.get((one.attempt_id, "weights"))
    return Judged(one, trust(one.checkpoint, by is not None, ring, weights), by)


def _attempts_of(saved: Sequence[SavedState]) -> list[int]:
    return sorted({one.attempt_id for one in saved if one.attempt_id is not None})
