"""Who takes note of a condemned GPU at work, and why is that right?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions import condemned
from app.context import context_of
from app.errors import Problem
from app.web.addresses import read_id
from app.web.pages.proposals import decider
from app.web.rendering import done
from app.web.security import Operator

router = APIRouter(include_in_schema=False)


@router.post("/condemned/{sighting_id}/note")
def take_note(
    request: Request,
    person: Operator,
    sighting_id: str,
    reason: Annotated[str, Form(max_length=2_000)] = "",
    back: Annotated[str, Form(max_length=60)] = "/",
) -> Response:
    """Take note of a condemned GPU at work, and go back to where it was said."""
    row_id = read_id(sighting_id, "sighting")
    try:
        said = condemned.acknowledge(context_of(request), row_id, decider(person), reason)
    except Problem as problem:
        if problem.status != 409:
            raise
        said = problem.message
    own = back.startswith("/cases/") and back.removeprefix("/cases/").isalnum()
    return done(request, back if own else "/", said)
