"""How does a program take away all kept samples of a cluster, a GPU, an alarm or a case?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.actions.telemetry import exporting
from app.api.devices import gpu_id_of
from app.api.paging import refusals
from app.api.reading import Reading
from app.auth import Sender
from app.context import context_of
from app.errors import forbidden, not_found
from app.filters import bad, instant
from app.store import alarm_reading, docket_reading, ids
from app.store.connection import Connection
from app.store.telemetry_export import Chosen

router = APIRouter(prefix="/api/v1", tags=["reading"])

_TEXT = {"type": "string", "maxLength": 1_000}
_MOMENT = {"type": "string", "format": "date-time"}
_PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cluster": ("only windows of this cluster", _TEXT),
    "gpu": ("only windows of this GPU: any spelling of its UUID, or its id here", _TEXT),
    "alarm": ("only windows that this alarm asked for", _TEXT),
    "case": ("only windows that an alarm of this case asked for", _TEXT),
    "from": ("only windows that end after this", _MOMENT),
    "to": ("only windows that begin before this", _MOMENT),
    "after": ("`cursor` of the last window that came whole", _TEXT),
    "format": (
        "ndjson, or csv with a line a sample",
        {"type": "string", "enum": [*exporting.FORMS], "default": "ndjson"},
    ),
}
_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


def _described() -> dict[str, Any]:
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "description": said, "schema": schema}
            for name, (said, schema) in _PARAMETERS.items()
        ]
    }


@router.get(
    "/telemetry/export",
    summary="Export kept samples",
    openapi_extra=_described(),
    responses=refusals(400, 401, 403, 404),
)
def export(request: Request, by: Reading) -> Response:
    """Stream kept windows with samples, hash and source, those that began first before others.

    NDJSON ends with a line of kind `end`: without it the answer is not whole. A token of one
    namespace has to name an alarm or a case of it, as a window does not say whose job ran there.
    """
    given = _given(request.query_params.multi_items())
    store = context_of(request).store
    with store.reading() as connection:
        chosen = _chosen(connection, given, by)
    form, after = given.get("format", "ndjson"), _cursor(given.get("after"))
    # A database that is away, or a table that cannot be read, is said before the first byte.
    exporting.first_key(store, chosen, after)
    lines = exporting.write_out(store, chosen, form, after)
    return StreamingResponse(
        exporting.in_pieces(lines),
        media_type=_TYPES[form],
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="telemetry.{form}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _given(parameters: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in parameters:
        if name not in _PARAMETERS:
            raise bad(name[:60], f"There is no parameter {name[:60]!r} here.")
        if name in found:
            raise bad(name, f"{name} was given more than once.")
        if text:
            found[name] = text
    form = found.get("format", "ndjson")
    if form not in exporting.FORMS:
        raise bad("format", "format must be ndjson or csv.")
    if "\x00" in found.get("cluster", ""):
        raise bad("cluster", "cluster holds a NUL.")
    return found


def _cursor(text: str | None) -> tuple[int, int] | None:
    try:
        return exporting.read_cursor(text) if text else None
    except (ValueError, OverflowError):
        raise bad("after", "after must be the cursor of a window's line.") from None


def _chosen(connection: Connection, given: dict[str, str], by: Sender) -> Chosen:
    """Put together which windows; a token never sees another cluster's."""
    alarm_id = _alarm(connection, given["alarm"], by) if "alarm" in given else None
    case_id = _case(connection, given["case"], by) if "case" in given else None
    if by.namespace is not None and alarm_id is None and case_id is None:
        raise forbidden(
            "A token of one namespace exports the windows of an alarm or a case: name it."
        )
    cluster = given.get("cluster")
    if by.cluster not in (None, cluster or by.cluster):
        raise forbidden(f"The token is for the cluster {by.cluster}.")
    since, until = _moment(given, "from"), _moment(given, "to")
    if since is not None and until is not None and since >= until:
        raise bad("from", "from must be earlier than to.")
    return Chosen(
        cluster=cluster or by.cluster,
        gpu_id=gpu_id_of(connection, given["gpu"]) if "gpu" in given else None,
        since=since,
        until=until,
        alarm_id=alarm_id,
        case_id=case_id,
    )


def _moment(given: dict[str, str], name: str) -> datetime | None:
    return instant(name, given[name]) if name in given else None


def _alarm(connection: Connection, text: str, by: Sender) -> int:
    facts = alarm_reading.read_alarm(connection, _id(text, "alarm"))
    if facts is None or not by.allows(facts.cluster, facts.namespace):
        raise not_found("no alarm with this id")
    return facts.id


def _case(connection: Connection, text: str, by: Sender) -> int:
    found = docket_reading.one(connection, _id(text, "case"))
    if found is None or not by.allows(found.cluster, found.namespace):
        raise not_found("no case with this id")
    return found.id


def _id(text: str, what: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise not_found(f"no {what} with this id") from None
