"""What did people write about a job: notes, and triages with their answers?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import jobs, notes

LONGEST = 8_000


@dataclass(frozen=True, slots=True)
class JobNote:
    """One note; `details` holds what a triage was answered, None for a plain note."""

    id: int
    at: datetime
    author: str
    kind: str
    text: str
    details: Mapping[str, Any] | None


def add_to_job(
    connection: Connection,
    job_id: int,
    author: str,
    text: str,
    at: datetime,
    details: Mapping[str, Any] | None = None,
) -> bool:
    """Keep a note on a job, a triage where it has details; False where there is no such job."""
    known = connection.execute(sa.select(jobs.c.id).where(jobs.c.id == job_id)).first()
    if known is None:
        return False
    connection.execute(
        sa.insert(notes).values(
            at=at,
            author=author,
            job_id=job_id,
            kind="note" if details is None else "triage",
            text=text,
            details=None if details is None else json.dumps(details, ensure_ascii=False),
        )
    )
    return True


def of_job(connection: Connection, job_id: int, limit: int = 50) -> tuple[JobNote, ...]:
    """Read the newest notes of a job, the newest first."""
    rows = connection.execute(
        sa.select(
            notes.c.id, notes.c.at, notes.c.author, notes.c.kind, notes.c.text, notes.c.details
        )
        .where(notes.c.job_id == job_id)
        .order_by(notes.c.id.desc())
        .limit(limit)
    )
    return tuple(
        JobNote(*row[:5], None if row.details is None else json.loads(row.details)) for row in rows
    )
