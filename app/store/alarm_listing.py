"""Which alarms fit a filter, newest first, however many there are?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store import ids, search
from app.store.columns import micros, moment
from app.store.tables import alarms, attempts, cases, findings, gpus, jobs, nodes
from witness.rules.identity import gpu_uuid

FINDINGS_A_ROW = 20
_HITS = 200

STANDINGS = ("suspect", "ambiguous", "software", "unknown")
CASE_STATES = ("open", "closed")


@dataclass(frozen=True, slots=True)
class NamedRank:
    """One finding of a listed alarm, short."""

    rule: str | None
    kind: str
    rank: int | None
    node_id: int | None
    node: str | None
    instance_id: str | None
    gpu_id: int | None
    gpu_uuid: str | None
    case_id: int


@dataclass(frozen=True, slots=True)
class ListedAlarm:
    """One alarm of a list; `named` holds up to 20 findings, `more` says that there are others."""

    id: int
    cluster: str
    namespace: str
    job_id: int
    job: str
    example: bool
    attempt: int | None
    check: str
    family: str
    step: int
    occurred_at: datetime
    time_note: str | None
    received_at: datetime
    last_received_at: datetime
    received: int
    reporters: int
    window_first: int | None
    window_last: int | None
    map_state: str
    conflicts: int
    rule: str | None
    standing: str
    summary: str
    named: tuple[NamedRank, ...]
    more: bool

    @property
    def key(self) -> tuple[int, int]:
        """Give the keyset of the list's order."""
        return micros(self.occurred_at), self.id


_COLUMNS = (
    alarms.c.id,
    alarms.c.cluster,
    jobs.c.namespace,
    alarms.c.job_id,
    jobs.c.name,
    jobs.c.example,
    attempts.c.number,
    alarms.c.check_name,
    alarms.c.family,
    alarms.c.step,
    alarms.c.occurred_at,
    alarms.c.time_note,
    alarms.c.received_at,
    alarms.c.last_received_at,
    alarms.c.received,
    alarms.c.reporters,
    alarms.c.window_first,
    alarms.c.window_last,
    alarms.c.map_state,
    alarms.c.conflicts,
    alarms.c.rule,
    alarms.c.standing,
    alarms.c.summary,
)


def list_alarms(
    connection: Connection,
    filters: Filters,
    after: tuple[int, int] | None,
    limit: int,
    bound: tuple[str | None, str | None] = (None, None),
) -> tuple[ListedAlarm, ...]:
    """Read one page; `bound` is the cluster and namespace that a token is for."""
    joined = alarms.join(jobs, jobs.c.id == alarms.c.job_id).outerjoin(
        attempts, attempts.c.id == alarms.c.attempt_id
    )
    query = sa.select(*_COLUMNS).select_from(joined).where(*_wanted(connection, filters))
    cluster, namespace = bound
    if cluster is not None:
        query = query.where(alarms.c.cluster == cluster)
    if namespace is not None:
        query = query.where(jobs.c.namespace == namespace)
    if after is not None:
        at = moment(after[0])
        older = sa.and_(alarms.c.occurred_at == at, alarms.c.id < after[1])
        query = query.where(alarms.c.occurred_at <= at, sa.or_(alarms.c.occurred_at < at, older))
    query = query.order_by(alarms.c.occurred_at.desc(), alarms.c.id.desc()).limit(limit)
    rows = connection.execute(query).all()
    named = _named(connection, [row[0] for row in rows])
    return tuple(
        ListedAlarm(
            *[
                *row,
                tuple(named.get(row[0], ())[:FINDINGS_A_ROW]),
                len(named.get(row[0], ())) > FINDINGS_A_ROW,
            ]
        )
        for row in rows
    )


def _named(connection: Connection, alarm_ids: list[int]) -> dict[int, list[NamedRank]]:
    if not alarm_ids:
        return {}
    joined = findings.outerjoin(nodes, nodes.c.id == findings.c.node_id).outerjoin(
        gpus, gpus.c.id == findings.c.gpu_id
    )
    query = (
        sa.select(
            findings.c.alarm_id,
            findings.c.rule,
            findings.c.kind,
            findings.c.rank,
            findings.c.node_id,
            nodes.c.name,
            findings.c.instance_id,
            findings.c.gpu_id,
            gpus.c.uuid,
            findings.c.case_id,
        )
        .select_from(joined)
        .where(findings.c.alarm_id.in_(alarm_ids), findings.c.ordinal <= FINDINGS_A_ROW)
        .order_by(findings.c.alarm_id, findings.c.ordinal)
    )
    found: dict[int, list[NamedRank]] = {}
    for row in connection.execute(query):
        found.setdefault(row[0], []).append(NamedRank(*list(row[1:])))
    return found


