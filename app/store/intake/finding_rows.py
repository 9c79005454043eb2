"""How are findings and incidents written, and taken back when a rank map comes late?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import moment
from app.store.intake.lookup import rows_of_keys
from app.store.intake.offender_rows import Naming, count_namings
from app.store.intake.upsert import chunks, insert_plain, merge
from app.store.tables import (
    findings,
    incidents,
    jobs,
    offender_windows,
    subject_days,
    subject_jobs,
)


@dataclass(slots=True)
class FindingRow:
    """One row of `findings`; times in microseconds, `cautions` as JSON text."""

    alarm_id: int
    ordinal: int
    rule: str | None
    kind: str
    rank: int | None
    node_id: int | None
    gpu_id: int | None
    instance_id: str | None
    job_id: int
    case_id: int
    incident_id: int
    family: str
    occurred_at: int
    ambiguous: bool
    software_first: bool
    blocks_replacement: bool
    cautions: str
    # Not columns of findings: part of the incident's key, and where it counts.
    code_digest: str | None
    cluster: str


_BESIDE = ("code_digest", "cluster")
_COLUMNS = tuple(name for name in FindingRow.__slots__ if name not in _BESIDE)
_values = attrgetter(*_COLUMNS)


def incident_id(
    job_id: int,
    code_digest: str | None,
    kind: str,
    gpu_id: int | None,
    node_id: int | None,
    rank: int | None,
) -> int:
    """Derive the id of an incident: job, code digest, verdict kind, device."""
    device: tuple[object, ...] = ("rank", rank)
    if gpu_id is not None:
        device = ("gpu", gpu_id)
    elif node_id is not None:
        device = ("node", node_id)
    return ids.derive("incident", job_id, code_digest, kind, *device)


def write_findings(connection: Connection, rows: Sequence[FindingRow], now: datetime) -> set[int]:
    """Insert findings, merge their incidents; give the ids of incidents that are new."""
    insert_plain(connection, findings, _COLUMNS, list(map(_values, rows)))
    merged: dict[int, dict[str, Any]] = {}
    seen: set[tuple[int, int]] = set()
    for row in rows:
        once = (row.incident_id, row.alarm_id)
        _merge_incident(merged, row, count=once not in seen)
        seen.add(once)
    known = {row[0] for row in rows_of_keys(connection, incidents, ("id",), merged)}
    how = {"alarms": "add", "first_at": "min", "last_at": "max", "case_id": "set"}
    merge(connection, incidents, list(merged.values()), how)  # type: ignore[arg-type]
    new = merged.keys() - known
    _count(connection, rows, set(new), now)
    return set(new)


def _count(
    connection: Connection, rows: Sequence[FindingRow], new: set[int], now: datetime
) -> None:
    begun: set[int] = set()
    namings = []
    for row in rows:
        if row.software_first or (row.gpu_id, row.node_id, row.instance_id) == (None, None, None):
            continue  # nothing is held against a device
        first = row.incident_id in new and row.incident_id not in begun
        begun.add(row.incident_id)
        namings.append(
            Naming(
                row.alarm_id,
                row.job_id,
                row.cluster,
                row.gpu_id,
                row.node_id,
                row.instance_id,
                row.family,
                row.kind,
                moment(row.occurred_at),
                first,
            )
        )
    count_namings(connection, namings, now)


def take_back(connection: Connection, alarm_ids: Iterable[int], now: datetime) -> set[int]:
    """Remove the findings of alarms before they are derived anew; give the cases they were in."""
    rows: list[sa.Row[Any]] = []
    for chunk in chunks(sorted(set(alarm_ids)), 500):
        query = sa.select(
            findings.c.alarm_id,
            findings.c.incident_id,
            findings.c.case_id,
            findings.c.gpu_id,
            findings.c.node_id,
            findings.c.instance_id,
        ).where(findings.c.alarm_id.in_(chunk))
        rows.extend(connection.execute(query))
        connection.execute(sa.delete(findings).where(findings.c.alarm_id.in_(chunk)))
    removed: dict[int, set[int]] = {}
    for row in rows:
        removed.setdefault(row.incident_id, set()).add(row.alarm_id)
    for incident in sorted(removed):
        connection.execute(
            sa.update(incidents)
            .where(incidents.c.id == incident)
            .values(alarms=incidents.c.alarms - len(removed[incident]))
        )
    for chunk in chunks(sorted(removed), 500):
        empty = sa.and_(incidents.c.id.in_(chunk), incidents.c.alarms <= 0)
        connection.execute(sa.delete(incidents).where(empty))
    for gpu, node, instance in {(row.gpu_id, row.node_id, row.instance_id) for row in rows}:
        _recount(connection, gpu, node, instance, now)
    return {row.case_id for row in rows}


def _recount(
    connection: Connection, gpu: int | None, node: int | None, instance: str | None, now: datetime
) -> None:
    """Count one device anew from the findings that are left.

    Only a second, contradicting rank map takes back what named a device, so this may read the
    device's history.
    """
    for subject, key, where in (
        ("gpu", gpu, findings.c.gpu_id == gpu),
        ("node", node, findings.c.node_id == node),
        ("instance", instance, findings.c.instance_id == instance),
    ):
        if key is None:
            continue
        for table in (subject_days, subject_jobs, offender_windows):
            mine = sa.and_(table.c.subject == subject, table.c.subject_key == str(key))
            connection.execute(sa.delete(table).where(mine))
        left = connection.execute(
            sa.select(findings, incidents.c.first_at)
            .join(incidents, incidents.c.id == findings.c.incident_id)
            .where(where, findings.c.software_first.is_(False))
            .order_by(findings.c.occurred_at, findings.c.alarm_id)
        ).all()
        count_namings(connection, _namings_of(connection, left, subject), now, fleet_too=False)


def _namings_of(connection: Connection, rows: Sequence[sa.Row[Any]], subject: str) -> list[Naming]:
    """Name only the device that is counted: the others of a finding have their counts."""
    wanted = {row.job_id for row in rows}
    clusters = dict(map(tuple, rows_of_keys(connection, jobs, ("id", "cluster"), wanted)))
    begun: set[int] = set()
    namings = []
    for row in rows:
        first = row.incident_id not in begun
        begun.add(row.incident_id)
        namings.append(
            Naming(
                row.alarm_id,
                row.job_id,
                clusters[row.job_id],
                row.gpu_id if subject == "gpu" else None,
                row.node_id if subject == "node" else None,
                row.instance_id if subject == "instance" else None,
                row.family,
                row.kind,
                row.occurred_at,
                first,
            )
        )
    return namings


def _merge_incident(merged: dict[int, dict[str, Any]], row: FindingRow, count: bool) -> None:
    at = row.occurred_at
    found = merged.get(row.incident_id)
    if found is None:
        merged[row.incident_id] = {
            "id": row.incident_id,
            "job_id": row.job_id,
            "code_digest": row.code_digest,
            "kind": row.kind,
            "gpu_id": None if row.software_first else row.gpu_id,
            "node_id": None if row.software_first else row.node_id,
            "instance_id": None if row.software_first else row.instance_id,
            "case_id": row.case_id,
            "first_at": at,
            "last_at": at,
            "first_rank": row.rank,
            "alarms": 1,
        }
        return
    found["first_at"] = min(found["first_at"], at)
    found["last_at"] = max(found["last_at"], at)
    found["alarms"] += 1 if count else 0
