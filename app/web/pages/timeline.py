"""What happened when, on which nodes, GPUs, jobs and slices?"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.store.connection import Connection
from app.store.timeline_bins import first_and_last
from app.store.timeline_reading import stamp
from app.web import words
from app.web.drawings.timeline_marks import legend_mark
from app.web.rendering import fragment, render, unchanged
from app.web.security import Viewer
from app.web.timeline import naming, view
from app.web.timeline.asked import Asked, around, understand

router = APIRouter(include_in_schema=False)

_WRITING: dict[str, Any] = {"around": around, "naming": naming, "legend_mark": legend_mark}
SLIDES_S = 300
"""A range that ends now moves on at least this often, whatever comes in."""


@router.get("/timeline")
def timeline(request: Request, person: Viewer) -> Response:
    """Show the timeline."""
    context = context_of(request)
    now = context.now()
    with context.store.reading() as connection:
        asked = _asked(request, connection, now)
        mark = _stamp(connection, asked, now)
        shown = view.read(connection, asked, now, _zone(request))
    query = request.url.query
    return render(
        request,
        "timeline.html",
        charts=True,
        view=shown,
        stamp=mark,
        **_WRITING,
        fragment_address="/timeline/view" + (f"?{query}" if query else ""),
    )


@router.get("/timeline/view")
def timeline_view(request: Request, person: Viewer) -> Response:
    """Give the part of the page that follows filters, zoom and time; 204 while nothing changed."""
    context = context_of(request)
    now = context.now()
    with context.store.reading() as connection:
        asked = _asked(request, connection, now)
        mark = _stamp(connection, asked, now)
        same = unchanged(request, mark)
        if same is not None:
            return same
        shown = view.read(connection, asked, now, _zone(request))
    return fragment(request, "_timeline.html", stamp=mark, view=shown, **_WRITING)


def _asked(request: Request, connection: Connection, now: datetime) -> Asked:
    extent = None
    if request.query_params.get("range") == "all":
        extent = first_and_last(connection)
    given = [pair for pair in request.query_params.multi_items() if pair[0] != "stamp"]
    return understand(given, now, extent)


def _stamp(connection: Connection, asked: Asked, now: datetime) -> str:
    """Change when anything came in, or when a range that ends now has moved on."""
    moved = int(now.timestamp()) // SLIDES_S if asked.preset is not None else 0
    return f"{stamp(connection)}-{moved}"


def _zone(request: Request) -> ZoneInfo:
    return words.zone(request.cookies.get("sw_zone"))
