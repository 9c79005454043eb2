"""How does a program read nodes and GPUs: a list of nodes, one node, one GPU?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.scoring import score_gpu
from app.actions.telemetry.moved import as_json, read_moved
from app.api.paging import Listing
from app.api.reading import Reading
from app.auth import Sender
from app.context import context_of
from app.errors import not_found
from app.filters import bad
from app.store import ids
from app.store.connection import Connection
from app.store.device_cases import Counted, Incident, Subject, cases_of, counted, incidents_of
from app.store.device_listing import CORDONS, FILTERS, ListedNode, list_nodes
from app.store.device_reading import (
    Node,
    Placement,
    Start,
    gpu_by_id,
    gpus_in,
    lineage,
    machines_of,
    node_by_id,
    starts_on,
    work_on,
)
from app.store.exposure_reading import audited_stretches
from app.store.timeline_reading import AlarmRow, FindingRow, alarm_page, findings_of
from app.store.timeline_scope import Scope, find_gpus
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["reading"])

NEWEST = 50
"""Alarms and starts that the answer about one device holds; lists with cursors hold all."""
_EVER = datetime(1990, 1, 1, tzinfo=UTC)

NODES = Listing(
    "nodes",
    order="by name, then id, both ascending",
    filters=FILTERS,
    columns=(
        "id",
        "name",
        "instance_id",
        "cluster",
        "alarms",
        "incidents",
        "jobs",
        "last_alarm_at",
        "cordon",
        "cordon_read_at",
        "first_seen_at",
        "last_seen_at",
    ),
    cursor=(str, int),
)


@router.get("/nodes", summary="List nodes", openapi_extra=NODES.openapi())
def nodes(request: Request, by: Reading) -> Response:
    """List the machines that rank maps have named; status is the cordon as it was read last."""
    page = NODES.read(request)
    for status in page.filters.status:
        if status not in CORDONS:
            raise bad("status", f"status must be one of {', '.join(CORDONS)}.")
    after = (str(page.after[0]), int(page.after[1])) if page.after else None
    with context_of(request).store.reading() as connection:
        found = list_nodes(connection, page.filters, after, page.limit + 1, by.cluster)
    return NODES.answer(page, [_listed(one, by) for one in found], [one.key for one in found])


@router.get("/nodes/{node_id}", summary="Read one node")
def node(request: Request, by: Reading, node_id: str) -> Response:
    """Give one node with its GPUs, lineage, incidents, newest alarms and newest starts."""
    now = context_of(request).now()
    with context_of(request).store.reading() as connection:
        found = node_of(connection, node_id, by)
        answer = _node_json(connection, found, by, now)
    return StrictJSON(answer, headers={"Cache-Control": "no-store"})


@router.get("/gpus/{uuid}", summary="Read one GPU")
def gpu(request: Request, by: Reading, uuid: str) -> Response:
    """Give one GPU by any spelling of its UUID, an unambiguous beginning, or its id here."""
    now = context_of(request).now()
    with context_of(request).store.reading() as connection:
        answer = _gpu_json(connection, gpu_id_of(connection, uuid), by, now)
    return StrictJSON(answer, headers={"Cache-Control": "no-store"})


def node_of(connection: Connection, text: str, by: Sender) -> Node:
    """Find a node by its id; one that this reader may not know of does not exist for it."""
    try:
        found = node_by_id(connection, ids.read(text))
    except ValueError:
        found = None
    if found is None or by.cluster not in (None, found.cluster):
        raise not_found("no node with this id")
    return found


def gpu_id_of(connection: Connection, text: str) -> int:
    """Find the one GPU that a spelling, a beginning or an id means."""
    found = find_gpus(connection, text)
    if len(found) > 1:
        raise not_found(f"more than one GPU whose UUID begins like this: {len(found)} are known")
    if not found:
        raise not_found("no GPU with this UUID or id")
    return found[0].id


def _node_json(connection: Connection, node: Node, by: Sender, now: datetime) -> dict[str, Any]:
    work = work_on(connection, node.id)
    starts = starts_on(connection, node.id, None, NEWEST)
    return {
        **_node(node),
        "uid": node.uid,
        **_counts(counted(connection, "node", node.id), by),
        "audited_hours": work.audited_hours,
        "starts": work.starts,
        "complete": work.complete,
        "gpus": [_placed_gpu(one) for one in gpus_in(connection, node.id)],
        "lineage": [
            {**_node(one.node), "relation": one.relation} for one in lineage(connection, node)
        ],
        **_found(connection, "node", node.id, by),
        "newest_alarms": _alarms(connection, by, now, node=node.id),
        "newest_starts": [_start(one) for one in starts if by.allows(node.cluster, one.namespace)],
    }


def _gpu_json(connection: Connection, gpu_id: int, by: Sender, now: datetime) -> dict[str, Any]:
    gpu = gpu_by_id(connection, gpu_id)
    places = machines_of(connection, [gpu_id])
    visible = [one for one in places if by.cluster in (None, one.node.cluster)]
    if gpu is None or (by.cluster is not None and not visible):
        raise not_found("no GPU with this UUID or id")
    score = None if by.namespace is not None else score_gpu(connection, gpu_id, now)
    hours = sum(one.audited_seconds for one in audited_stretches(connection, gpu_id)) / 3600
    return {
        "id": ids.show(gpu.id),
        "url": f"/gpus/{ids.show(gpu.id)}",
        "uuid": gpu.uuid,
        "form": gpu.form,
        "first_seen_at": gpu.first_seen_at,
        "last_seen_at": gpu.last_seen_at,
        **_counts(counted(connection, "gpu", gpu_id), by),
        "audited_hours": hours,
        "p_faulty": None if score is None else score.p,
        "moved": len(visible) > 1,
        "nodes": [
            {
                **_node(one.node),
                "gpu_index": one.gpu_index,
                "gpu_first_seen_at": one.first_seen_at,
                "gpu_last_seen_at": one.last_seen_at,
            }
            for one in visible
        ],
        **_found(connection, "gpu", gpu_id, by),
        "telemetry_moved": as_json(read_moved(connection, gpu_id, gpu.uuid, by.cluster)),
        "newest_alarms": _alarms(connection, by, now, gpu=gpu_id),
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "id": ids.show(node.id),
        "url": f"/nodes/{ids.show(node.id)}",
        "name": node.name,
        "instance_id": node.instance_id,
        "cluster": node.cluster,
        "cordon": node.cordon,
        "cordon_read_at": node.cordon_read_at,
        "first_seen_at": node.first_seen_at,
        "last_seen_at": node.last_seen_at,
    }


def _counts(found: Counted, by: Sender) -> dict[str, Any]:
    """Give what was counted in all namespaces; null for who may read only one."""
    if by.namespace is not None:
        return {"alarms": None, "incidents": None, "jobs": None, "last_alarm_at": None}
    return {
        "alarms": found.alarms,
        "incidents": found.incidents,
        "jobs": found.jobs,
        "last_alarm_at": found.last_at,
    }


def _listed(one: ListedNode, by: Sender) -> dict[str, Any]:
    found = Counted(one.alarms or 0, one.incidents or 0, one.jobs or 0, one.last_alarm_at)
    return {**_node(one.node), **_counts(found, by)}


def _placed_gpu(one: Placement) -> dict[str, Any]:
    return {
        "id": ids.show(one.gpu.id),
        "uuid": one.gpu.uuid,
        "form": one.gpu.form,
        "gpu_index": one.gpu_index,
        "first_seen_at": one.first_seen_at,
        "last_seen_at": one.last_seen_at,
    }


def _found(connection: Connection, subject: Subject, row_id: int, by: Sender) -> dict[str, Any]:
    held = incidents_of(connection, subject, row_id)
    found = [one for one in held if by.namespace in (None, one.namespace)]
    seen = {one.case_id for one in found}
    return {
        "incidents_by_kind": [_incident(one) for one in found],
        "cases": [
            {
                "id": ids.show(one.id),
                "url": f"/cases/{ids.show(one.id)}",
                "status": one.status,
                "standing": one.standing,
                "rule": one.rule,
                "headline": one.headline,
                "adjudication": one.adjudication,
            }
            for one in cases_of(connection, subject, row_id)
            if by.namespace is None or one.id in seen
        ],
    }


def _incident(one: Incident) -> dict[str, Any]:
    return {
        "id": ids.show(one.id),
        "kind": one.kind,
        "job": one.job,
        "namespace": one.namespace,
        "rank": one.rank,
        "alarms": one.alarms,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "node": one.node,
        "gpu_uuid": one.gpu_uuid,
        "case": ids.show(one.case_id),
    }


def _start(one: Start) -> dict[str, Any]:
    return {
        "job_id": ids.show(one.job_id),
        "job": one.job,
        "namespace": one.namespace,
        "attempt": one.number,
        "started_at": one.started_at,
        "last_seen_at": one.last_seen_at,
        "alarm_at": one.alarm_at,
        "ranks": one.ranks,
        "world_size": one.world_size,
        "audited_hours": one.audited_seconds / 3600,
    }


def _alarms(
    connection: Connection, by: Sender, now: datetime,
    node: int | None = None, gpu: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    scope = Scope(
        start=_EVER, end=now + timedelta(days=3_660),
        clusters=() if by.cluster is None else (by.cluster,),
        namespaces=() if by.namespace is None else (by.namespace,),
        node_ids=None if node is None else (node,), gpu_ids=None if gpu is None else (gpu,),
    )  # fmt: skip
    rows = alarm_page(connection, scope, None, NEWEST).rows
    found = findings_of(connection, [row.id for row in rows])
    return [_alarm(row, found.get(row.id, ())) for row in rows]


def _alarm(row: AlarmRow, found: tuple[FindingRow, ...]) -> dict[str, Any]:
    return {
        "id": ids.show(row.id),
        "url": f"/alarms/{ids.show(row.id)}",
        "occurred_at": row.at,
        "check": row.check,
        "step": row.step,
        "rule": row.rule,
        "standing": row.standing,
        "job": row.job,
        "namespace": row.namespace,
        "ranks": [one.rank for one in found if one.rank is not None],
    }
