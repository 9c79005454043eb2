"""How does a program read a GPU's samples over a time, and ask for more of them?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions.telemetry.on_demand import Range, ask, read_range
from app.actions.telemetry.ranged import Kept, read_own
from app.api.devices import gpu_id_of
from app.api.paging import refusals
from app.api.reading import Reading
from app.auth import Deciding, Sender
from app.context import context_of
from app.csv_table import csv_response
from app.errors import not_found
from app.filters import bad
from app.store import ids
from app.store.connection import Connection
from app.store.device_reading import Gpu, gpu_by_id, machines_of
from app.store.telemetry_queue import Window
from app.strict_json import StrictJSON
from witness.rules.cleaning import Clean, clean
from witness.rules.counting import counted
from witness.rules.dcgm_fields import BY_ID, field_of
from witness.rules.samples import Series, scrape_interval

router = APIRouter(prefix="/api/v1", tags=["reading"])

PARAMETERS = ("from", "to", "fields", "format")
MOST_FIELDS = 64
COLUMNS = ("time", "gpu_uuid", "field", "field_id", "part", "unit", "value", "mark", "raw")
_MOMENT = {"type": "string", "format": "date-time"}
_QUERY: list[dict[str, Any]] = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }
    for name, description, schema in (
        ("from", "first moment; two hours before `to` where it is missing", _MOMENT),
        ("to", "last moment, at most 24 hours later; now where it is missing", _MOMENT),
        (
            "fields",
            "names or DCGM numbers with commas between them; all where it is missing",
            {"type": "string", "maxLength": 4_000},
        ),
        (
            "format",
            "json, or csv with a line a sample",
            {"type": "string", "enum": ["json", "csv"], "default": "json"},
        ),
    )
]


class Time(BaseModel):
    """The time that is asked for: `from` and `to` as RFC 3339, 24 hours at most."""

    model_config = ConfigDict(extra="ignore")

    first: Annotated[str, Field(alias="from", max_length=100, json_schema_extra=_MOMENT)] = ""
    last: Annotated[str, Field(alias="to", max_length=100, json_schema_extra=_MOMENT)] = ""


@router.get(
    "/gpus/{uuid}/telemetry",
    summary="Read the kept samples of one GPU",
    openapi_extra={"parameters": _QUERY},
    responses=refusals(400, 401, 404),
)
def samples(request: Request, by: Reading, uuid: str) -> Response:
    """Give what is kept of a time: samples with their own times, marks, and where they are from.

    A value is null where the sample is no reading; `not_readings` holds it as it came. Nothing
    here clears a GPU: an empty answer is not a good one.
    """
    given = request.query_params.multi_items()
    form, fields = _form(given), _fields(given)
    context = context_of(request)
    span = read_range(given, context.now())
    with context.store.reading() as connection:
        gpu = _visible(connection, uuid, by)
        kept = read_own(connection, gpu, span, by.cluster, fields)
    if form == "csv":
        answer = csv_response(f"gpu-{ids.show(gpu.id)}-telemetry", COLUMNS, _rows(kept.series))
    else:
        answer = StrictJSON(_json(gpu, span, kept))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post(
    "/gpus/{uuid}/telemetry",
    summary="Ask for the samples of one GPU",
    status_code=202,
    responses=refusals(400, 401, 403, 404),
)
def ask_for(request: Request, by: Deciding, uuid: str, time: Time) -> Response:
    """Queue a time of a GPU and of its node's other GPUs; a repeat queues nothing.

    409 where it is not known which cluster to ask, 429 while too many windows wait.
    """
    context = context_of(request)
    span = read_range([("from", time.first), ("to", time.last)], context.now())
    with context.store.reading() as connection:
        gpu = _visible(connection, uuid, by)
    name = by.name if by.token_id is None else f"token {by.name}"
    found = ask(context, gpu.id, span, name, by.cluster)
    start, end = span.on_grid
    body = {"gpu_uuid": gpu.uuid, "from": start, "to": end}
    return StrictJSON({**body, "gpus": found.gpus, "queued": found.fresh}, 202)


def _visible(connection: Connection, text: str, by: Sender) -> Gpu:
    """Find a GPU that this reader may know of: the same rule as for reading the GPU."""
    row_id = gpu_id_of(connection, text)
    gpu = gpu_by_id(connection, row_id)
    hidden = by.cluster is not None and by.cluster not in {
        one.node.cluster for one in machines_of(connection, [row_id])
    }
    if gpu is None or hidden:
        raise not_found("no GPU with this UUID or id")
    return gpu


def _form(given: Iterable[tuple[str, str]]) -> str:
    form = "json"
    seen = set()
    for name, text in given:
        if name not in PARAMETERS:
            raise bad(name[:60], f"There is no parameter {name[:60]!r} here.")
        if name in seen:
            raise bad(name, f"{name} was given more than once.")
        seen.add(name)
        form = text if name == "format" and text else form
    if form not in ("json", "csv"):
        raise bad("format", "format must be json or csv.")
    return form


def _fields(given: Iterable[tuple[str, str]]) -> frozenset[int] | None:
    text = next((text for name, text in given if name == "fields"), "")
    names = [one.strip() for one in text[:4_000].split(",") if one.strip()]
    if len(names) > MOST_FIELDS:
        raise bad("fields", f"{MOST_FIELDS} fields are the most.")
    return frozenset(map(_field_id, names)) or None


def _field_id(name: str) -> int:
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 8 else None
    known = BY_ID.get(number) if number is not None else field_of(name)
    if known is None:
        raise bad("fields", f"There is no field {name[:60]!r}.")
    return known.id


def _json(gpu: Gpu, span: Range, kept: Kept) -> dict[str, Any]:
    interval = scrape_interval(kept.series)
    warnings = dict.fromkeys(text for one in kept.windows for text in one.warnings)
    return {
        "gpu_uuid": gpu.uuid,
        "from": span.start,
        "to": span.end,
        "windows": [_window(one) for one in kept.windows],
        "partial": any(one.partial for one in kept.windows),
        "warnings": [*warnings, *([kept.damaged] if kept.damaged else [])],
        "series": [_series(clean(one, interval)) for one in kept.series],
    }


def _window(one: Window) -> dict[str, Any]:
    return {
        "from": one.start,
        "to": one.end,
        "state": one.state,
        "said": one.said,
        "asked_at": one.asked_at,
        "pulled_at": one.pulled_at,
        "whole": one.whole,
        "source": one.source,
        "level": one.level,
        "interval_s": one.interval_s,
        "samples": one.samples,
        "samples_deleted_at": one.purged_at,
        "partial": one.partial,
        "warnings": list(one.warnings),
    }


def _series(one: Clean) -> dict[str, Any]:
    series, field = one.series, one.field
    readings = dict(zip(one.times, one.values, strict=True))
    falls = counted(one.times, one.values, field.resets) if field.kind == "counter" else None
    return {
        "field": field.names[0],
        "field_id": field.id,
        "title": field.title,
        "unit": field.unit,
        "kind": field.kind,
        "part": dict(series.part),
        "named": list(series.seen.metrics),
        "hosts": list(series.seen.hosts),
        "interval_s": one.interval_s,
        "joined": series.joined,
        "times": list(series.times),
        "values": [readings.get(time) for time in series.times],
        "not_readings": [[time, value] for time, value in _odd(series, readings)],
        "marks": [
            {"kind": mark.kind, "from": mark.first, "to": mark.last, "count": mark.count,
             "text": mark.text}
            for mark in one.marks
        ],
        "rise": None if falls is None else falls.total,
        "resets": [] if falls is None else [
            {"after": fall.before, "by": fall.at, "was": fall.was, "became": fall.became,
             "contradiction": fall.kept}
            for fall in falls.falls
        ],
    }  # fmt: skip


def _odd(series: Series, readings: dict[float, float]) -> Iterator[tuple[float, float]]:
    samples = zip(series.times, series.values, strict=True)
    return (sample for sample in samples if sample[0] not in readings)


def _rows(kept: Sequence[Series]) -> Iterator[dict[str, Any]]:
    interval = scrape_interval(kept)
    for series in kept:
        one = clean(series, interval)
        readings = dict(zip(one.times, one.values, strict=True))
        kinds = [mark for mark in one.marks if mark.kind not in ("gap", "left_out")]
        for time, value in zip(series.times, series.values, strict=True):
            is_reading = time in readings
            mark = next((m.kind for m in kinds if m.first <= time <= m.last), None)
            yield {
                "time": datetime.fromtimestamp(time, UTC),
                "gpu_uuid": series.gpu_uuid,
                "field": one.field.names[0],
                "field_id": one.field.id,
                "part": dict(series.part) or None,
                "unit": one.field.unit,
                "value": value if is_reading else None,
                "mark": None if is_reading else mark,
                "raw": None if is_reading else value,
            }
