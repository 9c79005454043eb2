"""What may a browser do here, and who may use a route?

A route names what it needs in its signature; for a POST the same dependency also checks that the
form was ours:

    @router.get("/jobs")
    def jobs(request: Request, person: Viewer) -> Response: ...

    @router.post("/cases/{case_id}/notes")
    def add_note(request: Request, person: Operator, text: Annotated[str, Form()]) -> Response: ...

Only the sign-in page is for `Anybody`; a test walks all routes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.context import context_of
from app.errors import Problem, forbidden
from app.store.people import Person
from app.web import sessions

CSRF_FIELD = "csrf"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class SignInNeeded(Exception):
    """Nobody is signed in; the browser is sent to the sign-in page and comes back to `next`."""

    def __init__(self, next_path: str) -> None:
        """Keep where to come back to."""
        super().__init__("sign in first")
        self.next_path = next_path


async def own_form(request: Request) -> None:
    """Refuse a POST that did not come from a form of ours."""
    if request.method in SAFE_METHODS:
        return
    if not came_from_us(request):
        raise Problem(403, "foreign_form", "This form was sent from another site.")
    form = await request.form()
    given = form.get(CSRF_FIELD)
    fits = isinstance(given, str) and await run_in_threadpool(
        sessions.form_token_fits, request, given
    )
    if not fits:
        raise Problem(
            403,
            "stale_form",
            "This form belongs to another sign-in, or its page is too old. "
            "Nothing was changed; open the page again and repeat it.",
        )


def came_from_us(request: Request) -> bool:
    """Compare what the browser says about the sender of a form with our own address."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return True  # older browsers and programs send none; the form token still has to fit
    if origin == "null":
        # A page of ours never has an opaque origin; sandboxed foreign frames do.
        return False
    public = context_of(request).settings.public_url
    ours = {request.headers.get("host", "").lower()}
    if public:
        ours.add(urlsplit(public).netloc.lower())
    return urlsplit(origin).netloc.lower() in ours


def require(role: str) -> Callable[..., Person]:
    """Make the dependency that lets in people of this role and above."""

    def person_of(request: Request, _form: Annotated[None, Depends(own_form)]) -> Person:
        person = signed_in(request)
        if not person.may(role):
            raise forbidden(
                f"This needs the role {role}; {person.name} has the role {person.role}. "
                "An administrator can change that in the settings."
            )
        return person

    person_of.needs_role = role  # type: ignore[attr-defined]
    return person_of


def signed_in(request: Request) -> Person:
    """Give the person of this request or send the browser to the sign-in page."""
    session = sessions.current(request)
    if session is None:
        raise SignInNeeded(_here(request))
    return session.person


def _here(request: Request) -> str:
    if request.method not in SAFE_METHODS:
        # A POST cannot be repeated after the sign-in: go back to the page that had the form.
        referer = urlsplit(request.headers.get("referer", ""))
        same = referer.netloc == request.headers.get("host")
        return local_path(f"{referer.path}?{referer.query}" if same else "/")
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def local_path(target: str | None) -> str:
    """Keep only a path on this server; anything else becomes the first page."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")):
        return "/"
    if any(ord(letter) < 33 or letter == "\\" or ord(letter) == 127 for letter in target):
        return "/"
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return "/"
    return quote(target, safe="/?&=%:;,+~!*'()@$-._[]#")


def person_may(person: Person | None, role: str) -> bool:
    """Tell whether somebody may do something; nobody may do nothing."""
    return person is not None and person.may(role)


Anybody = Annotated[None, Depends(own_form)]
Viewer = Annotated[Person, Depends(require("viewer"))]
Operator = Annotated[Person, Depends(require("operator"))]
Approver = Annotated[Person, Depends(require("approver"))]
Admin = Annotated[Person, Depends(require("admin"))]

_CSP = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'{inline}; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def page_policy(nonce: str, *, charts: bool) -> str:
    """Write the content security policy of a page.

    Plotly sets style attributes and adds a style sheet of its own; only pages with charts allow
    that (trial: one violation without it).  Scripts stay bound to our files and the nonce.
    """
    return _CSP.format(nonce=nonce, inline=" 'unsafe-inline'" if charts else "")


HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
