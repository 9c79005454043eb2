"""Which case does a finding join, and how are cases counted up?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.intake.lookup import rows_of_keys
from app.store.intake.upsert import chunks, merge
from app.store.tables import cases, findings, notes, proposals


@dataclass(frozen=True, slots=True)
class Subject:
    """What is under investigation: a GPU, else a node, else a job."""

    kind: str
    id: int


def subject_of(gpu_id: int | None, node_id: int | None, job_id: int) -> Subject:
    """Choose the narrowest thing that is known."""
    if gpu_id is not None:
        return Subject("gpu", gpu_id)
    if node_id is not None:
        return Subject("node", node_id)
    return Subject("job", job_id)


@dataclass(slots=True)
class CaseTouch:
    """What a group of documents adds to one case; times in microseconds."""

    id: int
    subject: Subject
    ordinal: int
    cluster: str
    gpu_id: int | None
    node_id: int | None
    job_id: int
    first_alarm_at: int
    last_alarm_at: int
    last_alarm_id: int
    opened_at: int
    alarm_ids: set[int] = field(default_factory=set)
    changed: bool = False  # something new is known: an incident, a resolution

    def add(self, alarm_id: int, at: int, node_id: int | None, job_id: int) -> None:
        """Count an alarm in."""
        self.alarm_ids.add(alarm_id)
        self.first_alarm_at = min(self.first_alarm_at, at)
        if at >= self.last_alarm_at:
            self.last_alarm_at, self.last_alarm_id = at, alarm_id
            self.job_id = job_id
            self.node_id = node_id if node_id is not None else self.node_id


@dataclass(frozen=True, slots=True)
class _Known:
    id: int
    subject: str
    subject_id: int
    ordinal: int
    status: str
    closed_at: int | None
    last_alarm_at: int


_READ = ("id", "subject", "subject_id", "ordinal", "status", "closed_at", "last_alarm_at")


class CaseBook:
    """Cases by subject, with what a group of documents changes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[Subject, list[_Known]] = {}
        self.touched: dict[int, CaseTouch] = {}

    def load(self, subjects: Iterable[Subject]) -> None:
        """Read the cases of the subjects."""
        wanted = set(subjects) - self._known.keys()
        for subject in wanted:
            self._known[subject] = []
        for kind in {subject.kind for subject in wanted}:
            keys = {subject.id for subject in wanted if subject.kind == kind}
            within = ("subject", kind)
            for row in rows_of_keys(self._connection, cases, _READ, keys, "subject_id", within):
                self._known[Subject(kind, row[2])].append(_Known(*row))

    def join(
        self,
        subject: Subject,
        *,
        alarm_id: int,
        at: int,
        cluster: str,
        node_id: int | None,
        job_id: int,
        now: int,
    ) -> CaseTouch:
        """Find the case that an alarm joins, opening the next one after a closed one."""
        case_id, ordinal = self._pick(subject, at)
        touch = self.touched.get(case_id)
        if touch is None:
            gpu_id = subject.id if subject.kind == "gpu" else None
            touch = CaseTouch(
                case_id, subject, ordinal, cluster, gpu_id, node_id, job_id, at, at, alarm_id, now
            )
            self.touched[case_id] = touch
        touch.add(alarm_id, at, node_id, job_id)
        return touch

    def _pick(self, subject: Subject, at: int) -> tuple[int, int]:
        known = sorted(self._known.get(subject, ()), key=lambda one: one.ordinal)
        for one in reversed(known):
            # An alarm from before the closing belongs to what was closed.
            if one.status == "open" or (one.closed_at is not None and at <= one.closed_at):
                return one.id, one.ordinal
        ordinal = known[-1].ordinal + 1 if known else 1
        return ids.derive("case", subject.kind, subject.id, ordinal), ordinal

    def write(self) -> None:
        """Insert new cases with empty words, merge counts of known ones.

        The newest alarm says where the device is and for whom it worked.
        """
        merge(
            self._connection,
            cases,
            [_row(touch, len(touch.alarm_ids)) for touch in self.touched.values()],
            {
                "alarms": "add",
                "first_alarm_at": "min",
                "evidence_version": "add",
                "last_alarm_at": "newest",
                "last_alarm_id": "newest",
                "job_id": "newest",
                "node_id": "newest",
            },
        )


def _row(touch: CaseTouch, alarms: int) -> dict[str, Any]:
    return {
        "id": touch.id,
        "subject": touch.subject.kind,
        "subject_id": touch.subject.id,
        "ordinal": touch.ordinal,
        "cluster": touch.cluster,
        "gpu_id": touch.gpu_id,
        "node_id": touch.node_id,
        "job_id": touch.job_id,
        "status": "open",
        "opened_at": touch.opened_at,
        "first_alarm_at": touch.first_alarm_at,
        "last_alarm_at": touch.last_alarm_at,
        "last_alarm_id": touch.last_alarm_id,
        "alarms": alarms,
        "evidence_version": 1 if touch.changed else 0,
        "standing": "unknown",
        "headline": "",
        "advice": "",
        "urgency": 0,
        "adjudication": "open",
    }


def drop_or_recount(connection: Connection, case_ids: Iterable[int]) -> set[int]:
    """Recount cases that lost findings; remove those that nothing speaks of any more.

    A case that a person wrote on or decided about stays, closed.  Gives the ids of cases that
    still have findings.
    """
    kept: set[int] = set()
    for chunk in chunks(sorted(set(case_ids)), 500):
        counted = connection.execute(
            sa.select(findings.c.case_id, sa.func.count(findings.c.alarm_id.distinct()))
            .where(findings.c.case_id.in_(chunk))
            .group_by(findings.c.case_id)
        )
        counts: dict[int, int] = {row[0]: row[1] for row in counted}
        for case_id, count in counts.items():
            connection.execute(sa.update(cases).where(cases.c.id == case_id).values(alarms=count))
        kept |= counts.keys()
        _drop(connection, [case_id for case_id in chunk if case_id not in counts])
    return kept


def _drop(connection: Connection, empty: list[int]) -> None:
    """Remove cases without findings, or close those in which a person took part."""
    waiting = sa.and_(proposals.c.case_id.in_(empty), proposals.c.decided_at.is_(None))
    connection.execute(sa.delete(proposals).where(waiting))
    touched = {
        row[0]
        for table in (notes, proposals)
        for row in connection.execute(
            sa.select(table.c.case_id).where(table.c.case_id.in_(empty)).distinct()
        )
    }
    gone = [case_id for case_id in empty if case_id not in touched]
    connection.execute(sa.delete(cases).where(cases.c.id.in_(gone)))
    connection.execute(
        sa.update(cases)
        .where(cases.c.id.in_(sorted(touched)))
        .values(status="closed", closed_at=cases.c.last_alarm_at, alarms=0)
    )
