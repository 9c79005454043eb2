"""Who may read as a program: a token, or the browser of somebody who is signed in?"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.auth import Sender, check_scope, identify, unauthorised
from app.store.people import Person

SCOPES = ("read", "decide")


async def reader(request: Request) -> Sender:
    """Give who reads; a person may read everything, a token what it is bound to.

    GET only: a cookie must never be enough to change something here.
    """
    sender = await identify(request)
    if sender is not None:
        check_scope(sender, SCOPES)
        return sender
    person: Person | None = await run_in_threadpool(request.app.state.person_of, request)
    if person is None:
        raise unauthorised("Send a token: Authorization: Bearer, a space, the token.")
    return Sender(None, person.name, None, None, "read")


Reading = Annotated[Sender, Depends(reader)]
