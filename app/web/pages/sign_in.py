"""How does a person sign in and out?

A link holds a secret that works once.  Opening it only shows a button: programs that look at links
in messages use GET and must not use it up.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.context import context_of
from app.store import audit, people
from app.store.connection import Connection
from app.web import sessions
from app.web.rendering import done, render
from app.web.security import Anybody, local_path

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
def sign_in(request: Request, next: str = "/") -> Response:
    """Say how to sign in; somebody who is signed in goes on."""
    if sessions.current(request) is not None:
        return RedirectResponse(local_path(next), 303)
    response = render(request, "sign_in.html", link=None, spent=False, nav="/sign-in")
    if local_path(next) != "/":
        sessions.remember_next(request, response, local_path(next))
    return response


@router.get("/sign-in/{secret}")
def open_link(request: Request, secret: str) -> Response:
    """Show whom the link signs in, and the button that does it."""
    context = context_of(request)
    with context.store.reading() as connection:
        link = people.find_link(connection, secret)
    works = link is not None and link.works(context.now())
    return render(
        request,
        "sign_in.html",
        status=200 if works else 410,
        link=link if works else None,
        spent=not works,
        secret=secret,
        nav="/sign-in",
    )


@router.post("/sign-in/{secret}")
def use_link(request: Request, secret: str, _: Anybody) -> Response:
    """Use the link up and begin a session."""
    context = context_of(request)
    now = context.now()

    def sign_in_once(connection: Connection) -> people.Person | None:
        person = people.use_link(connection, secret, now)
        if person is not None:
            audit.append(
                connection, person.name, "person.signed_in", f"{person.name} signed in.", at=now
            )
        return person

    person = context.store.write(sign_in_once)
    if person is None:
        return open_link(request, secret)
    response = RedirectResponse(sessions.remembered_next(request), 303)
    sessions.begin(request, response, person)
    return response


@router.post("/sign-out")
def sign_out(request: Request, _: Anybody) -> Response:
    """End this browser's session; nothing happens where nobody is signed in."""
    response = done(request, "/sign-in", "Signed out.")
    sessions.end(request, response, context_of(request))
    return response
