"""How does a program read what was written down about a machine, and each record as it came?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.actions.telemetry.node_entries import Entry
from app.actions.telemetry.node_log import NodeLog, read_node_log_of
from app.actions.telemetry.on_demand import read_range
from app.api.devices import node_of
from app.api.paging import refusals
from app.api.reading import Reading
from app.context import context_of
from app.errors import not_found
from app.filters import bad
from app.store import ids, node_records
from app.store.device_reading import node_by_id
from app.store.node_evidence import Evidence
from app.store.node_records import KeptRecord
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["reading"])

_MOMENT = {"type": "string", "format": "date-time"}
_QUERY: list[dict[str, Any]] = [
    {"name": name, "in": "query", "required": False, "description": said, "schema": _MOMENT}
    for name, said in (
        ("from", "first moment; two hours before `to` where it is missing"),
        ("to", "last moment, at most 24 hours later; now where it is missing"),
    )
]


@router.get(
    "/nodes/{node_id}/log",
    summary="Read what was written down about one node",
    openapi_extra={"parameters": _QUERY},
    responses=refusals(400, 401, 404),
)
def log(request: Request, by: Reading, node_id: str) -> Response:
    """Give what its health agent, Kubernetes and the metrics wrote down in a time, by time.

    Only what alarms or people asked for is known; an empty answer is no good one. `counts` is null
    here, as something counts for an alarm only.
    """
    given = request.query_params.multi_items()
    unknown = next((name for name, _ in given if name not in ("from", "to")), None)
    if unknown is not None:
        raise bad(unknown[:60], f"There is no parameter {unknown[:60]!r} here.")
    context = context_of(request)
    span = read_range(given, context.now())
    with context.store.reading() as connection:
        node = node_of(connection, node_id, by)
        found = read_node_log_of(connection, node, span.start, span.end)
    body = {"node_id": ids.show(node.id), "from": span.start, "to": span.end, **as_json(found)}
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


@router.get(
    "/node-records/{record_id}",
    summary="Read one record about a node as it came",
    responses=refusals(401, 404),
)
def record(request: Request, by: Reading, record_id: str) -> Response:
    """Give one line of a health agent, or a node as it was read, with its SHA-256."""
    with context_of(request).store.reading() as connection:
        try:
            kept = node_records.by_id(connection, ids.read(record_id))
        except ValueError:
            kept = None
        node = None if kept is None else node_by_id(connection, kept.node_id)
    if kept is None or node is None or by.cluster not in (None, node.cluster):
        raise not_found("no record with this id")
    return StrictJSON(_record(kept), headers={"Cache-Control": "no-store"})


def as_json(found: NodeLog) -> dict[str, Any]:
    """Give a log as programs read it: its entries, what was asked for, what is left out."""
    return {
        "entries": [_entry(one) for one in found.entries],
        "left_out": found.left_out,
        "damaged": found.damaged,
        "asked": _asked(found.asked),
    }


def _entry(one: Entry) -> dict[str, Any]:
    raw = None if one.raw_id is None else ids.show(one.raw_id)
    return {
        "at": one.at,
        "until": one.until,
        "times": one.times,
        "source": one.source,
        "node_id": ids.show(one.node_id),
        "node": one.node,
        "instance_id": one.instance_id,
        "gpu_uuid": one.gpu_uuid,
        "pci": one.pci,
        "xid": one.xid,
        "xid_class": one.xid_class,
        "evidence": one.evidence,
        "counts": one.counts,
        "text": one.text,
        "detail": one.detail,
        "record": raw,
        "record_url": None if raw is None else f"/api/v1/node-records/{raw}",
    }


def _asked(asked: Iterable[Evidence]) -> list[dict[str, Any]]:
    return [
        {
            "node_id": ids.show(one.node_id),
            "node": one.node,
            "instance_id": one.instance_id,
            "kind": one.kind,
            "from": one.start,
            "to": one.end,
            "state": one.state,
            "said": one.said,
            "read_at": one.read_at,
            "whole": one.whole,
            "cut": one.cut,
        }
        for one in asked
    ]


def _record(kept: KeptRecord) -> dict[str, Any]:
    return {
        "id": ids.show(kept.id),
        "node_id": ids.show(kept.node_id),
        "kind": kept.record.kind,
        "at": kept.at,
        "received_at": kept.received_at,
        "kept_at": kept.kept_at,
        "stream": kept.stream,
        "event_id": kept.event_id,
        "other_machine": kept.record.other,
        "sha256": kept.sha256,
        "text": kept.record.text,
    }
