"""How many audited hours did a GPU work between two moments, and which incidents did it have?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import attempts, incidents, jobs, placements, rank_map_nodes

# A GPU's score hardly moves after so many of its newest attempts and incidents.
ATTEMPTS = 500
INCIDENTS = 50


@dataclass(frozen=True, slots=True)
class Stretch:
    """Audited work of one attempt, spread evenly from its start to its last pass."""

    start: datetime
    end: datetime
    audited_seconds: float

    def hours_between(self, since: datetime, until: datetime) -> float:
        """Give the audited hours that fall between two moments."""
        length = (self.end - self.start).total_seconds()
        if length <= 0:
            inside = 1.0 if since <= self.start <= until else 0.0
        else:
            overlap = min(self.end, until) - max(self.start, since)
            inside = max(overlap, timedelta(0)).total_seconds() / length
        return self.audited_seconds * inside / 3600


@dataclass(frozen=True, slots=True)
class DeviceIncident:
    """One incident of a device; `rank` None: nobody was named."""

    id: int
    kind: str
    first_at: datetime
    last_at: datetime
    job_id: int
    job: str
    rank: int | None
    gpu_id: int | None
    instance_id: str | None
    code_digest: str | None
    alarms: int


INCIDENT_COLUMNS = (
    incidents.c.id,
    incidents.c.kind,
    incidents.c.first_at,
    incidents.c.last_at,
    incidents.c.job_id,
    jobs.c.name,
    incidents.c.first_rank,
    incidents.c.gpu_id,
    incidents.c.instance_id,
    incidents.c.code_digest,
    incidents.c.alarms,
)
"""What a `DeviceIncident` is made of, in its order."""


def audited_stretches(connection: Connection, gpu_id: int) -> list[Stretch]:
    """Read the audited work of the newest attempts that ran on a GPU's machines."""
    query = (
        sa.select(attempts.c.started_at, attempts.c.last_pass_at, attempts.c.audited_seconds)
        .select_from(
            placements.join(rank_map_nodes, rank_map_nodes.c.node_id == placements.c.node_id).join(
                attempts, attempts.c.rank_map_id == rank_map_nodes.c.rank_map_id
            )
        )
        .where(
            placements.c.gpu_id == gpu_id,
            attempts.c.audited_seconds > 0,
            # While the GPU was in that machine.
            attempts.c.started_at >= placements.c.first_seen_at,
            attempts.c.started_at <= placements.c.last_seen_at,
        )
        .order_by(attempts.c.started_at.desc())
        .limit(ATTEMPTS)
    )
    return [
        Stretch(row.started_at, row.last_pass_at or row.started_at, row.audited_seconds)
        for row in connection.execute(query)
    ]


def device_incidents(
    connection: Connection, gpu_id: int | None, instance_id: str | None
) -> list[DeviceIncident]:
    """Read the newest incidents of a GPU or of the instance it is in, oldest first."""
    found: dict[int, DeviceIncident] = {}
    for column, value in ((incidents.c.gpu_id, gpu_id), (incidents.c.instance_id, instance_id)):
        if value is None:
            continue
        query = (
            sa.select(*INCIDENT_COLUMNS)
            .join(jobs, jobs.c.id == incidents.c.job_id)
            .where(column == value)
            .order_by(incidents.c.first_at.desc())
            .limit(INCIDENTS)
        )
        for row in connection.execute(query):
            found[row.id] = DeviceIncident(*tuple(row))
    return sorted(found.values(), key=lambda one: (one.first_at, one.id))


def digest_devices(
    connection: Connection, digests: Sequence[str], since: datetime
) -> list[tuple[str | None, str]]:
    """List (code digest, device) of recent incidents, at most 1,000 of each digest."""
    found: list[tuple[str | None, str]] = []
    for digest in digests:
        query = (
            sa.select(incidents.c.gpu_id, incidents.c.node_id)
            .where(incidents.c.code_digest == digest, incidents.c.first_at >= since)
            .order_by(incidents.c.first_at.desc())
            .limit(1_000)
        )
        for gpu, node in connection.execute(query):
            if gpu is not None or node is not None:
                found.append((digest, f"gpu {gpu}" if gpu is not None else f"node {node}"))
    return found
