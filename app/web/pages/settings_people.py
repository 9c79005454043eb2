"""How does an administrator let people in and shut them out?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.context import Context, context_of
from app.errors import Problem, not_found
from app.store import audit, people
from app.store.connection import Connection
from app.store.people import LastAdmin, Person
from app.web import sessions
from app.web.addresses import read_id
from app.web.pages.settings_tokens import plain
from app.web.rendering import done
from app.web.security import Admin

router = APIRouter(include_in_schema=False)

HERE = "/settings#people"
Change = Callable[[Connection, Person], str | None]


@router.post("/settings/people")
def create(
    request: Request,
    person: Admin,
    name: Annotated[str, Form(max_length=100)] = "",
    role: Annotated[str, Form()] = "viewer",
) -> Response:
    """Make a person with a first sign-in link."""
    name = plain(name, "name")
    if not name:
        raise Problem(422, "invalid", "A person needs a name.", field="name")
    _check_role(role)
    context = context_of(request)
    now = context.now()

    def work(connection: Connection) -> tuple[bool, str]:
        made, new = people.ensure(connection, name, role, now)
        if not new:
            return False, ""
        summary = f"{person.name} made the person {name} with the role {role}."
        audit.append(connection, person.name, "person.created", summary, at=now)
        minutes = context.settings.sign_in_link_minutes
        return True, people.make_link(connection, made.id, now, minutes)

    new, secret = context.store.write(work)
    if not new:
        return done(request, HERE, f"{name} is there already; nothing was changed.")
    response = done(request, HERE, f"{person.name} made {name}, {role}, at {now:%H:%M} UTC.")
    sessions.leave_secret(request, response, f"Sign-in link for {name}", _address(request, secret))
    return response


@router.post("/settings/people/{person_id}/link")
def link(request: Request, person: Admin, person_id: str) -> Response:
    """Make another sign-in link."""
    context = context_of(request)
    now = context.now()
    secrets: list[str] = []

    def change(connection: Connection, whom: Person) -> str | None:
        if whom.disabled:
            return None
        minutes = context.settings.sign_in_link_minutes
        secrets.append(people.make_link(connection, whom.id, now, minutes))
        return f"{person.name} made a sign-in link for {whom.name}."

    whom, said = _change(context, person, person_id, "person.link_made", change, now)
    if said is None:
        return done(request, HERE, f"{whom.name} is disabled; no link was made.")
    response = done(request, HERE, f"{said[:-1]} at {now:%H:%M} UTC.")
    # Only the last attempt of the write was kept, and only its secret works.
    title = f"Sign-in link for {whom.name}"
    sessions.leave_secret(request, response, title, _address(request, secrets[-1]))
    return response


@router.post("/settings/people/{person_id}/role")
def set_role(
    request: Request, person: Admin, person_id: str, role: Annotated[str, Form()]
) -> Response:
    """Give a person another role."""
    _check_role(role)

    def change(connection: Connection, whom: Person) -> str | None:
        if whom.role == role:
            return None
        people.set_role(connection, whom.id, role)
        return f"{person.name} gave {whom.name} the role {role} instead of {whom.role}."

    return _changed(request, person, person_id, "person.role_changed", change)


@router.post("/settings/people/{person_id}/end-sessions")
def end_sessions(request: Request, person: Admin, person_id: str) -> Response:
    """End every session of a person and spoil the links not used yet."""

    def change(connection: Connection, whom: Person) -> str | None:
        people.end_sessions(connection, whom.id)
        return f"{person.name} ended all sessions and unused links of {whom.name}."

    return _changed(request, person, person_id, "person.sessions_ended", change)


@router.post("/settings/people/{person_id}/disable")
def disable(request: Request, person: Admin, person_id: str) -> Response:
    """Shut a person out at once."""
    return _changed(request, person, person_id, "person.disabled", _disabling(person, True))


@router.post("/settings/people/{person_id}/enable")
def enable(request: Request, person: Admin, person_id: str) -> Response:
    """Let a person in again, by a new link."""
    return _changed(request, person, person_id, "person.enabled", _disabling(person, False))


def _disabling(person: Person, disabled: bool) -> Change:
    def change(connection: Connection, whom: Person) -> str | None:
        if whom.disabled == disabled:
            return None
        people.set_disabled(connection, whom.id, disabled)
        return f"{person.name} {'shut out' if disabled else 'let in again'} {whom.name}."

    return change


def _changed(
    request: Request, person: Person, person_id: str, verb: str, change: Change
) -> Response:
    context = context_of(request)
    now = context.now()
    whom, said = _change(context, person, person_id, verb, change, now)
    if said is None:
        return done(request, HERE, f"{whom.name} was so before; nothing was changed.")
    return done(request, HERE, f"{said[:-1]} at {now:%H:%M} UTC.")


def _change(
    context: Context, person: Person, person_id: str, verb: str, change: Change, now: datetime
) -> tuple[Person, str | None]:
    row_id = read_id(person_id, "person")

    def work(connection: Connection) -> tuple[Person | None, str | None]:
        whom = people.by_id(connection, row_id)
        said = None if whom is None else change(connection, whom)
        if said is not None:
            audit.append(connection, person.name, verb, said, at=now, details={"id": person_id})
        return whom, said

    try:
        whom, said = context.store.write(work)
    except LastAdmin as error:
        message = f"Nothing was changed: {error}. Make another administrator first."
        raise Problem(409, "last_admin", message) from error
    if whom is None:
        raise not_found("no person with this id")
    return whom, said


def _check_role(role: str) -> None:
    if role not in people.ROLES:
        raise Problem(422, "invalid", f"A role is one of {', '.join(people.ROLES)}.", field="role")


def _address(request: Request, secret: str) -> str:
    public = context_of(request).settings.public_url.rstrip("/")
    return f"{public or str(request.base_url).rstrip('/')}/sign-in/{secret}"
