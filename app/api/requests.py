"""How does a program ask for an action that no rule proposes, or say what became of one?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions import requesting
from app.actions import settle as settling
from app.actions.requesting import Asked
from app.api import proposals as proposals_api
from app.auth import Deciding
from app.context import context_of
from app.errors import not_found
from app.store import docket_reading, ids, proposal_listing
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["deciding"])


class Wanted(BaseModel):
    """What a program sends to ask for an action."""

    model_config = ConfigDict(extra="ignore")

    action: Annotated[str, Field(max_length=40)] = Field(
        description=f"one of {', '.join(sorted(requesting.WAYS))}"
    )
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]
    way: Annotated[str | None, Field(max_length=40)] = Field(
        None, description="api, label, gke_label or gke_host; none: as the cluster needs it"
    )
    checks: Annotated[list[str], Field(max_length=3)] = Field(
        default_factory=list, description="for a deep health check: the provider's names of checks"
    )


class Known(BaseModel):
    """What a program sends to say what became of an order."""

    model_config = ConfigDict(extra="ignore")

    done: bool = Field(description="whether it was done, by what the sender knows")
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]


@router.post("/proposals/{proposal_id}/settle", summary="Say what became of an order")
def settle(request: Request, by: Deciding, proposal_id: str, known: Known) -> Response:
    """Settle an order whose outcome nothing shows; 409 when it has one."""
    context = context_of(request)
    try:
        row_id = ids.read(proposal_id)
    except ValueError:
        raise not_found("no proposal with this id") from None
    with context.store.reading() as connection:
        found = proposal_listing.one(connection, row_id)
    if found is None:
        raise not_found("no proposal with this id")
    by.check(found.proposal.cluster, found.namespace)
    who = proposals_api.decider(context, by)
    settling.settle(context, row_id, who, done=known.done, reason=known.reason)
    with context.store.reading() as connection:
        after = proposal_listing.one(connection, row_id)
    assert after is not None
    return StrictJSON(proposals_api.as_json(after, None))


@router.post("/cases/{case_id}/proposals", status_code=201, summary="Ask for an action")
def ask(request: Request, by: Deciding, case_id: str, wanted: Wanted) -> Response:
    """Propose an action on the machine of a case; 409 when the same is there already."""
    context = context_of(request)
    try:
        row_id = ids.read(case_id)
    except ValueError:
        raise not_found("no case with this id") from None
    with context.store.reading() as connection:
        case = docket_reading.one(connection, row_id)
    if case is None:
        raise not_found("no case with this id")
    by.check(case.cluster, case.namespace)
    asked = Asked(wanted.action, wanted.reason, wanted.way, tuple(wanted.checks))
    written = requesting.request(context, row_id, asked, proposals_api.decider(context, by))
    with context.store.reading() as connection:
        found = proposal_listing.one(connection, written.id)
    assert found is not None
    return StrictJSON(proposals_api.as_json(found, None), status_code=201)
