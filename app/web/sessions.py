"""Who is this browser, and how does a session begin and end?

The cookie holds person, epoch and a random session id, signed; the database decides on every
request whether the person still exists, is not disabled and has not ended the session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from app.context import Context, context_of
from app.store import people, run_settings
from app.store.database import StoreUnavailable
from app.store.people import Person

SESSION_COOKIE = "sw_session"
VISIT_COOKIE = "sw_visit"  # ties forms to a browser that is not signed in yet
FLASH_COOKIE = "sw_message"
NEXT_COOKIE = "sw_next"
ONCE_COOKIE = "sw_once"


@dataclass(frozen=True, slots=True)
class Session:
    """One signed-in browser."""

    person: Person
    id: str


def signing_key(request: Request) -> str:
    """Give the key that signs cookies; it lies in the database, so all processes share it."""
    state = request.app.state
    key: str | None = getattr(state, "session_key", None)
    if key is None:
        context = context_of(request)
        with context.store.reading() as connection:
            key = run_settings.read(connection, run_settings.SESSION_KEY)
        if key is None:
            now = context.now()
            key = context.store.write(lambda c: run_settings.ensure_session_key(c, now))
        state.session_key = key
    return key


def _signer(request: Request, purpose: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(signing_key(request), salt=f"silent-witness.{purpose}")


def current(request: Request) -> Session | None:
    """Give the session of this request, looked up once; None when nobody is signed in."""
    if not hasattr(request.state, "session"):
        request.state.session = _look_up(request)
    session: Session | None = request.state.session
    return session


def current_or_none(request: Request) -> Session | None:
    """Give the session, or None also while the database is away: for error pages."""
    try:
        return current(request)
    except StoreUnavailable:
        return None


def person_of(request: Request) -> Person | None:
    """Give who is signed in on this browser; None when nobody is."""
    session = current(request)
    return None if session is None else session.person


def _look_up(request: Request) -> Session | None:
    cookie = request.cookies.get(SESSION_COOKIE)
    if not cookie:
        return None
    context = context_of(request)
    try:
        content: Any = _signer(request, "session").loads(
            cookie, max_age=int(context.settings.session_hours * 3600)
        )
        person_id, epoch, session_id = int(content["p"]), int(content["e"]), str(content["s"])
    except (BadData, KeyError, TypeError, ValueError):
        return None
    with context.store.reading() as connection:
        person = people.by_id(connection, person_id)
        if person is None or person.disabled or person.session_epoch != epoch:
            return None
        if run_settings.is_ended(connection, session_id):
            return None
    return Session(person, session_id)


def begin(request: Request, response: Response, person: Person) -> None:
    """Sign a person in on this browser."""
    content = {"p": person.id, "e": person.session_epoch, "s": secrets.token_urlsafe(12)}
    hours = context_of(request).settings.session_hours
    value = _signer(request, "session").dumps(content)
    _set(request, response, SESSION_COOKIE, value, int(hours * 3600))


def end(request: Request, response: Response, context: Context) -> None:
    """Sign this browser out; the cookie is worth nothing afterwards, wherever a copy of it is."""
    session = current(request)
    if session is not None:
        now = context.now()
        lasts = timedelta(hours=context.settings.session_hours)
        context.store.write(
            lambda c: run_settings.end_session(
                c, session.id, by=session.person.name, at=now, lasts=lasts
            )
        )
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax")


def _set(
    request: Request,
    response: Response,
    name: str,
    value: str,
    seconds: int,
    samesite: Literal["lax", "strict"] = "lax",
) -> None:
    secure = context_of(request).settings.secure_cookies
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite=samesite
    )


def remember_next(request: Request, response: Response, path: str) -> None:
    """Keep where somebody wanted to go until the sign-in is done."""
    _set(request, response, NEXT_COOKIE, _signer(request, "next").dumps(path[:1500]), 1800)


def remembered_next(request: Request) -> str:
    """Give where somebody wanted to go, the docket when nothing is known."""
    try:
        path = _signer(request, "next").loads(request.cookies.get(NEXT_COOKIE, ""), max_age=1800)
    except BadData:
        return "/"
    return str(path)


# --- forms ------------------------------------------------------------------------------------


def form_token(request: Request) -> str:
    """Give the token that every form carries: bound to the session, or else to the visit."""
    session = current_or_none(request)
    if session is not None:
        return _form_token(request, "session", session.id)
    return _form_token(request, "visit", visit(request))


def visit(request: Request) -> str:
    """Name the browser of somebody who is not signed in; `render` sets the cookie."""
    known = request.cookies.get(VISIT_COOKIE) or getattr(request.state, "new_visit", None)
    if not known:
        known = request.state.new_visit = secrets.token_urlsafe(18)
    return str(known)


def keep_visit(request: Request, response: Response) -> None:
    """Send the visit's cookie if this request began the visit."""
    if new := getattr(request.state, "new_visit", None):
        _set(request, response, VISIT_COOKIE, new, 3600, samesite="strict")


def form_token_fits(request: Request, given: str) -> bool:
    """Compare the token of a form in constant time."""
    return hmac.compare_digest(form_token(request).encode(), given.encode("utf-8", "replace"))


def _form_token(request: Request, kind: str, name: str) -> str:
    key = signing_key(request).encode()
    return hmac.new(key, f"form:{kind}:{name}".encode(), hashlib.sha256).hexdigest()


# --- messages ---------------------------------------------------------------------------------


def leave_message(request: Request, response: Response, text: str) -> None:
    """Leave a sentence for the next page that this browser opens."""
    # A cookie holds 4 KiB; a sentence about a long name must not lose the whole answer.
    value = _signer(request, "message").dumps(text[:700])
    _set(request, response, FLASH_COOKIE, value, 60)


def take_message(request: Request) -> str | None:
    """Read the sentence left by the POST before; None when there is none."""
    cookie = request.cookies.get(FLASH_COOKIE)
    if not cookie:
        return None
    try:
        return str(_signer(request, "message").loads(cookie, max_age=60))
    except (BadData, StoreUnavailable):
        return None


def leave_secret(request: Request, response: Response, title: str, secret: str) -> None:
    """Leave a secret for the next page of this browser only; the service keeps no copy."""
    value = _signer(request, "secret").dumps([title[:300], secret])
    _set(request, response, ONCE_COOKIE, value, 120, samesite="strict")


def take_secret(request: Request) -> tuple[str, str] | None:
    """Read what was left: title and secret; None when there is nothing."""
    cookie = request.cookies.get(ONCE_COOKIE)
    if not cookie:
        return None
    try:
        title, secret = _signer(request, "secret").loads(cookie, max_age=120)
    except BadData:
        return None
    return str(title), str(secret)


def drop_secret(response: Response) -> None:
    """Take the secret away from the browser: it was shown."""
    response.delete_cookie(ONCE_COOKIE, path="/", httponly=True, samesite="strict")
