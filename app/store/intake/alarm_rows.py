"""Which alarms are known already, and how are new ones and repeats written?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.upsert import by_id, chunks, insert, merge
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
    columns = (
        alarms.c.id,
        alarms.c.key,
        alarms.c.attempt_id,
        alarms.c.received,
        alarms.c.reporters,
        alarms.c.said,
    )
    return {row.id: KnownAlarm(*row) for row in by_id(connection, alarms, alarm_ids, columns)}


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
    counted = (
        sa.select(sa.func.count()).where(alarm_reports.c.alarm_id == alarms.c.id).scalar_subquery()
    )
    result: dict[int, tuple[int, int]] = {}
    for alarm_id in sorted(repeats):
        row = connection.execute(
            sa.update(alarms)
            .where(alarms.c.id == alarm_id)
            .values(
                received=alarms.c.received + repeats[alarm_id],
                reporters=counted,
                last_received_at=sa.literal(received_at, sa.BigInteger),
            )
            .returning(alarms.c.received, alarms.c.reporters)
        ).one()
        result[alarm_id] = (row[0], row[1])
    return result


def mark_conflicts(connection: Connection, base_keys: Iterable[str]) -> None:
    """Count, for alarms of these attempts and steps, how many say something else."""
    for chunk in chunks(sorted(set(base_keys)), 500):
        counts = connection.execute(
            sa.select(alarms.c.base_key, sa.func.count())
            .where(alarms.c.base_key.in_(chunk))
            .group_by(alarms.c.base_key)
            .having(sa.func.count() > 1)
        ).all()
        for base_key, count in counts:
            connection.execute(
                sa.update(alarms)
                .where(alarms.c.base_key == base_key, alarms.c.conflicts != count - 1)
                .values(conflicts=count - 1)
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
