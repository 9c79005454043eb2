"""Which evidence does a case rest on, and what is new in it?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import alarms, cases, findings, jobs


@dataclass(frozen=True, slots=True)
class Piece:
    """One finding, as far as somebody must hear of it who decided without it."""

    alarm_id: int
    kind: str
    rank: int | None
    job: str
    step: int
    occurred_at: datetime

    @property
    def words(self) -> str:
        """Say it in one clause."""
        who = f"rank {self.rank}" if self.rank is not None else "nobody named"
        at = f"{self.occurred_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.kind} at step {self.step} of {self.job} ({who}), {at}"


def version(connection: Connection, case_id: int, *, lock: bool = False) -> int:
    """Read the evidence version of a case; a lock keeps new evidence out until the commit."""
    statement = sa.select(cases.c.evidence_version).where(cases.c.id == case_id)
    if lock:
        # SQLite's writer holds the whole database anyway and knows no such clause.
        statement = statement.with_for_update()
    return int(connection.execute(statement).scalar_one())


def newest(connection: Connection, case_id: int, limit: int) -> tuple[Piece, ...]:
    """List the findings of a case that came in last, the newest first.

    By when they came: one that tells of an older time is news all the same.
    """
    rows = connection.execute(
        sa.select(
            findings.c.alarm_id,
            findings.c.kind,
            findings.c.rank,
            jobs.c.name,
            alarms.c.step,
            findings.c.occurred_at,
        )
        .join(alarms, alarms.c.id == findings.c.alarm_id)
        .join(jobs, jobs.c.id == findings.c.job_id)
        .where(findings.c.case_id == case_id)
        .order_by(
            alarms.c.received_at.desc(),
            findings.c.occurred_at.desc(),
            findings.c.alarm_id,
            findings.c.ordinal,
        )
        .limit(limit)
    )
    return tuple(Piece(*row) for row in rows)
