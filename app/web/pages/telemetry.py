"""How does a person ask for telemetry, and once more where it came to nothing?"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions.telemetry import on_demand
from app.context import context_of
from app.errors import Problem
from app.web import words
from app.web.addresses import read_id
from app.web.rendering import done
from app.web.security import Operator
from app.web.timeline.asked import stamp

router = APIRouter(include_in_schema=False)

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
