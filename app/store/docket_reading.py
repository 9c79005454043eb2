"""Which cases stand on the docket, in which order, and for whom does each wait?

Whom a case waits for follows from its proposals, so that no second state can contradict them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store import ids
from app.store.columns import micros
from app.store.tables import alarms, cases, documents, gpus, jobs, nodes, proposals

PERSON, CLUSTER, WATCHED = 0, 1, 2

Key = tuple[int, int, int, int]  # group, urgency, last alarm in microseconds, id
# Cluster and namespace outside which an asker sees nothing; None: no bound.
Bound = tuple[str | None, str | None]
EVERYWHERE: Bound = (None, None)


@dataclass(frozen=True, slots=True)
class DocketCase:
    """One row of the docket, from the case and its newest alarm."""

    id: int
    subject: str
    cluster: str
    gpu_id: int | None
    node_id: int | None
    job_id: int
    status: str
    opened_at: datetime
    closed_at: datetime | None
    first_alarm_at: datetime
    last_alarm_at: datetime
    last_alarm_id: int
    alarms: int
    evidence_version: int
    standing: str
    rule: str | None
    rank: int | None
    headline: str
    advice: str
    urgency: int
    recurrence: str | None
    adjudication: str
    job: str
    namespace: str
    example: bool
    node: str | None
    instance_id: str | None
    cordon: str | None
    cordon_read_at: datetime | None
    gpu_uuid: str | None
    step: int
    check: str
    reporters: int
    attempt_id: int | None
    group: int

    @property
    def key(self) -> Key:
        """Give the place in the order of the docket."""
        return self.group, self.urgency, micros(self.last_alarm_at), self.id


@dataclass(frozen=True, slots=True)
class DocketCounts:
    """How many open cases there are of each sort, and how many closed ones."""

    open: int = 0
    person: int = 0
    cluster: int = 0
    watched: int = 0
    suspect: int = 0
    ambiguous: int = 0
    software: int = 0
    closed: int = 0


def _has(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.exists().where(proposals.c.case_id == cases.c.id, *conditions)


def _group() -> sa.ColumnElement[int]:
    status = proposals.c.status
    asked = _has(
        sa.or_(sa.and_(status == "proposed", proposals.c.blocked.is_(None)), status == "unknown")
    )
    under_way = _has(status.in_(("approved", "executing", "accepted")))
    decided = _has(proposals.c.decided_by.is_not(None))
    unseen = sa.and_(
        ~decided, cases.c.standing != "software", cases.c.adjudication == "open"
    )  # nobody has decided anything about it: a person must look
    return sa.case((asked, PERSON), (under_way, CLUSTER), (unseen, PERSON), else_=WATCHED)


_FROM = (
    cases.join(jobs, jobs.c.id == cases.c.job_id)
    .join(alarms, alarms.c.id == cases.c.last_alarm_id)
    .outerjoin(nodes, nodes.c.id == cases.c.node_id)
    .outerjoin(gpus, gpus.c.id == cases.c.gpu_id)
)
_COLUMNS = (
    cases.c.id, cases.c.subject, cases.c.cluster, cases.c.gpu_id, cases.c.node_id,
    cases.c.job_id, cases.c.status, cases.c.opened_at, cases.c.closed_at,
    cases.c.first_alarm_at, cases.c.last_alarm_at, cases.c.last_alarm_id, cases.c.alarms,
    cases.c.evidence_version, cases.c.standing, cases.c.rule, cases.c.rank, cases.c.headline,
    cases.c.advice, cases.c.urgency, cases.c.recurrence, cases.c.adjudication,
    jobs.c.name.label("job"), jobs.c.namespace, jobs.c.example,
    nodes.c.name.label("node"), nodes.c.instance_id, nodes.c.cordon, nodes.c.cordon_read_at,
    gpus.c.uuid.label("gpu_uuid"),
    alarms.c.step, alarms.c.check_name, alarms.c.reporters, alarms.c.attempt_id,
)  # fmt: skip


def _case(row: Any) -> DocketCase:
    return DocketCase(*row)


def one(connection: Connection, case_id: int) -> DocketCase | None:
    """Read one case."""
    query = sa.select(*_COLUMNS, _group()).select_from(_FROM).where(cases.c.id == case_id)
    row = connection.execute(query).first()
    return None if row is None else _case(row)


def open_cases(
    connection: Connection,
    show: str,
    wanted: Filters,
    after: Key | None,
    limit: int,
    bound: Bound = EVERYWHERE,
) -> tuple[DocketCase, ...]:
    """List open cases, the most urgent of each group first, after the place `after`."""
    group = _group()
    inner = (
        sa.select(*_COLUMNS, group.label("waits_for"))
        .select_from(_FROM)
        .where(cases.c.status == "open", *_conditions(wanted), *_within(bound))
    )
    if show in ("suspect", "ambiguous", "software"):
        inner = inner.where(cases.c.standing == show)
    listed = inner.subquery()
    query = sa.select(listed)
    if show == "me":
        query = query.where(listed.c.waits_for == PERSON)
    if after is not None:
        query = query.where(_after(listed, after))
    query = query.order_by(
        listed.c.waits_for, listed.c.urgency.desc(), listed.c.last_alarm_at.desc(), listed.c.id
    ).limit(limit)
    return tuple(_case(row) for row in connection.execute(query))


def _after(listed: Any, after: Key) -> sa.ColumnElement[bool]:
    group, urgency, last, case_id = after
    at = sa.type_coerce(listed.c.last_alarm_at, sa.BigInteger)
    later: sa.ColumnElement[bool] = sa.or_(at < last, sa.and_(at == last, listed.c.id > case_id))
    within = sa.or_(listed.c.urgency < urgency, sa.and_(listed.c.urgency == urgency, later))
    return sa.or_(listed.c.waits_for > group, sa.and_(listed.c.waits_for == group, within))


def closed_cases(
    connection: Connection,
    wanted: Filters,
    after: Key | None,
    limit: int,
    bound: Bound = EVERYWHERE,
) -> tuple[DocketCase, ...]:
    """List closed cases, the newest alarm first."""
    query = (
        sa.select(*_COLUMNS, sa.literal(WATCHED))
        .select_from(_FROM)
        .where(cases.c.status == "closed", *_conditions(wanted), *_within(bound))
    )
    at = sa.type_coerce(cases.c.last_alarm_at, sa.BigInteger)
    if after is not None:
        query = query.where(sa.or_(at < after[2], sa.and_(at == after[2], cases.c.id > after[3])))
    query = query.order_by(cases.c.last_alarm_at.desc(), cases.c.id).limit(limit)
    return tuple(_case(row) for row in connection.execute(query))


def counts(connection: Connection, wanted: Filters) -> DocketCounts:
    """Count the cases that the filters leave."""
    listed = (
        sa.select(cases.c.standing, _group().label("waits_for"))
        .select_from(_FROM)
        .where(cases.c.status == "open", *_conditions(wanted))
        .subquery()
    )
    rows = connection.execute(
        sa.select(listed.c.standing, listed.c.waits_for, sa.func.count()).group_by(
            listed.c.standing, listed.c.waits_for
        )
    ).all()
    closed = connection.execute(
        sa.select(sa.func.count())
        .select_from(_FROM)
        .where(cases.c.status == "closed", *_conditions(wanted))
    ).scalar_one()

    def number(standing: str | None = None, group: int | None = None) -> int:
        return sum(n for s, g, n in rows if standing in (None, s) and group in (None, g))

    return DocketCounts(
        number(), number(group=PERSON), number(group=CLUSTER), number(group=WATCHED),
        number("suspect"), number("ambiguous"), number("software"), int(closed),
    )  # fmt: skip


def _within(bound: Bound) -> list[sa.ColumnElement[bool]]:
    cluster, namespace = bound
    found: list[sa.ColumnElement[bool]] = []
    if cluster is not None:
        found.append(cases.c.cluster == cluster)
    if namespace is not None:
        found.append(jobs.c.namespace == namespace)
    return found


def _conditions(wanted: Filters) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    plain = (
        (cases.c.cluster, wanted.cluster),
        (jobs.c.namespace, wanted.namespace),
        (nodes.c.instance_id, wanted.instance),
        (cases.c.rule, wanted.rule),
        (alarms.c.check_name, wanted.check),
    )
    found += [column.in_(values) for column, values in plain if values]
    found += _named(jobs.c.name, cases.c.job_id, wanted.job)
    found += _named(nodes.c.name, cases.c.node_id, wanted.node)
    found += _named(gpus.c.uuid, cases.c.gpu_id, wanted.gpu)
    if wanted.since is not None:
        found.append(cases.c.last_alarm_at >= wanted.since)
    if wanted.until is not None:
        found.append(cases.c.last_alarm_at < wanted.until)
    if wanted.q:
        columns = (jobs.c.name, nodes.c.name, nodes.c.instance_id, gpus.c.uuid, cases.c.headline)
        found.append(sa.or_(*(c.icontains(wanted.q, autoescape=True) for c in columns)))
    return found


def _named(
    name: sa.Column[str], id_column: sa.Column[Any], values: Iterable[str]
) -> list[sa.ColumnElement[bool]]:
    """Match a filter value that is either a name or one of our ids."""
    given = tuple(values)
    if not given:
        return []
    row_ids = []
    for value in given:
        try:
            row_ids.append(ids.read(value))
        except ValueError:
            continue
    return [sa.or_(name.in_(given), id_column.in_(row_ids))]


def newest_document(connection: Connection) -> datetime | None:
    """Read when the newest document came; None: none has come yet."""
    at = connection.execute(
        sa.select(documents.c.received_at).order_by(documents.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    assert at is None or isinstance(at, datetime)
    return at
