"""Which cases concern a machine, and how does something new about it reach them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.hardware_tests import Machine
from app.store.tables import cases, gpus, nodes

CASES = 100  # of one machine, the newest


@dataclass(frozen=True, slots=True)
class CaseOf:
    """A case that concerns a machine."""

    id: int
    status: str


@dataclass(frozen=True, slots=True)
class SuspectNode:
    """A node of an open case, to be looked at; `case_id` is the newest of its cases."""

    case_id: int
    cluster: str
    node_id: int
    node: str
    uid: str | None
    instance_id: str | None


def cases_on(
    connection: Connection,
    machine: Machine,
    gpu_id: int | None = None,
    also: int | None = None,
) -> tuple[CaseOf, ...]:
    """List the open cases of a machine, or of one GPU in it, and `also` one that may be closed."""
    query = (
        sa.select(cases.c.id, cases.c.status)
        .join(nodes, nodes.c.id == cases.c.node_id)
        .where(cases.c.status == "open", _is(machine))
        .order_by(cases.c.last_alarm_at.desc(), cases.c.id)
        .limit(CASES)
    )
    if gpu_id is not None:
        query = query.where(cases.c.gpu_id == gpu_id)
    found = [CaseOf(*row) for row in connection.execute(query)]
    if also is not None and all(one.id != also for one in found):
        asking = sa.select(cases.c.id, cases.c.status).where(cases.c.id == also)
        found += [CaseOf(*row) for row in connection.execute(asking)]
    return tuple(found)


def _is(machine: Machine) -> sa.ColumnElement[bool]:
    same = nodes.c.cluster == machine.cluster
    if machine.instance_id is not None:
        return sa.and_(same, nodes.c.instance_id == machine.instance_id)
    return sa.and_(same, nodes.c.id == machine.node_id)


def raise_evidence(connection: Connection, case_ids: Sequence[int]) -> None:
    """Say that something new is known of cases: who decided without it has to look again."""
    if case_ids:
        connection.execute(
            sa.update(cases)
            .where(cases.c.id.in_(case_ids))
            .values(evidence_version=cases.c.evidence_version + 1)
        )


def gpu_of(connection: Connection, uuid: str | None) -> int | None:
    """Find a GPU by its canonical UUID; None where it is not known."""
    if uuid is None:
        return None
    found = connection.execute(sa.select(gpus.c.id).where(gpus.c.uuid == uuid)).scalar()
    return None if found is None else int(found)


def suspect_nodes(connection: Connection, limit: int) -> tuple[SuspectNode, ...]:
    """List the nodes of open cases that have a name, the most urgent first."""
    rows = connection.execute(
        sa.select(
            cases.c.id,
            nodes.c.cluster,
            nodes.c.id,
            nodes.c.name,
            nodes.c.uid,
            nodes.c.instance_id,
        )
        .join(nodes, nodes.c.id == cases.c.node_id)
        .where(cases.c.status == "open", nodes.c.name.is_not(None))
        .order_by(cases.c.urgency.desc(), cases.c.last_alarm_at.desc(), cases.c.id)
        .limit(limit)
    )
    found: dict[int, SuspectNode] = {}
    for row in rows:
        found.setdefault(row[2], SuspectNode(*row))
    return tuple(found.values())
