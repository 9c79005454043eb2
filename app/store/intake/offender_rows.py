"""How often was each device named, by day and in the windows that the ranking shows?

Called once for each group of documents, with one `Naming` for each finding that names a device.
Every row is merged, none is read back.  The windows hold the days up
to `today`; `advance` takes out the days that have left them, which is done once a day.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import log
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import run_settings
from app.store.columns import micros
from app.store.intake.upsert import Merge, chunks, merge
from app.store.tables import (
    WINDOWS,
    fleet_days,
    offender_windows,
    settings,
    subject_days,
    subject_jobs,
)
from witness.rules.score import SCORED_AS, STARTING

TODAY = "offenders.today"
DAY_US = 86_400_000_000
# Between two incidents of a defective GPU lie about a hundred hours; what one incident adds to the
# logarithm of the odds is then ln(q/f) less this.  Only the order depends on it.
_BETWEEN = 5.9


@dataclass(frozen=True, slots=True)
class Naming:
    """One finding that names a device; `new_incident`: the first alarm of its incident."""

    alarm_id: int
    job_id: int
    cluster: str
    gpu_id: int | None
    node_id: int | None
    instance_id: str | None
    family: str
    kind: str
    occurred_at: datetime
    new_incident: bool

    def subjects(self) -> list[tuple[str, str]]:
        """List what is named, as (subject, subject_key)."""
        found = []
        if self.gpu_id is not None:
            found.append(("gpu", str(self.gpu_id)))
        if self.node_id is not None:
            found.append(("node", str(self.node_id)))
        if self.instance_id:
            found.append(("instance", self.instance_id))
        return found


def day_of(moment: datetime) -> int:
    """Count the days from 1970 to a moment."""
    return micros(moment) // DAY_US


@cache
def strength(kind: str) -> float:
    """Weigh an incident of a kind, to put devices in an order before they are scored."""
    scored = SCORED_AS.get(kind, kind)
    f, q = STARTING.f.get(scored), STARTING.q.get(scored)
    return 0.0 if f is None or q is None else log(q / f) - _BETWEEN


def count_namings(
    connection: Connection, namings: Sequence[Naming], now: datetime, *, fleet_too: bool = True
) -> None:
    """Add the findings of new alarms to every count of their devices.

    `fleet_too` is False where one device is counted anew: the fleet has them already.
    """
    if not namings:
        return
    counts = _Counts(advance(connection, now))
    for naming in namings:
        counts.add(naming)
    add: dict[str, Merge] = {"alarms": "add", "incidents": "add"}
    merge(connection, subject_days, _rows(_DAY_KEY, counts.days), add)
    merge(connection, subject_jobs, list(counts.jobs.values()), _JOB_MERGE)
    merge(connection, offender_windows, list(counts.windows.values()), _WINDOW_MERGE)
    if fleet_too:
        found = [(*where, cell[0], cell[1], 0.0) for where, cell in counts.fleet.items()]
        count_fleet(connection, found)


def count_fleet(
    connection: Connection, rows: Iterable[tuple[str, int, str, str, int, int, float]]
) -> None:
    """Add (cluster, day, family, kind, alarms, incidents, audited GPU-seconds) to the fleet's days.

    Audited time belongs to the family "" and kind "": what a beat added to
    `attempts.audited_seconds` times its GPUs, on the day of the beat.
    """
    names = ("cluster", "day", "family", "kind", "alarms", "incidents", "audited_gpu_seconds")
    merge(
        connection,
        fleet_days,
        [dict(zip(names, row, strict=True)) for row in rows],
        {"alarms": "add", "incidents": "add", "audited_gpu_seconds": "add"},
    )


def advance(connection: Connection, now: datetime) -> int:
    """Let the windows end today: take out the days that have left them.  Gives today's number."""
    today = day_of(now)
    before = run_settings.read(connection, TODAY)
    if before is None:
        run_settings.keep(connection, TODAY, today, by="service", at=now)
        return today
    if int(before) >= today:
        return int(before)
    # Another process may be doing the same: whoever changes the row takes the days out.
    won = connection.execute(
        sa.update(settings)
        .where(settings.c.name == TODAY, settings.c.value == json.dumps(int(before)))
        .values(value=json.dumps(today), changed_at=now)
    )
    if won.rowcount:
        for days in WINDOWS:
            _take_out(connection, days, int(before), today)
    return today


