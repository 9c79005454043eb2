"""How often was each device named, by day and in the windows that the ranking shows?

Called once for each group of documents, with one `Naming` for each finding that names a device.
Every row is merged, none is read back but the jobs already counted.  The windows hold the days up
to `today`; `advance` takes out the days that have left them, which is done once a day.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import run_settings
from app.store.columns import micros
from app.store.intake.upsert import chunks, merge
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
_DAY = 86_400_000_000
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
    return micros(moment) // _DAY


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
    today = advance(connection, now)
    new_jobs = _count_jobs(connection, namings)
    days: defaultdict[tuple[str, str, int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    windows: dict[tuple[str, str], dict[str, Any]] = {}
    fleet: defaultdict[tuple[str, int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    seen: set[tuple[int, str, str]] = set()
    counted: set[int] = set()
    for naming in namings:
        day = day_of(naming.occurred_at)
        incidents = int(naming.new_incident)
        for subject, key in naming.subjects():
            # An alarm that names a device twice, in two kinds, is one alarm of that device.
            alarms = int((naming.alarm_id, subject, key) not in seen)
            seen.add((naming.alarm_id, subject, key))
            cell = days[subject, key, day, naming.family, naming.kind]
            cell[0] += alarms
            cell[1] += incidents
            row = windows.setdefault((subject, key), _blank(subject, key, naming))
            _add(row, naming, day, today, alarms, incidents)
        if fleet_too and (naming.gpu_id is not None or naming.node_id is not None):
            cell = fleet[naming.cluster, day, naming.family, naming.kind]
            cell[0] += int(naming.alarm_id not in counted)
            cell[1] += incidents
            counted.add(naming.alarm_id)
    for device, jobs in new_jobs.items():
        windows[device]["jobs"] = jobs
    _merge_days(connection, days)
    merge(connection, offender_windows, list(windows.values()), _WINDOW_MERGE)
    found = [(*where, alarms, begun, 0.0) for where, (alarms, begun) in fleet.items()]
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


_WINDOW_MERGE: dict[str, Any] = {
    "cluster": "set",
    "strength": "add",
    "jobs": "add",
    "last_at": "max",
    **{f"{what}_{days}": "add" for what in ("alarms", "incidents") for days in ("all", *WINDOWS)},
}


def _blank(subject: str, key: str, naming: Naming) -> dict[str, Any]:
    counts = {name: 0 for name, how in _WINDOW_MERGE.items() if how == "add"}
    last_at = micros(naming.occurred_at)
    row = {"subject": subject, "subject_key": key, "cluster": naming.cluster, "last_at": last_at}
    return {**row, **counts, "strength": 0.0}


def _add(
    row: dict[str, Any], naming: Naming, day: int, today: int, alarms: int, incidents: int
) -> None:
    row["last_at"] = max(row["last_at"], micros(naming.occurred_at))
    row["cluster"] = naming.cluster
    row["strength"] += incidents * strength(naming.kind)
    for days in ("all", *WINDOWS):
        if days == "all" or day > today - int(days):
            row[f"alarms_{days}"] += alarms
            row[f"incidents_{days}"] += incidents


def _merge_days(
    connection: Connection, days: dict[tuple[str, str, int, str, str], list[int]]
) -> None:
    names = ("subject", "subject_key", "day", "family", "kind", "alarms", "incidents")
    rows = [dict(zip(names, (*key, *counts), strict=True)) for key, counts in days.items()]
    merge(connection, subject_days, rows, {"alarms": "add", "incidents": "add"})


def _count_jobs(connection: Connection, namings: Sequence[Naming]) -> Counter[tuple[str, str]]:
    """Merge the jobs that each device was named in; gives how many of them are new to it."""
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    alarms: defaultdict[tuple[str, str, int], set[int]] = defaultdict(set)
    for naming in namings:
        at = micros(naming.occurred_at)
        for subject, key in naming.subjects():
            triple = (subject, key, naming.job_id)
            alarms[triple].add(naming.alarm_id)
            if triple not in rows:
                key_of_row = zip(("subject", "subject_key", "job_id"), triple, strict=True)
                rows[triple] = {**dict(key_of_row), "first_at": at, "last_at": at}
            row = rows[triple]
            row["first_at"], row["last_at"] = min(row["first_at"], at), max(row["last_at"], at)
    known = _known_jobs(connection, rows)
    for triple, row in rows.items():
        row["alarms"] = len(alarms[triple])
    how: dict[str, Any] = {"alarms": "add", "first_at": "min", "last_at": "max"}
    merge(connection, subject_jobs, list(rows.values()), how)
    return Counter((subject, key) for subject, key, job in rows if (subject, key, job) not in known)


def _known_jobs(
    connection: Connection, triples: Iterable[tuple[str, str, int]]
) -> set[tuple[str, str, int]]:
    known: set[tuple[str, str, int]] = set()
    by_subject: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for subject, key, job in triples:
        by_subject[subject].add((key, job))
    table = subject_jobs.c
    for subject, pairs in by_subject.items():
        for chunk in chunks(sorted(pairs), 400):
            found = connection.execute(
                sa.select(table.subject_key, table.job_id).where(
                    table.subject == subject,
                    sa.tuple_(table.subject_key, table.job_id).in_(chunk),
                )
            )
            known.update((subject, row.subject_key, row.job_id) for row in found)
    return known
