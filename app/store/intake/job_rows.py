"""How are jobs kept up as their documents come?"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from app.store import ids
from app.store.intake.upsert import merge
from app.store.tables import jobs

SEARCH_LETTERS = 200


def job_id(cluster: str, namespace: str, name: str) -> int:
    """Derive a job's id from its three names."""
    return ids.derive("job", cluster, namespace, name)


def searchable(name: str | None) -> str | None:
    """Give the part of a name that is indexed for search."""
    return None if name is None else name[:SEARCH_LETTERS].casefold()


@dataclass(slots=True)
class JobTouch:
    """What a group of documents adds to one job; times in microseconds."""

    id: int
    cluster: str
    namespace: str
    name: str
    first_seen_at: int
    last_seen_at: int
    alarms: int = 0
    last_alarm_at: int | None = None
    last_pass_at: int | None = None
    example: bool = False

    def seen(self, at: int, example: bool) -> None:
        """Widen the interval in which the job was seen."""
        self.first_seen_at = min(self.first_seen_at, at)
        self.last_seen_at = max(self.last_seen_at, at)
        self.example = self.example or example

    def alarmed(self, at: int) -> None:
        """Count an alarm."""
        self.alarms += 1
        self.last_alarm_at = max(self.last_alarm_at or at, at)

    def passed(self, at: int) -> None:
        """Note a pass."""
        self.last_pass_at = max(self.last_pass_at or at, at)


def write_jobs(connection: Connection, touched: list[JobTouch]) -> None:
    """Insert or merge jobs."""
    rows = [
        {
            "id": job.id,
            "cluster": job.cluster,
            "namespace": job.namespace,
            "name": job.name,
            "search": searchable(job.name),
            "first_seen_at": job.first_seen_at,
            "last_seen_at": job.last_seen_at,
            "alarms": job.alarms,
            "last_alarm_at": job.last_alarm_at,
            "last_pass_at": job.last_pass_at,
            "example": job.example,
        }
        for job in touched
    ]
    merge(
        connection,
        jobs,
        rows,
        {
            "first_seen_at": "min",
            "last_seen_at": "max",
            "alarms": "add",
            "last_alarm_at": "max",
            "last_pass_at": "max",
            "example": "or",
        },
    )
