"""Which machines are jobs asked to audit closely, who took that up, and how often did it pass?"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store import ids
from app.store.columns import micros
from app.store.intake.rank_map_rows import topology_of
from app.store.intake.upsert import insert_new
from app.store.tables import (
    attempts,
    findings,
    nodes,
    passes,
    proposals,
    rank_map_nodes,
    targeted_audits,
)

ASKED = ("open", "taken")
"""States in which jobs are asked."""
LISTED = 200
ATTEMPTS = 200  # of one machine, the newest


@dataclass(frozen=True, slots=True)
class TargetedAudit:
    """One standing order; `namespace` and `job` None: any job that runs on the machine.

    `probation`: it stands until its end, however many audits pass. `taken_by` holds the job and
    the attempt that took it first.
    """

    id: int
    proposal_id: int
    cluster: str
    namespace: str | None
    job: str | None
    node_name: str | None
    instance_id: str | None
    gpu_uuid: str | None
    audit_every: int
    passes_wanted: int
    asked_at: datetime
    ends_at: datetime
    state: str
    taken_by: Mapping[str, Any]
    taken_at: datetime | None
    passes: int
    settled_at: datetime | None
    probation: bool


@dataclass(frozen=True, slots=True)
class NewAudit:
    """A standing order to be kept; times aware."""

    proposal_id: int
    cluster: str
    node_name: str | None
    instance_id: str | None
    gpu_uuid: str | None
    audit_every: int
    passes_wanted: int
    asked_at: datetime
    ends_at: datetime
    namespace: str | None = None
    job: str | None = None


_TABLE = targeted_audits


def add(connection: Connection, one: NewAudit) -> int:
    """Keep a standing order, once an order of ours; give its id."""
    row_id = ids.derive("targeted audit", one.proposal_id)
    row = {
        "id": row_id, "proposal_id": one.proposal_id, "cluster": one.cluster,
        "namespace": one.namespace, "job": one.job, "node_name": one.node_name,
        "instance_id": one.instance_id, "gpu_uuid": one.gpu_uuid,
        "audit_every": one.audit_every, "passes_wanted": one.passes_wanted,
        "asked_at": micros(one.asked_at), "ends_at": micros(one.ends_at), "state": "open",
        "passes": 0,
    }  # fmt: skip
    insert_new(connection, targeted_audits, [row])
    return row_id


def _query() -> sa.Select[Any]:
    probation = sa.case((proposals.c.action == "uncordon", 1), else_=0)
    return sa.select(*_TABLE.c, probation.label("probation")).select_from(
        _TABLE.outerjoin(proposals, proposals.c.id == _TABLE.c.proposal_id)
    )


def _read(connection: Connection, query: sa.Select[Any]) -> tuple[TargetedAudit, ...]:
    found = []
    for row in connection.execute(query):
        values = row._asdict()
        values["taken_by"] = json.loads(values["taken_by"]) if values["taken_by"] else {}
        found.append(TargetedAudit(**{**values, "probation": bool(values["probation"])}))
    return tuple(found)


def of_proposals(
    connection: Connection, proposal_ids: Collection[int]
) -> tuple[TargetedAudit, ...]:
    """Read the standing orders of some proposals, the oldest first."""
    query = _query().where(_TABLE.c.proposal_id.in_(proposal_ids))
    return _read(connection, query.order_by(_TABLE.c.asked_at, _TABLE.c.id))


def asked_of(
    connection: Connection, cluster: str, namespace: str, job: str, now: datetime
) -> tuple[TargetedAudit, ...]:
    """List what the next attempt of a job is asked, the oldest first, some at most."""
    query = _query().where(
        _TABLE.c.state.in_(ASKED),
        _TABLE.c.cluster == cluster,
        sa.or_(_TABLE.c.namespace.is_(None), _TABLE.c.namespace == namespace),
        sa.or_(_TABLE.c.job.is_(None), _TABLE.c.job == job),
        _TABLE.c.ends_at > now,
    )
    return _read(connection, query.order_by(_TABLE.c.asked_at, _TABLE.c.id).limit(LISTED))


def probations(connection: Connection, limit: int = LISTED) -> tuple[TargetedAudit, ...]:
    """List the probations that are not over, the oldest first."""
    query = _query().where(_TABLE.c.state.in_(ASKED), proposals.c.action == "uncordon")
    return _read(connection, query.order_by(_TABLE.c.asked_at, _TABLE.c.id).limit(limit))


def take(
    connection: Connection,
    audit_ids: Collection[int],
    cluster: str,
    by: Mapping[str, Any],
    at: datetime,
) -> int:
    """Note who took standing orders first; give how many that were."""
    changed = connection.execute(
        _TABLE.update()
        .where(_TABLE.c.id.in_(audit_ids), _TABLE.c.cluster == cluster, _TABLE.c.state == "open")
        .values(state="taken", taken_by=json.dumps(dict(by)), taken_at=at)
    )
    return changed.rowcount


def settle(
    connection: Connection, audit_id: int, state: str, passed: int, at: datetime | None
) -> bool:
    """Keep how far it is; `at` not None: it is over. False where it was over before."""
    values: dict[str, Any] = {"passes": passed}
    if at is not None:
        values |= {"state": state, "settled_at": at}
    changed = connection.execute(
        _TABLE.update().where(_TABLE.c.id == audit_id, _TABLE.c.settled_at.is_(None)).values(values)
    )
    return changed.rowcount == 1


def withdraw(connection: Connection, case_id: int, at: datetime) -> int:
    """Ask for nothing any more on behalf of a case; give how many orders that ended."""
    mine = sa.select(proposals.c.id).where(proposals.c.case_id == case_id)
    changed = connection.execute(
        _TABLE.update()
        .where(_TABLE.c.proposal_id.in_(mine), _TABLE.c.settled_at.is_(None))
        .values(state="withdrawn", settled_at=at)
    )
    return changed.rowcount


def passes_since(connection: Connection, audit: TargetedAudit, since: datetime) -> int:
    """Count the ring audits that passed on the machine since a time.

    Counted are starts of jobs whose only rank map lists the GPU, or the machine where no GPU is
    meant. A map without UUIDs does not say which GPUs were audited, so it does not count.
    """
    query = (
        sa.select(attempts.c.id, attempts.c.rank_map_id)
        .join(rank_map_nodes, rank_map_nodes.c.rank_map_id == attempts.c.rank_map_id)
        .join(nodes, nodes.c.id == rank_map_nodes.c.node_id)
        .where(_is(audit), attempts.c.maps == 1, attempts.c.last_pass_at >= since)
        .order_by(attempts.c.last_pass_at.desc())
        .limit(ATTEMPTS)
    )
    rows = connection.execute(query).all()
    lists = {
        map_id: _lists(connection, map_id, audit.gpu_uuid) for map_id in {row[1] for row in rows}
    }
    counted = [attempt for attempt, map_id in rows if lists[map_id]]
    total = connection.execute(
        sa.select(sa.func.sum(passes.c.count)).where(
            passes.c.attempt_id.in_(counted), passes.c.check_name == "ring", passes.c.at >= since
        )
    ).scalar()
    return int(total or 0)


def _lists(connection: Connection, map_id: int, gpu_uuid: str | None) -> bool:
    if gpu_uuid is None:
        return True
    places = topology_of(connection, map_id).places.values()
    return any(place.gpu_uuid == gpu_uuid for place in places)


def _is(audit: TargetedAudit) -> sa.ColumnElement[bool]:
    same = nodes.c.cluster == audit.cluster
    if audit.instance_id is not None:
        return sa.and_(same, nodes.c.instance_id == audit.instance_id)
    return sa.and_(same, nodes.c.name == audit.node_name)


def alarm_since(
    connection: Connection, audit: TargetedAudit, gpu_id: int | None, since: datetime
) -> tuple[int, datetime] | None:
    """Find the first alarm on the GPU since a time, on the machine where none is meant."""
    query = sa.select(findings.c.alarm_id, findings.c.occurred_at).where(
        findings.c.occurred_at >= since, findings.c.software_first.is_(False)
    )
    if gpu_id is not None:
        query = query.where(findings.c.gpu_id == gpu_id)
    else:
        machine = sa.select(nodes.c.id).where(_is(audit))
        query = query.where(findings.c.node_id.in_(machine))
    row = connection.execute(query.order_by(findings.c.occurred_at).limit(1)).first()
    return None if row is None else (row.alarm_id, row.occurred_at)
