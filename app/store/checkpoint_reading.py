"""Which checkpoints of a job lie around a suspect window, and which windows are still open?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import alarms, attempts, cases, checkpoints, coverage, findings
from witness.rules.resume import Checkpoint

BEFORE, INSIDE, AFTER = 25, 200, 10
WINDOWS = 500
HARMLESS = ("software", "not reproduced")
"""Adjudications after which an alarm no longer limits where its job resumes."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """One checkpoint with the attempt that saved it, None where that is not known."""

    checkpoint: Checkpoint
    attempt_id: int | None


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """The suspect window of an alarm that nobody has adjudicated as harmless."""

    alarm_id: int
    attempt_id: int | None
    first: int
    last: int
    occurred_at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class LaterRun:
    """An attempt that began after a moment: its first step and its newest committed checkpoint."""

    attempt_id: int
    first_step: int
    newest_checkpoint: int


_COLUMNS = (
    checkpoints.c.step,
    checkpoints.c.uri,
    checkpoints.c.saved_at,
    checkpoints.c.committed,
    checkpoints.c.last_audit_pass,
    checkpoints.c.last_weight_check_pass,
    checkpoints.c.tagged,
    checkpoints.c.parent,
)


def read_around(
    connection: Connection, job_id: int, bounds: Iterable[int], last: int
) -> tuple[SavedState, ...]:
    """Read the newest checkpoints before each bound, in the order of their steps.

    Those from the highest bound on to `last`, and a few after it, come with them.
    """
    limits = sorted(set(bounds))
    step = checkpoints.c.step
    found: dict[tuple[int, str | None], SavedState] = {}
    reads = [(step < bound, step.desc(), BEFORE) for bound in limits]
    # What is complete may lie further back than a row of unfinished ones.
    reads += [
        (sa.and_(step < bound, checkpoints.c.committed.is_(True)), step.desc(), 2)
        for bound in limits
    ]
    if limits:
        reads.append((sa.and_(step >= limits[-1], step <= last), step.desc(), INSIDE))
    reads.append((step > last, step.asc(), AFTER))
    for where, order, limit in reads:
        query = (
            sa.select(*_COLUMNS, checkpoints.c.attempt_id)
            .where(checkpoints.c.job_id == job_id, where)
            .order_by(order)
            .limit(limit)
        )
        for row in connection.execute(query):
            found[row.step, row.uri] = SavedState(Checkpoint(*row[:-1]), row[-1])
    return tuple(
        sorted(found.values(), key=lambda one: (one.checkpoint.step, one.checkpoint.uri or ""))
    )


def read_newest(connection: Connection, job_id: int, limit: int) -> tuple[SavedState, ...]:
    """Read the newest checkpoints of a job by step, the newest first."""
    query = (
        sa.select(*_COLUMNS, checkpoints.c.attempt_id)
        .where(checkpoints.c.job_id == job_id)
        .order_by(checkpoints.c.step.desc())
        .limit(limit)
    )
    return tuple(SavedState(Checkpoint(*row[:-1]), row[-1]) for row in connection.execute(query))


def read_windows(connection: Connection, job_id: int) -> tuple[OpenWindow, ...]:
    """Read the suspect windows of a job's alarms, leaving out those adjudicated as harmless."""
    still_open = (
        sa.select(findings.c.alarm_id)
        .join(cases, cases.c.id == findings.c.case_id)
        .where(
            findings.c.alarm_id == alarms.c.id,
            sa.or_(cases.c.status != "closed", cases.c.adjudication.not_in(HARMLESS)),
        )
        .exists()
    )
    query = (
        sa.select(
            alarms.c.id,
            alarms.c.attempt_id,
            alarms.c.window_first,
            alarms.c.window_last,
            alarms.c.occurred_at,
            alarms.c.summary,
        )
        .where(
            alarms.c.job_id == job_id,
            alarms.c.window_first.is_not(None),
            alarms.c.window_last.is_not(None),
            still_open,
        )
        .order_by(alarms.c.window_first, alarms.c.id)
        .limit(WINDOWS)
    )
    return tuple(OpenWindow(*row) for row in connection.execute(query))


def read_later_runs(connection: Connection, job_id: int, after: datetime) -> tuple[LaterRun, ...]:
    """Read attempts first seen after a moment that passed a check and saved something complete."""
    first = sa.func.min(coverage.c.first_step)
    newest = (
        sa.select(sa.func.max(checkpoints.c.step))
        .where(
            checkpoints.c.job_id == job_id,
            checkpoints.c.attempt_id == attempts.c.id,
            checkpoints.c.committed.is_(True),
        )
        .scalar_subquery()
    )
    query = (
        sa.select(attempts.c.id, first, newest)
        .join(coverage, coverage.c.attempt_id == attempts.c.id)
        .where(attempts.c.job_id == job_id, attempts.c.first_seen_at > after)
        .group_by(attempts.c.id)
        .limit(WINDOWS)
    )
    return tuple(
        LaterRun(row[0], row[1], row[2]) for row in connection.execute(query) if row[2] is not None
    )
