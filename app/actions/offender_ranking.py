"""In which order do the devices of a query come, and what number stands behind each?

P is scored for the devices listed.  Where P or the rate decides the order, the most telling
`SCORED` devices are scored and put in order; the counts put everything else in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from app.actions.scoring import UNSCORED, gpu_history
from app.store.connection import Connection
from app.store.gpu_tests import Passed, passed_of
from app.store.offender_devices import Device, describe
from app.store.offender_reading import find, jobs_in, start_of
from app.store.offender_shapes import Candidate, Fleet, Query, Totals
from witness.rules.repeat_offenders import (
    AgainstFleet,
    PastIncident,
    Rate,
    Recurrence,
    against_fleet,
    rate,
    recurrence,
)
from witness.rules.score import Score, score

SCORED = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One device with its place; `score` None: nothing that is scored, `hours` None: unknown."""

    place: int
    candidate: Candidate
    device: Device
    jobs: int
    score: Score | None
    hours: float | None
    rate: Rate | None
    against: AgainstFleet | None
    recurrence: Recurrence | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One stretch of the ranking; `since` and `until` bound the window, None where it is open.

    `reach` devices can be paged through in this order.
    """

    rows: tuple[Ranked, ...]
    totals: Totals
    fleet: Fleet
    since: datetime | None
    until: datetime | None
    reach: int
    cut: bool


def rank(
    connection: Connection, query: Query, now: datetime, recurs_days: int, offset: int, limit: int
) -> Ranking:
    """Rank devices; `offset` and `limit` cut the answer."""
    by_count = query.order == "incidents"
    start, many = (offset, limit) if by_count else (0, SCORED)
    found = find(connection, query, now, start, many)
    first, last = query.day_range(found.today)
    since = None if first is None else start_of(first)
    until = None if last is None else start_of(last + 1)
    devices = describe(connection, found.candidates)
    keys = [one.key for one in found.candidates]
    touched = jobs_in(connection, query.subject, keys, since, until)
    scored = {past.gpu_id for device in devices for past in device.scored}
    window = _Window(since, until, now, recurs_days, passed_of(connection, scored))
    rows = [
        _ranked(candidate, device, touched.get(candidate.key, 0), window)
        for candidate, device in zip(found.candidates, devices, strict=True)
    ]
    if not by_count:
        rows.sort(key=_by_p if query.order == "p" else _by_rate)
        rows = rows[offset : offset + limit]
    ranked = tuple(
        Ranked(offset + place, *row[:6], _against(row, found.fleet), row[6])
        for place, row in enumerate(rows, 1)
    )
    reach = found.totals.devices if by_count else min(found.totals.devices, SCORED)
    return Ranking(ranked, found.totals, found.fleet, since, until, reach, found.cut)


_Row = tuple[Candidate, Device, int, Score | None, float | None, Rate | None, Recurrence | None]


@dataclass(frozen=True, slots=True)
class _Window:
    """What all devices of a ranking are measured by; `passed` are tests by GPU."""

    since: datetime | None
    until: datetime | None
    now: datetime
    recurs_days: int
    passed: Mapping[int, Sequence[Passed]]


def _ranked(candidate: Candidate, device: Device, jobs: int, window: _Window) -> _Row:
    hours = _hours(device, window.since, window.until, window.now)
    scores = [
        score(
            gpu_history(
                past.incidents,
                (past.exposure,),
                window.now,
                window.passed.get(past.gpu_id, ()),
            )
        )
        for past in device.scored
    ]
    worst = max((one for one in scores if one is not None), key=lambda one: one.p, default=None)
    observed = None if hours is None else rate(candidate.incidents, hours)
    return candidate, device, jobs, worst, hours, observed, _recurs(device, window.recurs_days)


def _hours(
    device: Device, since: datetime | None, until: datetime | None, now: datetime
) -> float | None:
    """Sum the audited GPU-hours in the window; None where no pass is known."""
    first, last = since or _EPOCH, until or now
    return device.exposure.hours_between(first, last) or None


def _recurs(device: Device, within_days: int) -> Recurrence | None:
    telling = [one for one in device.incidents if one.kind not in UNSCORED]
    if len(telling) < 2:
        return None
    newest = telling[-1]
    same: Literal["gpu", "instance"] = "gpu" if device.gpu_id is not None else "instance"
    past = [PastIncident(one.first_at, one.job, one.rank, one.kind, same) for one in telling[:-1]]
    return recurrence(past, newest.first_at, within_days, newest.kind)


def _against(row: _Row, fleet: Fleet) -> AgainstFleet | None:
    candidate, hours = row[0], row[4]
    if hours is None or fleet.audited_gpu_hours <= 0:
        return None
    return against_fleet(candidate.incidents, hours, fleet.incidents, fleet.audited_gpu_hours)


def _by_p(row: _Row) -> tuple[float, float, str]:
    return -(row[3].p if row[3] else -1.0), -row[0].incidents, row[0].key


def _by_rate(row: _Row) -> tuple[float, float, str]:
    """Order by the lower end of the rate, so that few hours do not lead; unknown comes last."""
    return -(row[5].low if row[5] else -1.0), -row[0].incidents, row[0].key
