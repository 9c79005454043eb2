"""How does a program read the limits and the brake, forbid a node, and stop everything?"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions import brakes, vetoes
from app.api.batches import plain
from app.api.proposals import decider
from app.api.reading import Reading
from app.auth import Deciding, Sender
from app.context import context_of
from app.errors import forbidden, not_found
from app.store import rail_policy, run_settings
from app.store import vetoes as kept_vetoes
from app.store.vetoes import Veto
from app.strict_json import StrictJSON
from witness.rules.rail_policy import FIELDS

router = APIRouter(prefix="/api/v1", tags=["deciding"])

Words = Annotated[str, Field(min_length=1, max_length=1_000)]
NO_STORE = {"Cache-Control": "no-store"}


class NewVeto(BaseModel):
    """What a program sends to forbid a node."""

    model_config = ConfigDict(extra="ignore")

    cluster: Annotated[str, Field(min_length=1, max_length=400)]
    node: Annotated[str, Field(min_length=1, max_length=400)]
    reason: Words
    until: AwareDatetime | None = Field(None, description="null: until somebody lifts it")


class Because(BaseModel):
    """A reason."""

    model_config = ConfigDict(extra="ignore")

    reason: Words


class BrakeAsked(BaseModel):
    """How the brake shall stand, and why."""

    model_config = ConfigDict(extra="ignore")

    pulled: Annotated[bool, Field(strict=True)]
    reason: Words


@router.get("/policy", summary="Read the limits that are in force")
def policy(request: Request, by: Reading) -> Response:
    """Give every limit with its meaning; `assumed` until an administrator sets one."""
    with context_of(request).store.reading() as connection:
        found = rail_policy.in_force(connection)
    limits = [
        {
            "name": field.name,
            "value": getattr(found.policy, field.name),
            "unit": field.unit,
            "meaning": field.meaning,
            "low": field.low,
            "high": field.high,
        }
        for field in FIELDS
    ]
    body = {
        "version": found.policy.name,
        "assumed": found.policy.version == 0,
        "changed_by": found.changed_by,
        "changed_at": found.changed_at,
        "limits": limits,
    }
    return StrictJSON(body, headers=NO_STORE)


@router.get("/brake", summary="Read how the brake stands")
def brake(request: Request, by: Reading) -> Response:
    """Tell whether the brake is pulled, by whom and why."""
    with context_of(request).store.reading() as connection:
        state = run_settings.brake(connection)
    body = {
        "pulled": state.pulled,
        "reason": state.reason or None,
        "changed_by": state.changed_by,
        "changed_at": state.changed_at,
    }
    return StrictJSON(body, headers=NO_STORE)


@router.post("/brake", summary="Pull or release the brake")
def set_brake(request: Request, by: Deciding, asked: BrakeAsked) -> Response:
    """Pull it with any token that decides; only the administrator's releases it."""
    if by.cluster is not None or by.namespace is not None:
        raise forbidden(f"The token {by.name} is bound to a part; the brake holds for everything.")
    if not asked.pulled and by.scope != "admin":
        raise forbidden("Only the administrator's token, or an administrator, releases the brake.")
    context = context_of(request)
    changed = brakes.set_by_hand(
        context, asked.pulled, plain(asked.reason), decider(context, by).name
    )
    return StrictJSON({"pulled": asked.pulled, "changed": changed}, headers=NO_STORE)


@router.get("/vetoes", summary="List who forbids to touch which node")
def listed(request: Request, by: Reading) -> Response:
    """List all vetoes, also those that ended, the newest first."""
    context = context_of(request)
    with context.store.reading() as connection:
        found = kept_vetoes.everything(connection)
    items = [_as_json(one, context.now()) for one in found if _may_see(by, one)]
    return StrictJSON({"items": items, "order": "newest first"}, headers=NO_STORE)


@router.post("/vetoes", status_code=201, summary="Forbid to touch a node")
def forbid(request: Request, by: Deciding, asked: NewVeto) -> Response:
    """Forbid every action on a node but undoing; 409 while a veto on it stands."""
    _check(by, asked.cluster)
    context = context_of(request)
    made = vetoes.forbid(
        context,
        plain(asked.cluster),
        plain(asked.node),
        decider(context, by),
        plain(asked.reason),
        until=asked.until,
    )
    return StrictJSON(_as_json(made, context.now()), 201, headers=NO_STORE)


@router.post("/vetoes/{veto_id}/lift", summary="Take a veto back")
def lift(request: Request, by: Deciding, veto_id: str, asked: Because) -> Response:
    """Take a veto back; 409 when it was lifted before."""
    context = context_of(request)
    number = int(veto_id) if veto_id.isascii() and veto_id.isdigit() and len(veto_id) < 18 else 0
    with context.store.reading() as connection:
        veto = kept_vetoes.get(connection, number)
    if veto is None:
        raise not_found("no veto with this id")
    _check(by, veto.cluster)
    after = vetoes.lift(context, number, decider(context, by), plain(asked.reason))
    return StrictJSON(_as_json(after, context.now()), headers=NO_STORE)


def _may_see(by: Sender, veto: Veto) -> bool:
    return by.cluster in (None, veto.cluster)


def _check(by: Sender, cluster: str) -> None:
    """Refuse a token of one namespace: a node is shared by all of them."""
    if by.namespace is not None or by.cluster not in (None, cluster):
        raise forbidden(f"The token {by.name} may not speak for every namespace of {cluster}.")


def _as_json(one: Veto, now: datetime) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "cluster": one.cluster,
        "node": one.node_name,
        "instance_id": one.instance_id,
        "reason": one.reason,
        "by": one.by,
        "at": one.at,
        "until": one.until,
        "lifted_by": one.lifted_by,
        "lifted_at": one.lifted_at,
        "holds": one.holds(now),
    }
