"""Which proposals are there, in a stated order, a page at a time?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.filters import Filters
from app.store import ids
from app.store.columns import micros
from app.store.proposals import COLUMNS, Proposal, from_row
from app.store.tables import cases, jobs, proposals

Key = tuple[int, int]  # created in microseconds, id


@dataclass(frozen=True, slots=True)
class ListedProposal:
    """A proposal with what its case says."""

    proposal: Proposal
    headline: str
    standing: str
    rule: str | None
    case_version: int
    case_status: str
    job_id: int
    job: str
    namespace: str
    example: bool

    @property
    def key(self) -> Key:
        """Give the place in a list by time of creation."""
        return micros(self.proposal.created_at), self.proposal.id

    @property
    def evidence_version(self) -> int:
        """Give the version that a decision made now is bound to, or was bound to."""
        waiting = self.proposal.status == "proposed"
        return self.case_version if waiting else self.proposal.evidence_version


_BESIDE = (
    cases.c.headline,
    cases.c.standing,
    cases.c.rule,
    cases.c.evidence_version,
    cases.c.status,
    jobs.c.id,
    jobs.c.name,
    jobs.c.namespace,
    jobs.c.example,
)
_FROM = proposals.join(cases, cases.c.id == proposals.c.case_id).join(
    jobs, jobs.c.id == cases.c.job_id
)


def _listed(row: Any) -> ListedProposal:
    return ListedProposal(from_row(row), *row[len(COLUMNS) :])


def one(connection: Connection, proposal_id: int) -> ListedProposal | None:
    """Read one proposal with its case."""
    query = sa.select(*COLUMNS, *_BESIDE).select_from(_FROM).where(proposals.c.id == proposal_id)
    row = connection.execute(query).first()
    return None if row is None else _listed(row)


def page(
    connection: Connection,
    wanted: Filters,
    after: Key | None,
    limit: int,
    *,
    statuses: Collection[str] = (),
    blocked: bool | None = None,
    oldest_first: bool = False,
    bound: tuple[str | None, str | None] = (None, None),
) -> tuple[ListedProposal, ...]:
    """List proposals by the time of their creation.

    `blocked` leaves only those that cannot be approved now, or only those that can.
    """
    query = sa.select(*COLUMNS, *_BESIDE).select_from(_FROM).where(*_conditions(wanted))
    cluster, namespace = bound
    if cluster is not None:
        query = query.where(proposals.c.cluster == cluster)
    if namespace is not None:
        query = query.where(jobs.c.namespace == namespace)
    if blocked is not None:
        column = proposals.c.blocked
        query = query.where(column.is_not(None) if blocked else column.is_(None))
    if statuses:
        query = query.where(proposals.c.status.in_(statuses))
    created = sa.type_coerce(proposals.c.created_at, sa.BigInteger)
    if after is not None:
        at, proposal_id = after
        beyond = created > at if oldest_first else created < at
        query = query.where(sa.or_(beyond, sa.and_(created == at, proposals.c.id > proposal_id)))
    order = proposals.c.created_at.asc() if oldest_first else proposals.c.created_at.desc()
    query = query.order_by(order, proposals.c.id).limit(limit)
    return tuple(_listed(row) for row in connection.execute(query))


def _conditions(wanted: Filters) -> list[sa.ColumnElement[bool]]:
    plain = (
        (proposals.c.cluster, wanted.cluster),
        (jobs.c.namespace, wanted.namespace),
        (proposals.c.instance_id, wanted.instance),
        (proposals.c.gpu_uuid, wanted.gpu),
        (proposals.c.status, wanted.status),
        (cases.c.rule, wanted.rule),
    )
    found: list[sa.ColumnElement[bool]] = [c.in_(values) for c, values in plain if values]
    for name, row_id, values in (
        (jobs.c.name, jobs.c.id, wanted.job),
        (proposals.c.node_name, proposals.c.node_id, wanted.node),
    ):
        if values:
            found.append(sa.or_(name.in_(values), row_id.in_(_ids(values))))
    if wanted.since is not None:
        found.append(proposals.c.created_at >= wanted.since)
    if wanted.until is not None:
        found.append(proposals.c.created_at < wanted.until)
    if wanted.q:
        texts = (proposals.c.node_name, jobs.c.name, cases.c.headline)
        found.append(sa.or_(*(c.icontains(wanted.q, autoescape=True) for c in texts)))
    return found


def _ids(values: Collection[str]) -> list[int]:
    found = []
    for value in values:
        try:
            found.append(ids.read(value))
        except ValueError:
            continue
    return found


def counts(connection: Connection) -> dict[tuple[str, bool], int]:
    """Count all proposals by status and by whether something stands in the way."""
    held = sa.case((proposals.c.blocked.is_(None), 0), else_=1)
    rows = connection.execute(
        sa.select(proposals.c.status, held, sa.func.count()).group_by(proposals.c.status, held)
    )
    return {(row[0], bool(row[1])): row[2] for row in rows}


def of_case(connection: Connection, case_id: int) -> tuple[ListedProposal, ...]:
    """Read all proposals of a case, the oldest first."""
    query = (
        sa.select(*COLUMNS, *_BESIDE)
        .select_from(_FROM)
        .where(proposals.c.case_id == case_id)
        .order_by(proposals.c.created_at, proposals.c.action, proposals.c.ordinal)
    )
    return tuple(_listed(row) for row in connection.execute(query))
