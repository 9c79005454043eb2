"""How does a person ask for an action on a case's machine that no rule proposes?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions import rails, requesting
from app.actions.requesting import Asked
from app.context import context_of
from app.errors import Problem
from app.store import ids
from app.web.addresses import read_id
from app.web.pages.proposals import decider
from app.web.rendering import done
from app.web.security import Operator

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form(max_length=2_000)]


@router.post("/cases/{case_id}/ask")
def ask(
    request: Request,
    person: Operator,
    case_id: str,
    action: Annotated[str, Form(max_length=40)],
    reason: Text = "",
    way: Annotated[str, Form(max_length=40)] = "",
    checks: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Propose the action and lead to its preview."""
    asked = Asked(action, reason, way or None, tuple(checks or ()))
    row_id = read_id(case_id, "case")
    try:
        written = requesting.request(context_of(request), row_id, asked, decider(person))
    except Problem as problem:
        if problem.status not in (400, 409):
            raise
        return done(request, f"/cases/{case_id}", f"{problem.message} Nothing was proposed.")
    words = f"{rails.title(written)} proposed by {person.name}. Nothing was changed yet."
    return done(request, f"/proposals/{ids.show(written.id)}", words)
