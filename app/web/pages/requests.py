"""How does a person ask for an action that no rule proposes, or say what became of one?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions import rails, requesting
from app.actions import settle as settling
from app.actions.requesting import Asked
from app.context import context_of
from app.errors import Problem
from app.store import ids
from app.web.addresses import read_id
from app.web.pages.proposals import decider
from app.web.rendering import done as finish
from app.web.security import Operator

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form(max_length=2_000)]


@router.post("/proposals/{proposal_id}/settle")
def settle(
    request: Request,
    person: Operator,
    proposal_id: str,
    done: Annotated[str, Form(pattern="^(yes|no)$")],
    reason: Text = "",
) -> Response:
    """Keep what a person knows of an order whose outcome nothing shows."""
    here, row_id = f"/proposals/{proposal_id}", read_id(proposal_id, "proposal")
    try:
        after = settling.settle(
            context_of(request), row_id, decider(person), done=done == "yes", reason=reason
        )
    except Problem as problem:
        if problem.status not in (400, 409):
            raise
        return finish(request, here, problem.message)
    words = f"{rails.title(after)} settled by {person.name}: {after.status}. Nothing was sent."
    return finish(request, here, words)


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
        return finish(request, f"/cases/{case_id}", f"{problem.message} Nothing was proposed.")
    words = f"{rails.title(written)} proposed by {person.name}. Nothing was changed yet."
    return finish(request, f"/proposals/{ids.show(written.id)}", words)
