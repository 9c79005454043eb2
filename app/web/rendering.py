"""How does a page or a fragment come out of a template?

    return render(request, "jobs.html", jobs=rows, title="Jobs")
    return fragment(request, "_docket_rows.html", stamp=version, rows=rows)
    return done(request, "/cases/" + ident, "Cordon of node-7 approved at 15:17 UTC by T. Reyes.")

Every template gets: `person` (or None), `may("operator")`, `csrf` (the hidden field as markup),
`nonce`, `now`, `nav` (the lit entry of the navigation), `theme`, `zone_name`, `asset("style.css")`.
Filters: `when`, `clock` (no seconds), `ago`, `waiting`, `duration`, `number`, `count("alarm")`,
`ident`, `name` (limit), `short_uuid`.  Undefined names raise.  docs/web.md says the same at length.
"""

from __future__ import annotations

import secrets
import time
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context as TemplateContext
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.context import Context, context_of
from app.store import waiting
from app.store.database import StoreUnavailable
from app.web import security, sessions, static, words

WAITS_FOR_S = 2.0
TEMPLATES = Path(__file__).parents[2] / "templates"

NAVIGATION = (
    ("/", "Docket"),
    ("/timeline", "Timeline"),
    ("/offenders", "Repeat offenders"),
    ("/jobs", "Jobs"),
    ("/decision-table", "Decision table"),
    ("/approvals", "Approvals"),
    ("/audit", "Audit"),
    ("/triage", "Triage"),
    ("/settings", "Settings"),
)
# Pages without an entry of their own light the one that leads to them.
_LIT_BY = {"cases": "/", "alarms": "/", "proposals": "/approvals"}


@pass_context
def _when(context: TemplateContext, at: datetime | None, seconds: bool = True) -> Markup:
    return words.time_tag(at, context["zone"], context["now"], seconds)


@pass_context
def _clock(context: TemplateContext, at: datetime | None) -> Markup:
    return words.time_tag(at, context["zone"], context["now"], seconds=False)


@pass_context
def _ago(context: TemplateContext, at: datetime | None) -> str:
    return words.duration(None if at is None else (context["now"] - at).total_seconds())


@pass_context
def _waiting(context: TemplateContext, at: datetime) -> str:
    return "waiting " + words.duration((context["now"] - at).total_seconds())


@cache
def environment() -> Environment:
    """Build the template environment once."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        when=_when,
        clock=_clock,
        ago=_ago,
        waiting=_waiting,
        duration=words.duration,
        number=words.number,
        count=words.count,
        ident=words.ident,
        name=words.name_tag,
        short_uuid=words.short_uuid,
    )
    env.globals.update(navigation=NAVIGATION, asset=static.address)
    return env


def render(
    request: Request,
    template: str,
    *,
    status: int = 200,
    charts: bool = False,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Render a whole page; `charts` is for pages that draw with Plotly."""
    nonce = secrets.token_urlsafe(16)
    common = _common(request, nonce)
    common["message"] = message = sessions.take_message(request)
    body = environment().get_template(template).render({**common, **values})
    response = HTMLResponse(body, status, headers)
    response.headers["Content-Security-Policy"] = security.page_policy(nonce, charts=charts)
    if message is not None:
        response.delete_cookie(sessions.FLASH_COOKIE, path="/")
    sessions.keep_visit(request, response)
    return response


def fragment(request: Request, template: str, *, stamp: str, **values: Any) -> Response:
    """Render a part of a page for a page that already shows it; see `unchanged`."""
    body = (
        environment()
        .get_template(template)
        .render({**_common(request, ""), "stamp": stamp, **values})
    )
    return HTMLResponse(body, headers={"X-Stamp": stamp})


def unchanged(request: Request, stamp: str) -> Response | None:
    """Give the empty 204 answer when the page already shows this stamp, else None."""
    if request.query_params.get("stamp") == stamp:
        return Response(status_code=204, headers={"X-Stamp": stamp})
    return None


def done(request: Request, to: str, message: str) -> Response:
    """Answer a POST: 303 to a page of ours, which says what was done."""
    response = RedirectResponse(security.local_path(to), 303)
    sessions.leave_message(request, response, message)
    return response


def _common(request: Request, nonce: str) -> dict[str, Any]:
    context = context_of(request)
    session = sessions.current_or_none(request)
    person = None if session is None else session.person
    theme = request.cookies.get("sw_theme")
    zone = words.zone(unquote(request.cookies.get("sw_zone", "")))
    return {
        "person": person,
        "may": partial(security.person_may, person),
        "csrf": _CsrfField(request),
        "nonce": nonce,
        "now": context.now(),
        "zone": zone,
        "zone_name": zone.key,
        "theme": theme if theme in ("light", "dark") else None,
        "nav": _lit(request.url.path),
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "waits": {} if person is None else _waits(request, context),
        "message": None,
        "search_text": request.query_params.get("q", "") if request.url.path == "/search" else "",
    }


def _waits(request: Request, context: Context) -> dict[str, str]:
    """Give the numbers beside the navigation, at most two seconds old; none during an outage."""
    state = request.app.state
    moment, known = getattr(state, "waits", (0.0, {}))
    if time.monotonic() - moment > WAITS_FOR_S:
        try:
            with context.store.reading() as connection:
                found = waiting.read(connection)
            known = {"/": _number(found.open_cases), "/approvals": _number(found.proposals)}
        except StoreUnavailable:
            known = {}
        state.waits = (time.monotonic(), known)
    return known


def _number(count: int) -> str:
    return f"{waiting.MOST - 1}+" if count >= waiting.MOST else str(count)


def _lit(path: str) -> str:
    first = path.split("/")[1]
    return _LIT_BY.get(first, "/" + first)


class _CsrfField:
    """The hidden field of a form, made only where a template asks for it."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __html__(self) -> str:
        return Markup('<input type="hidden" name="{}" value="{}">').format(
            security.CSRF_FIELD, sessions.form_token(self._request)
        )
