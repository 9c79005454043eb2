"""Which evidence does a case rest on, and what is new in it?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import alarms, audit_entries, cases, findings, jobs

# What raises a case's evidence beside findings, by the verbs under which it is audited.
SAID = ("test.%", "gpu.condemned_back")


@dataclass(frozen=True, slots=True)
class Piece:
    """One finding, or one thing said of the machine, that somebody decided without.

    `alarm_id` None: it is no finding; `said` says then what it is.
    """

    alarm_id: int | None
    kind: str
    rank: int | None
    job: str
    step: int
    occurred_at: datetime
    said: str | None = None

    @property
    def words(self) -> str:
        """Say it in one clause."""
        if self.said is not None:
            return self.said.rstrip(".")
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
    """List what came in last for a case, the newest first: findings, tests, a GPU that is back.

    By when it came: one that tells of an older time is news all the same.
    """
    found = [*_findings(connection, case_id, limit), *_said(connection, case_id, limit)]
    found.sort(key=lambda one: one[0], reverse=True)
    return tuple(piece for _, piece in found[:limit])


def _findings(connection: Connection, case_id: int, limit: int) -> list[tuple[datetime, Piece]]:
    rows = connection.execute(
        sa.select(
            alarms.c.received_at,
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
    return [(at, Piece(*rest)) for at, *rest in rows]


def _said(connection: Connection, case_id: int, limit: int) -> list[tuple[datetime, Piece]]:
    entries = audit_entries.c
    rows = connection.execute(
        sa.select(entries.at, entries.verb, entries.summary)
        .where(
            entries.case_id == case_id,
            sa.or_(*(entries.verb.like(one) for one in SAID)),
            entries.verb != "test.running",
        )
        .order_by(entries.id.desc())
        .limit(limit)
    )
    return [(at, Piece(None, verb, None, "", 0, at, said)) for at, verb, said in rows]
