"""How does a person forbid to touch a node from its page, and take that back?"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from app.actions import vetoes
from app.actions.deciders import Decider
from app.context import context_of
from app.errors import Problem, not_found
from app.store import ids
from app.store.connection import Connection
from app.store.device_reading import Node, node_by_id
from app.web.addresses import read_id
from app.web.rendering import done
from app.web.security import Operator

router = APIRouter(include_in_schema=False)

Reason = Annotated[str, Form(max_length=1_000)]
LONGEST_H = 24 * 366


def _node(connection: Connection, text: str) -> Node:
    node = node_by_id(connection, read_id(text, "node"))
    if node is None:
        raise not_found("no node with this id")
    return node


@router.post("/nodes/{node_id}/vetoes")
def forbid(
    request: Request,
    person: Operator,
    node_id: str,
    reason: Reason = "",
    hours: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Forbid every action on a node but undoing, until an end or until it is lifted."""
    context = context_of(request)
    with context.store.reading() as connection:
        node = _node(connection, node_id)
    here = f"/nodes/{ids.show(node.id)}#veto"
    until = context.now() + timedelta(hours=_hours(hours)) if hours.strip() else None
    if not node.name:
        return done(request, here, "This node has no name by which anything could be done to it.")
    try:
        vetoes.forbid(
            context,
            node.cluster,
            node.name,
            Decider(person.name, person.role),
            reason,
            until=until,
            instance_id=node.instance_id,
            node_id=node.id,
        )
    except Problem as problem:
        if problem.status != 409:
            raise
        return done(request, here, problem.message)
    end = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ", until somebody lifts it"
    return done(request, here, f"{person.name} forbids to touch {node.name}{end}.")


def _hours(text: str) -> float:
    try:
        hours = float(text.strip().replace(",", "."))
    except ValueError:
        hours = 0.0
    if not 0 < hours <= LONGEST_H:
        words = f"The hours have to be a number between 0 and {LONGEST_H}."
        raise Problem(422, "invalid", words, field="hours")
    return hours


@router.post("/nodes/{node_id}/vetoes/{veto_id}/lift")
def lift(
    request: Request, person: Operator, node_id: str, veto_id: int, reason: Reason = ""
) -> Response:
    """Take a veto back."""
    context = context_of(request)
    with context.store.reading() as connection:
        node = _node(connection, node_id)
    here = f"/nodes/{ids.show(node.id)}#veto"
    by = Decider(person.name, person.role)
    try:
        vetoes.lift(context, veto_id, by, reason, node.id)
    except Problem as problem:
        if problem.status != 409:
            raise
        return done(request, here, problem.message)
    return done(request, here, f"{person.name} lifted the veto on {node.label}.")
