"""Which cases wait, most urgent first?"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.context import context_of
from app.web import docket_page
from app.web.drawings.hour_cells import Cell, one_cell
from app.web.rendering import fragment, render, unchanged
from app.web.security import Viewer
from witness.rules.decision_table import TABLE_VERSION

router = APIRouter(include_in_schema=False)

_LEGEND: tuple[tuple[Cell, str], ...] = (
    ("ring", "ring alarm"),
    ("weights", "weights alarm"),
    ("nonfinite", "non-finite alarm"),
    ("nobody", "alarm that names nobody"),
    ("pass", "audited, nothing found"),
    ("unreported", "work ran, no pass reported"),
    ("none", "no work"),
)


@router.get("/")
def docket(request: Request, person: Viewer) -> Response:
    """Show the docket."""
    asked = docket_page.read_asked(request)
    page = docket_page.read_docket(context_of(request), asked)
    legend = [(one_cell(cell), label) for cell, label in _LEGEND]
    return render(
        request,
        "docket.html",
        docket=page,
        fragment_address=asked.address("/fragment/docket", after=asked.after),
        legend=legend,
        table_version=TABLE_VERSION,
    )


@router.get("/fragment/docket")
@router.get("/fragments/docket")
def docket_fragment(request: Request, person: Viewer) -> Response:
    """Give the live part of the docket, 204 while nothing changed."""
    context = context_of(request)
    asked = docket_page.read_asked(request)
    with context.store.reading() as connection:
        stamp = docket_page.stamp(connection, context.now())
    same = unchanged(request, stamp)
    if same is not None:
        return same
    page = docket_page.read_docket(context, asked)
    return fragment(request, "_docket_live.html", stamp=page.stamp, docket=page)