def _wanted(connection: Connection, filters: Filters) -> list[sa.ColumnElement[bool]]:
    wanted: list[sa.ColumnElement[bool]] = []
    if filters.cluster:
        wanted.append(alarms.c.cluster.in_(filters.cluster))
    if filters.namespace:
        wanted.append(jobs.c.namespace.in_(filters.namespace))
    if filters.job:
        wanted.append(_name_or_id(jobs.c.name, alarms.c.job_id, filters.job))
    if filters.check:
        checks = filters.check
        wanted.append(sa.or_(alarms.c.check_name.in_(checks), alarms.c.family.in_(checks)))
    if filters.since is not None:
        wanted.append(alarms.c.occurred_at >= filters.since)
    if filters.until is not None:
        wanted.append(alarms.c.occurred_at < filters.until)
    wanted += _about_findings(filters)
    if filters.status:
        wanted.append(_status(filters.status))
    if filters.q:
        wanted.append(_text(connection, filters.q.strip()))
    return wanted


def _about_findings(filters: Filters) -> list[sa.ColumnElement[bool]]:
    """Give a condition for each filter on what an alarm found."""
    wanted: list[sa.ColumnElement[bool]] = []
    if filters.rule:
        wanted.append(_found(findings.c.rule.in_(filters.rule)))
    if filters.instance:
        wanted.append(_found(findings.c.instance_id.in_(filters.instance)))
    if filters.node:
        named = sa.select(nodes.c.id).where(_name_or_id(nodes.c.name, nodes.c.id, filters.node))
        wanted.append(_found(findings.c.node_id.in_(named)))
    if filters.gpu:
        uuids = [gpu_uuid(text).canonical or text for text in filters.gpu]
        named = sa.select(gpus.c.id).where(
            sa.or_(gpus.c.uuid.in_(uuids), gpus.c.id.in_(_ids(filters.gpu)))
        )
        wanted.append(_found(findings.c.gpu_id.in_(named)))
    return wanted


def _found(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return alarms.c.id.in_(sa.select(findings.c.alarm_id).where(condition))


def _status(status: tuple[str, ...]) -> sa.ColumnElement[bool]:
    """Fit an alarm's standing, or the state of a case that it belongs to."""
    either: list[sa.ColumnElement[bool]] = []
    standings = [one for one in status if one in STANDINGS]
    states = [one for one in status if one in CASE_STATES]
    if standings:
        either.append(alarms.c.standing.in_(standings))
    if states:
        in_state = sa.select(cases.c.id).where(cases.c.status.in_(states))
        either.append(_found(findings.c.case_id.in_(in_state)))
    return sa.or_(*either) if either else sa.false()


def _text(connection: Connection, text: str) -> sa.ColumnElement[bool]:
    """Fit jobs, nodes, instances and GPUs whose names begin with the text, and ids."""
    in_jobs = [hit.id for hit in search.jobs_like(connection, text, _HITS)]
    on_nodes = [hit.id for hit in search.nodes_like(connection, text, _HITS)]
    on_gpus = [hit.id for hit in search.gpus_like(connection, text, _HITS)]
    device = sa.or_(findings.c.node_id.in_(on_nodes), findings.c.gpu_id.in_(on_gpus))
    either: list[Any] = [alarms.c.job_id.in_(in_jobs), alarms.c.id.in_(_ids((text,)))]
    if on_nodes or on_gpus:
        either.append(_found(device))
    return sa.or_(*either)


def _name_or_id(
    name: sa.ColumnElement[Any], row_id: sa.ColumnElement[Any], given: tuple[str, ...]
) -> sa.ColumnElement[bool]:
    return sa.or_(name.in_(given), row_id.in_(_ids(given)))


def _ids(given: tuple[str, ...]) -> list[int]:
    """Read those of the texts that are ids."""
    found = []
    for text in given:
        try:
            found.append(ids.read(text.lower()))
        except ValueError:
            continue
    return found
