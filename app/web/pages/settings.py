"""What is set, who may come in, which tokens work, and does the brake hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from app.actions import brakes
from app.cluster.errors import ClusterError
from app.cluster.ports import Permission
from app.config import Settings
from app.context import context_of
from app.errors import not_found
from app.store import people, rail_policy, run_settings, tokens
from app.web import sessions
from app.web.rendering import done, render
from app.web.security import Admin, Operator, Viewer

router = APIRouter(include_in_schema=False)

# Shown, but never with their value.
_SECRET = {"admin_token"}
_ELSEWHERE = {"clusters", "providers"}  # have tables of their own


@dataclass(frozen=True, slots=True)
class Policy:
    """One setting as the page shows it."""

    variable: str
    value: str
    meaning: str


@router.get("/settings")
def settings_page(request: Request, person: Viewer) -> Response:
    """Show all of it; what only an administrator may change has no buttons for others."""
    context = context_of(request)
    with context.store.reading() as connection:
        everybody = people.everybody(connection)
        known_tokens = tokens.everything(connection)
        brake = run_settings.brake(connection)
        limits = rail_policy.in_force(connection)
    shown = sessions.take_secret(request)
    response = render(
        request,
        "settings.html",
        clusters=[port.status() for _, port in sorted(context.clusters.items())],
        providers=[port.status() for _, port in sorted(context.providers.items())],
        everybody=everybody,
        tokens=known_tokens,
        scopes=tokens.SCOPES,
        roles=people.ROLES,
        brake=brake,
        limits=limits,
        policies=policies(context.settings),
        shown_once=shown,
        admin_token_set=bool(context.settings.admin_token),
    )
    if shown is not None:
        sessions.drop_secret(response)
    return response


@router.get("/settings/cluster")
def cluster(
    request: Request, person: Viewer, name: Annotated[str, Query(max_length=400)]
) -> Response:
    """Ask one cluster for its version and our rights, now."""
    port = context_of(request).clusters.get(name)
    if port is None:
        raise not_found("no cluster of this name in WITNESS_CLUSTERS")
    version: str | None = None
    rights: tuple[Permission, ...] = ()
    error: str | None = None
    try:
        version = port.version()
        rights = port.can()
    except ClusterError as failed:
        error = failed.message
    return render(
        request,
        "cluster.html",
        cluster=port.status(),
        version=version,
        rights=rights,
        error=error,
        nav="/settings",
    )


@router.post("/settings/brake/pull")
def pull_brake(
    request: Request, person: Operator, reason: Annotated[str, Form(max_length=1000)] = ""
) -> Response:
    """Hold back every action but undoing; any operator may."""
    return _set_brake(request, person, reason, pulled=True)


@router.post("/settings/brake/release")
def release_brake(
    request: Request, person: Admin, reason: Annotated[str, Form(max_length=1000)] = ""
) -> Response:
    """Let actions out again; an administrator decides."""
    return _set_brake(request, person, reason, pulled=False)


def _set_brake(request: Request, person: people.Person, reason: str, *, pulled: bool) -> Response:
    context = context_of(request)
    now = context.now()
    verb = "pulled" if pulled else "released"
    if brakes.set_by_hand(context, pulled, reason, person.name):
        said = f"{person.name} {verb} the brake at {now:%H:%M} UTC."
    else:
        said = f"The brake was {verb} before; nothing was changed."
    return done(request, "/settings#brake", said)


def policies(settings: Settings) -> tuple[Policy, ...]:
    """List the settings with their values and what they mean."""
    return tuple(
        Policy(
            f"WITNESS_{name.upper()}",
            _shown(settings, name),
            _sentence(field.description or ""),
        )
        for name, field in Settings.model_fields.items()
        if name not in _ELSEWHERE
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    if name in _SECRET:
        return "set, not shown" if value else "not set"
    if name == "database_url":
        return without_password(settings.resolved_database_url())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return str(value) or "empty"


def without_password(url: str) -> str:
    """Write a database address without its password and its options."""
    kind, _, rest = url.partition("://")
    rest = rest.partition("?")[0]
    if "@" in rest:
        login, _, host = rest.rpartition("@")
        rest = f"{login.partition(':')[0]}@{host}"
    return f"{kind}://{rest}"
