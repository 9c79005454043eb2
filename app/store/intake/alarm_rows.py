"""Which alarms are known already, and how are new ones and repeats written?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.lookup import rows_of_keys
from app.store.intake.upsert import chunks, insert, merge
from app.store.tables import alarm_reports, alarms, documents

NOT_SAID = -1  # reporter_rank of a report that names none


@dataclass(frozen=True, slots=True)
class KnownAlarm:
    """What the intake must know of a stored alarm."""

    id: int
    key: str
    attempt_id: int | None
    received: int
    reporters: int
    said: str


@dataclass(slots=True)
class Report:
    """Reports of one alarm by one rank within a group."""

    alarm_id: int
    reporter_rank: int
    first_at: int
    last_at: int
    received: int = 1
    document_id: int | None = None


def known_alarms(connection: Connection, alarm_ids: Iterable[int]) -> dict[int, KnownAlarm]:
    """Read those of the alarms that are stored."""
    names = ("id", "key", "attempt_id", "received", "reporters", "said")
    return {row[0]: KnownAlarm(*row) for row in rows_of_keys(connection, alarms, names, alarm_ids)}


def insert_alarms(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert new alarms."""
    insert(connection, alarms, rows)


def write_reports(connection: Connection, reports: Sequence[Report]) -> None:
    """Count who reported."""
    rows = [
        {
            "alarm_id": one.alarm_id,
            "reporter_rank": one.reporter_rank,
            "received": one.received,
            "first_at": one.first_at,
            "last_at": one.last_at,
            "document_id": one.document_id,
        }
        for one in reports
    ]
    how = {"received": "add", "first_at": "min", "last_at": "max", "document_id": "fill"}
    merge(connection, alarm_reports, rows, how)  # type: ignore[arg-type]


def count_repeats(
    connection: Connection, repeats: Mapping[int, int], received_at: int
) -> dict[int, tuple[int, int]]:
    """Add repeats to alarms; give (received, distinct reporters) of each afterwards."""
    if not repeats:
        return {}
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    # Only the driver's own mark for a parameter is put into the text.
    counted = f"SELECT count(*) FROM alarm_reports WHERE alarm_id = {mark}"  # noqa: S608
    connection.exec_driver_sql(
        f"UPDATE alarms SET received = received + {mark}, reporters = ({counted}),"  # noqa: S608
        f" last_received_at = {mark} WHERE id = {mark}",
        [(repeats[one], one, received_at, one) for one in sorted(repeats)],
    )
    rows = rows_of_keys(connection, alarms, ("id", "received", "reporters"), repeats)
    return {row[0]: (row[1], row[2]) for row in rows}


def mark_conflicts(connection: Connection, base_keys: Iterable[str]) -> None:
    """Count, for alarms of these attempts and steps, how many say something else."""
    found = rows_of_keys(connection, alarms, ("base_key", "conflicts"), base_keys, "base_key")
    held: dict[str, list[int]] = {}
    for base_key, conflicts in found:
        held.setdefault(base_key, []).append(conflicts)
    for base_key, conflicts in sorted(held.items()):
        others = len(conflicts) - 1
        if others and any(one != others for one in conflicts):
            connection.execute(
                sa.update(alarms).where(alarms.c.base_key == base_key).values(conflicts=others)
            )


@dataclass(frozen=True, slots=True)
class StoredAlarm:
    """A stored alarm that is derived anew, with its first document's text."""

    id: int
    attempt_id: int | None
    received_at: datetime
    body: str


def unresolved(
    connection: Connection, attempt_ids: Iterable[int], job_ids: Iterable[int]
) -> list[StoredAlarm]:
    """Read alarms that a newly come map may place.

    Those of these attempts, and those of these jobs that carry no attempt: their start is found by
    the time, and the new map may be of a fitting one.
    """
    columns = (
        alarms.c.id,
        alarms.c.attempt_id,
        alarms.c.received_at,
        documents.c.body,
    )
    joined = alarms.join(documents, documents.c.id == alarms.c.document_id)
    found: dict[int, StoredAlarm] = {}
    for chunk in chunks(sorted(set(attempt_ids)), 500):
        query = sa.select(*columns).select_from(joined).where(alarms.c.attempt_id.in_(chunk))
        found.update((row.id, StoredAlarm(*row)) for row in connection.execute(query))
    for chunk in chunks(sorted(set(job_ids)), 500):
        query = (
            sa.select(*columns)
            .select_from(joined)
            .where(
                alarms.c.job_id.in_(chunk),
                sa.or_(alarms.c.attempt_id.is_(None), alarms.c.map_state == "inferred"),
            )
        )
        found.update((row.id, StoredAlarm(*row)) for row in connection.execute(query))
    return list(found.values())


def update_derived(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rewrite what is derived of alarms: id, attempt, map state, rule, standing, summary."""
    for row in rows:
        values = {key: value for key, value in row.items() if key != "id"}
        connection.execute(sa.update(alarms).where(alarms.c.id == row["id"]).values(**values))
