"""How does a person ask for telemetry, and once more where it came to nothing?"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions.alarm_dossier import read_dossier
from app.actions.telemetry import on_demand
from app.context import context_of
from app.errors import Problem, not_found
from app.store import case_reading, docket_reading
from app.store.device_reading import gpu_by_id
from app.web import words
from app.web.addresses import read_id
from app.web.rendering import done, fragment, unchanged
from app.web.security import Operator, Viewer
from app.web.telemetry import stamps
from app.web.telemetry.around import read_on_alarm
from app.web.telemetry.on_case import read_on_case
from app.web.telemetry.on_gpu import read_on_gpu, stamp_of
from app.web.timeline.asked import stamp

router = APIRouter(include_in_schema=False)


@router.get("/fragment/alarms/{alarm_id}/telemetry")
def of_alarm(request: Request, person: Viewer, alarm_id: str) -> Response:
    """Give the telemetry of an alarm for a page that shows it, 204 while nothing changed."""
    context, row_id = context_of(request), read_id(alarm_id, "alarm")
    with context.store.reading() as connection:
        stamp_now = stamps.of_alarm(connection, row_id).text
        if (same := unchanged(request, stamp_now)) is not None:
            return same
        dossier = read_dossier(connection, row_id, context.now())
        if dossier is None:
            raise not_found("no alarm with this id")
        tele = read_on_alarm(connection, dossier, context.settings.sources)
    return fragment(
        request, "_alarm_telemetry.html", stamp=stamp_now, tele=tele, facts=dossier.facts
    )


@router.get("/fragment/cases/{case_id}/telemetry")
def of_case(request: Request, person: Viewer, case_id: str) -> Response:
    """Give the telemetry of a case, 204 while nothing changed about its newest alarm."""
    context, row_id = context_of(request), read_id(case_id, "case")
    with context.store.reading() as connection:
        case = docket_reading.one(connection, row_id)
        if case is None:
            raise not_found("no case with this id")
        stamp_now = stamps.of_alarm(connection, case.last_alarm_id).text
        if (same := unchanged(request, stamp_now)) is not None:
            return same
        findings = case_reading.newest_findings(connection, row_id)
        tele = read_on_case(connection, case, findings, context.settings.sources)
    return fragment(request, "_case_telemetry.html", stamp=stamp_now, tele=tele, case=case)


@router.get("/fragment/gpus/{gpu_id}/telemetry")
def of_gpu(request: Request, person: Viewer, gpu_id: str) -> Response:
    """Give the telemetry of a GPU over a time, 204 while nothing changed."""
    context, row_id = context_of(request), read_id(gpu_id, "GPU")
    span = on_demand.read_range(request.query_params.multi_items(), context.now())
    with context.store.reading() as connection:
        gpu = gpu_by_id(connection, row_id)
        if gpu is None:
            raise not_found("no GPU with this id")
        stamp_now = stamp_of(connection, gpu, span).text
        if (same := unchanged(request, stamp_now)) is not None:
            return same
        tele = read_on_gpu(connection, gpu, span, context.now(), context.settings.sources)
    return fragment(request, "_gpu_range.html", stamp=stamp_now, tele=tele, gpu=gpu)


First = Annotated[str, Form(alias="from", max_length=100)]
Last = Annotated[str, Form(alias="to", max_length=100)]


@router.post("/gpus/{gpu_id}/telemetry")
def ask(
    request: Request, person: Operator, gpu_id: str, first: First = "", last: Last = ""
) -> Response:
    """Queue a time of a GPU and of its node's other GPUs."""
    context, row_id = context_of(request), read_id(gpu_id, "GPU")
    span = on_demand.read_range([("from", first), ("to", last)], context.now())
    try:
        found = on_demand.ask(context, row_id, span, person.name)
    except Problem as problem:
        if problem.status not in (409, 429):
            raise
        return _back(request, gpu_id, span, problem.message)
    if not found.fresh:
        return _back(request, gpu_id, span, "This time was asked for before; nothing was queued.")
    others = words.count(found.gpus - 1, "other GPU")
    said = f"Asked for this GPU and {others} of its node. It is pulled in the background."
    return _back(request, gpu_id, span, said)


@router.post("/gpus/{gpu_id}/telemetry/again")
def ask_again(
    request: Request, person: Operator, gpu_id: str, first: First = "", last: Last = ""
) -> Response:
    """Queue once more what came to nothing in a time."""
    context, row_id = context_of(request), read_id(gpu_id, "GPU")
    span = on_demand.read_range([("from", first), ("to", last)], context.now())
    count = on_demand.ask_gpu_again(context, row_id, span, person.name)
    return _back(request, gpu_id, span, _again(count))


@router.post("/alarms/{alarm_id}/telemetry/again")
def ask_alarm_again(request: Request, person: Operator, alarm_id: str) -> Response:
    """Queue once more what came to nothing around an alarm."""
    row_id = read_id(alarm_id, "alarm")
    count = on_demand.ask_alarm_again(context_of(request), row_id, person.name)
    return done(request, f"/alarms/{alarm_id}#dcgm", _again(count))


def _again(count: int) -> str:
    if not count:
        return "Nothing was queued: no window here has come to nothing."
    return f"{words.count(count, 'window')} queued once more."


def _back(request: Request, gpu_id: str, span: on_demand.Range, said: str) -> Response:
    query = urlencode([("from", stamp(span.start)), ("to", stamp(span.end))])
    return done(request, f"/gpus/{gpu_id}?{query}#tele", said)