def _take_out(connection: Connection, days: int, before: int, today: int) -> None:
    table, source = offender_windows.c, subject_days.c
    left = connection.execute(
        sa.select(
            source.subject,
            source.subject_key,
            sa.func.sum(source.alarms),
            sa.func.sum(source.incidents),
        )
        .where(
            source.subject.in_(("gpu", "node", "instance")),
            source.day > before - days,
            source.day <= today - days,
        )
        .group_by(source.subject, source.subject_key)
        .order_by(source.subject, source.subject_key)
    ).all()
    alarms, incidents = table[f"alarms_{days}"], table[f"incidents_{days}"]
    statement = (
        sa.update(offender_windows)
        .where(
            table.subject == sa.bindparam("of_subject"),
            table.subject_key == sa.bindparam("of_key"),
        )
        .values(
            {alarms: alarms - sa.bindparam("alarms"), incidents: incidents - sa.bindparam("begun")}
        )
    )
    names = ("of_subject", "of_key", "alarms", "begun")
    for chunk in chunks(left):
        rows = [(row[0], row[1], int(row[2]), int(row[3])) for row in chunk]
        connection.execute(statement, [dict(zip(names, row, strict=True)) for row in rows])


_DAY_KEY = ("subject", "subject_key", "day", "family", "kind")
_JOB_MERGE: dict[str, Merge] = {"alarms": "add", "first_at": "min", "last_at": "max"}
_SUMS = tuple(f"{what}_{days}" for what in ("alarms", "incidents") for days in ("all", *WINDOWS))
_WINDOW_MERGE: dict[str, Merge] = {
    "cluster": "set",
    "strength": "add",
    "last_at": "max",
    **dict.fromkeys(_SUMS, "add"),
}


def _rows(names: Sequence[str], cells: Mapping[tuple[Any, ...], list[int]]) -> list[dict[str, Any]]:
    columns = (*names, "alarms", "incidents")
    return [dict(zip(columns, (*key, *cell), strict=True)) for key, cell in cells.items()]


class _Counts:
    """What a group of findings adds to the tables; cells are [alarms, incidents]."""

    def __init__(self, today: int) -> None:
        self.today = today
        self.days: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
        self.jobs: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.windows: dict[tuple[str, str], dict[str, Any]] = {}
        self.fleet: defaultdict[tuple[str, int, str, str], list[int]] = defaultdict(lambda: [0, 0])
        self._seen: set[tuple[int, str, str]] = set()
        self._alarms: set[int] = set()

    def add(self, naming: Naming) -> None:
        """Count one finding for each device it names, and once for the fleet."""
        at = micros(naming.occurred_at)
        day, incidents = at // DAY_US, int(naming.new_incident)
        within = ("all", *(days for days in WINDOWS if day > self.today - days))
        subjects = naming.subjects()
        for subject, key in subjects:
            # An alarm that names a device twice, in two kinds, is one alarm of that device.
            once = (naming.alarm_id, subject, key)
            alarms = int(once not in self._seen)
            self._seen.add(once)
            cell = self.days[subject, key, day, naming.family, naming.kind]
            cell[0] += alarms
            cell[1] += incidents
            self._job(subject, key, naming.job_id, at, alarms)
            row = self.windows.get((subject, key)) or self._window(subject, key, at)
            row["cluster"] = naming.cluster
            row["last_at"] = max(row["last_at"], at)
            row["strength"] += incidents * strength(naming.kind)
            for days in within:
                row[f"alarms_{days}"] += alarms
                row[f"incidents_{days}"] += incidents
        if subjects:
            cell = self.fleet[naming.cluster, day, naming.family, naming.kind]
            cell[0] += int(naming.alarm_id not in self._alarms)
            cell[1] += incidents
            self._alarms.add(naming.alarm_id)

    def _window(self, subject: str, key: str, at: int) -> dict[str, Any]:
        named = {"subject": subject, "subject_key": key, "cluster": "", "last_at": at}
        row = self.windows[subject, key] = {**named, "strength": 0.0, **dict.fromkeys(_SUMS, 0)}
        return row

    def _job(self, subject: str, key: str, job: int, at: int, alarms: int) -> None:
        row = self.jobs.get((subject, key, job))
        if row is None:
            named = {"subject": subject, "subject_key": key, "job_id": job}
            self.jobs[subject, key, job] = {
                **named,
                "alarms": alarms,
                "first_at": at,
                "last_at": at,
            }
            return
        row["alarms"] += alarms
        row["first_at"], row["last_at"] = min(row["first_at"], at), max(row["last_at"], at)
