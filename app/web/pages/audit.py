"""Who did what, when, on which evidence; and does the chain still hold?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app import csv_table
from app.context import Context, context_of
from app.filters import bad, instant
from app.store import audit, audit_reading, ids
from app.store.audit import Verification
from app.store.audit_reading import Filter
from app.strict_json import dumps
from app.web.rendering import render
from app.web.security import Viewer

PAGE = 100
EXPORT_MOST = 1_000_000
# Walking the chain reads every entry; a page shows when that was done last.
VERIFIED_FOR = timedelta(minutes=2)

FIELDS = ("actor", "verb", "q", "from", "to", "case", "proposal", "node", "job")
COLUMNS = (
    "id",
    "at",
    "actor",
    "verb",
    "summary",
    "case",
    "proposal",
    "node",
    "job",
    "details",
    "previous_hash",
    "hash",
)

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Verified:
    """A walk along the chain and when it was done."""

    at: datetime
    result: Verification


class ChainWatch:
    """Walks the chain for the page, seldom and one walk at a time."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._lock = threading.Lock()
        self._last: Verified | None = None

    def verified(self, context: Context, *, anew: bool) -> Verified:
        """Give the last walk, or walk again when it is old or asked for."""
        with self._lock:
            now = context.now()
            last = self._last
            if anew or last is None or now - last.at > VERIFIED_FOR:
                with context.store.reading() as connection:
                    last = self._last = Verified(now, audit.verify(connection))
            return last


def _watch(request: Request) -> ChainWatch:
    state = request.app.state
    if not hasattr(state, "chain_watch"):
        state.chain_watch = ChainWatch()
    watch: ChainWatch = state.chain_watch
    return watch


@router.get("/audit")
def audit_page(
    request: Request,
    person: Viewer,
    before: Annotated[str, Query(max_length=20)] = "",
    verify: str = "",
    format: str = "",
) -> Response:
    """Show the newest entries that match, or export all that match in the order of writing."""
    given = {name: request.query_params.get(name, "").strip() for name in FIELDS}
    wanted = read(given)
    context = context_of(request)
    if format:
        return export(context, wanted, format)
    with context.store.reading() as connection:
        shown = audit_reading.page(connection, wanted, before=_before(before), limit=PAGE + 1)
    older = shown[PAGE - 1].id if len(shown) > PAGE else None
    asked = {name: value for name, value in given.items() if value}
    return render(
        request,
        "audit.html",
        entries=shown[:PAGE],
        given=given,
        asked=bool(asked),
        newest="?" + urlencode(asked) if before else None,
        older="?" + urlencode({**asked, "before": older}) if older else None,
        exports=[
            (name.upper(), "?" + urlencode({**asked, "format": name})) for name in ("ndjson", "csv")
        ],
        verify_link="?" + urlencode({**asked, "verify": "now"}),
        verified=_watch(request).verified(context, anew=verify == "now"),
    )


def read(given: dict[str, str]) -> Filter:
    """Read the filters; a value that cannot be read is said, not ignored."""
    for name, value in given.items():
        if "\x00" in value or len(value) > 400:
            raise bad(name, f"{name} is too long or holds a NUL character.")
    rows = {f"{name}_id": _row_id(name, given[name]) for name in FIELDS[5:]}
    return Filter(
        actor=given["actor"],
        verb=given["verb"],
        text=given["q"],
        since=instant("from", given["from"]) if given["from"] else None,
        until=instant("to", given["to"]) if given["to"] else None,
        **rows,
    )


def _row_id(name: str, text: str) -> int | None:
    try:
        return ids.read(text.lower()) if text else None
    except ValueError:
        raise bad(name, f"{name} must be an id of 13 letters.") from None


def _before(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise bad("before", "before must be the number of an entry.")
    return int(text)


def export(context: Context, wanted: Filter, kind: str) -> Response:
    """Stream all entries that match, oldest first, with their hashes."""
    if kind not in ("ndjson", "csv"):
        raise bad("format", "format must be ndjson or csv.")
    write = _ndjson if kind == "ndjson" else _csv
    media = "application/x-ndjson" if kind == "ndjson" else "text/csv; charset=utf-8"
    headers = {"Content-Disposition": f'attachment; filename="audit.{kind}"'}
    return StreamingResponse(write(_exported(context, wanted)), headers=headers, media_type=media)


def _exported(context: Context, wanted: Filter) -> Iterator[dict[str, Any]]:
    with context.store.reading() as connection:
        for number, entry in enumerate(audit_reading.walk(connection, wanted)):
            if number >= EXPORT_MOST:
                return
            yield audit.as_exported(entry)


def _ndjson(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for row in rows:
        yield (dumps(row) + "\n").encode("utf-8", "replace")


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    yield csv_table.table(COLUMNS, ()).encode()
    for row in rows:
        line = csv_table.table(COLUMNS, (row,)).split("\r\n", 1)[1]
        yield line.encode("utf-8", "replace")
