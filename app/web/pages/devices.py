"""What is known of one node or one GPU over months, and which nodes are there?"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.actions.telemetry.on_demand import Range, read_range
from app.context import context_of
from app.errors import Problem, not_found
from app.filters import Filters, bad, read_filters
from app.store import ids
from app.store.connection import Connection
from app.store.device_listing import CORDONS, FILTERS, list_nodes
from app.store.moved_counts import moved_counts
from app.store.timeline_scope import find_gpus
from app.web import device_view, words
from app.web.addresses import read_id
from app.web.rendering import render
from app.web.security import Viewer
from app.web.telemetry.log_rows import of_node
from app.web.telemetry.on_gpu import read_on_gpu
from app.web.timeline import naming
from app.web.timeline.asked import around

PAGE = 100

router = APIRouter(include_in_schema=False)


@router.get("/nodes")
def nodes(request: Request, person: Viewer) -> Response:
    """List nodes by name, with what was counted of them."""
    given = [pair for pair in request.query_params.multi_items() if pair[0] != "after"]
    filters = read_filters(given, FILTERS)
    for status in filters.status:
        if status not in CORDONS:
            raise bad("status", f"status must be one of {', '.join(CORDONS)}.")
    after = _after(request.query_params.get("after"))
    with context_of(request).store.reading() as connection:
        found = list_nodes(connection, filters, after, PAGE + 1)
    last = found[PAGE - 1] if len(found) > PAGE else None
    return render(
        request,
        "nodes.html",
        rows=found[:PAGE],
        filters=filters,
        cordons=CORDONS,
        older=_address(filters, f"{ids.show(last.key[1])}.{last.key[0]}") if last else None,
        newest=_address(filters, None) if after else None,
    )


@router.get("/nodes/{node_id}")
def node(request: Request, person: Viewer, node_id: str) -> Response:
    """Show one node."""
    row_id = read_id(node_id, "node")
    context = context_of(request)
    with context.store.reading() as connection:
        shown = device_view.read_node(
            connection, row_id, _pages(request), context.now(), _zone(request)
        )
        moved = moved_counts(connection, [one.placement.gpu.id for one in shown.gpus])
        log = of_node(connection, shown.node, context.now())
    return render(
        request, "node.html", view=shown, naming=naming, around=around, moved=moved, log=log
    )


@router.get("/gpus/{gpu_id}")
def gpu(request: Request, person: Viewer, gpu_id: str) -> Response:
    """Show one GPU; another spelling of its UUID leads to the address by id."""
    context = context_of(request)
    span, wrong = _span(request, context.now())
    with context.store.reading() as connection:
        row_id = _gpu_id(connection, gpu_id)
        if ids.show(row_id) != gpu_id:
            return RedirectResponse(f"/gpus/{ids.show(row_id)}", 303)
        shown = device_view.read_gpu(
            connection,
            row_id,
            _pages(request),
            context.now(),
            _zone(request),
            context.settings.recurrence_days,
        )
        sources = context.settings.sources
        tele = read_on_gpu(connection, shown.gpu, span, context.now(), sources)
    return render(
        request,
        "gpu.html",
        status=400 if wrong else 200,
        view=shown,
        naming=naming,
        around=around,
        tele=tele,
        wrong=wrong,
        typed={
            "first": request.query_params.get("from", "") if wrong else "",
            "last": request.query_params.get("to", "") if wrong else "",
        },
    )


def _span(request: Request, now: datetime) -> tuple[Range, str | None]:
    """Read the time that is asked for; one that cannot be shown is said beside the usual one."""
    try:
        return read_range(request.query_params.multi_items(), now), None
    except Problem as problem:
        return read_range((), now), problem.message


def _gpu_id(connection: Connection, text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        found = find_gpus(connection, text)
    if len(found) > 1:
        raise not_found(f"more than one GPU whose UUID begins like this: {len(found)} are known")
    if not found:
        raise not_found("no GPU with this id or UUID")
    return found[0].id


def _pages(request: Request) -> dict[str, str | None]:
    return {name: request.query_params.get(name) for name in ("alarms", "starts")}


def _after(text: str | None) -> tuple[str, int] | None:
    if not text:
        return None
    row_id, dot, name = text.partition(".")
    try:
        number = ids.read(row_id)
    except ValueError:
        number = None
    if number is None or not dot or "\x00" in name:
        raise bad("after", "This place in the list is not one of ours; begin again.")
    return name, number


def _address(filters: Filters, after: str | None) -> str:
    pairs = [*filters.as_typed, *([("after", after)] if after else [])]
    return "/nodes" + (f"?{urlencode(pairs)}" if pairs else "")


def _zone(request: Request) -> ZoneInfo:
    return words.zone(request.cookies.get("sw_zone"))
