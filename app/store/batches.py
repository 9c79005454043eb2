"""Which proposals did one person decide together, and which of them were decided?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.tables import approval_batches, cases, jobs, proposals


@dataclass(frozen=True, slots=True)
class Member:
    """What became of one proposal of a batch; `code` and `words` say why it was not decided."""

    proposal_id: int
    kept: bool
    code: str | None
    words: str


@dataclass(frozen=True, slots=True)
class Batch:
    """One decision about many proposals."""

    id: int
    by: str
    at: datetime
    verdict: str
    reason: str | None
    asked: int
    kept: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Whose:
    """Where a proposal belongs: locks are taken by case, rights are bound to cluster and job."""

    proposal_id: int
    case_id: int
    cluster: str
    namespace: str
    action: str
    node_name: str | None


def new_id(connection: Connection, proposal_ids: Sequence[int], by: str, at: datetime) -> int:
    """Derive the id of a batch from what it is; the same thing said twice at once is two."""
    again = 0
    while True:
        batch_id = ids.derive("batch", by, micros(at), again, *sorted(proposal_ids))
        if get(connection, batch_id) is None:
            return batch_id
        again += 1


def add(connection: Connection, batch: Batch) -> None:
    """Keep a batch with what became of each member."""
    row = {**asdict(batch), "members": json.dumps([asdict(one) for one in batch.members])}
    connection.execute(approval_batches.insert().values(row))


def get(connection: Connection, batch_id: int) -> Batch | None:
    """Read one batch."""
    table = approval_batches
    row = connection.execute(sa.select(table).where(table.c.id == batch_id)).first()
    if row is None:
        return None
    members = tuple(Member(**one) for one in json.loads(row.members))
    return Batch(row.id, row.by, row.at, row.verdict, row.reason, row.asked, row.kept, members)


def whose(connection: Connection, proposal_ids: Sequence[int]) -> dict[int, Whose]:
    """Find where proposals belong; those that are not there are left out."""
    query = (
        sa.select(
            proposals.c.id, proposals.c.case_id, proposals.c.cluster, jobs.c.namespace,
            proposals.c.action, proposals.c.node_name,
        )
        .join(cases, cases.c.id == proposals.c.case_id)
        .join(jobs, jobs.c.id == cases.c.job_id)
        .where(proposals.c.id.in_(proposal_ids))
    )  # fmt: skip
    return {row.id: Whose(*row) for row in connection.execute(query)}
