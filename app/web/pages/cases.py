"""What is known of one case, and what do people say about it?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions import adjudicate as judging
from app.actions import rails, requesting
from app.context import context_of
from app.errors import Problem, not_found
from app.store.casebook import ADJUDICATIONS
from app.web import case_view
from app.web.addresses import read_id
from app.web.pages.proposals import decider
from app.web.rendering import done, render
from app.web.security import Operator, Viewer
from app.web.telemetry.on_case import read_on_case
from witness.rules.decision_table import TABLE_VERSION

router = APIRouter(include_in_schema=False)


@router.get("/cases/{case_id}")
def case(request: Request, person: Viewer, case_id: str) -> Response:
    """Show a case."""
    context = context_of(request)
    page = case_view.read_case(context, read_id(case_id, "case"))
    if page is None:
        raise not_found("no case with this id")
    with context.store.reading() as connection:
        tele = read_on_case(connection, page.case, page.findings, context.settings.sources)
    return render(
        request,
        "case.html",
        page=page,
        tele=tele,
        adjudications=ADJUDICATIONS,
        askable=[{"action": one, "title": rails.action_word(one)} for one in requesting.WAYS],
        table_version=TABLE_VERSION,
    )


@router.post("/cases/{case_id}/notes")
def add_note(
    request: Request, person: Operator, case_id: str, text: Annotated[str, Form()] = ""
) -> Response:
    """Keep a note."""
    context = context_of(request)
    kept = judging.note(context, read_id(case_id, "case"), decider(person), text)
    at = f"{context.now():%H:%M:%S} UTC"
    said = f"Note added by {person.name} at {at}." if kept else "The same note was there already."
    return done(request, f"/cases/{case_id}", said)


@router.post("/cases/{case_id}/adjudicate")
def adjudicate(
    request: Request,
    person: Operator,
    case_id: str,
    before: Annotated[str, Form()],
    after: Annotated[str, Form()],
    ground: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """Say what the case turned out to be."""
    row_id = read_id(case_id, "case")
    try:
        said = judging.adjudicate(
            context_of(request), row_id, decider(person), before, after, ground.strip()
        )
    except Problem as problem:
        if problem.status != 409:
            raise
        said = problem.message
    return done(request, f"/cases/{case_id}", said)
