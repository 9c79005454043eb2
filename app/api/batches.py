"""How does a program decide many proposals at once, and say something about one?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions.batch import LIMIT, Picked, decide_together
from app.actions.comments import TEXT_LIMIT, comment
from app.actions.decide import Choice
from app.actions.executor import executor_of
from app.api.proposals import decider
from app.api.reading import Reading
from app.auth import Deciding
from app.context import context_of
from app.errors import Problem, not_found
from app.store import batches, ids, proposal_comments, proposal_listing, proposals
from app.store.batches import Batch
from app.store.connection import Connection
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["deciding"])


class Named(BaseModel):
    """One proposal with the evidence version that was read of it."""

    model_config = ConfigDict(extra="ignore")

    id: Annotated[str, Field(max_length=40)]
    evidence_version: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]


class Together(BaseModel):
    """What a program sends to decide many proposals."""

    model_config = ConfigDict(extra="ignore")

    verdict: Literal["approved", "rejected"]
    members: Annotated[list[Named], Field(min_length=1, max_length=LIMIT)]
    reason: Annotated[str, Field(max_length=2_000)] = ""
    policy: Annotated[str | None, Field(max_length=40)] = Field(
        None, description="version of the limits as read; members are refused by another one"
    )


class Said(BaseModel):
    """What a program sends as a comment."""

    model_config = ConfigDict(extra="ignore")

    text: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]


@router.post("/proposals/batch", summary="Decide many proposals, each for itself")
def decide_batch(request: Request, by: Deciding, asked: Together) -> Response:
    """Decide every member by itself; the answer tells one by one which were, and why not."""
    context = context_of(request)
    picked = [Picked(_read_id(one.id), one.evidence_version) for one in asked.members]
    choice = Choice(asked.verdict, 0, plain(asked.reason), policy=asked.policy)
    done = decide_together(
        context,
        picked,
        decider(context, by),
        choice,
        lambda one: by.allows(one.cluster, one.namespace),
    )
    executor_of(request).wake()
    with context.store.reading() as connection:
        body = _as_json(connection, done)
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


@router.get("/proposals/batches/{batch_id}", summary="Read one batch of decisions")
def batch(request: Request, by: Reading, batch_id: str) -> Response:
    """Give one batch with how each of its members stands now."""
    with context_of(request).store.reading() as connection:
        found = batches.get(connection, _read_id(batch_id))
        if found is None:
            raise not_found("no batch with this id")
        whose = batches.whose(connection, [one.proposal_id for one in found.members])
        if not all(by.allows(one.cluster, one.namespace) for one in whose.values()):
            raise not_found("no batch with this id")
        body = _as_json(connection, found)
    return StrictJSON(body, headers={"Cache-Control": "no-store"})


@router.post("/proposals/{proposal_id}/comments", summary="Say something about a proposal")
def add_comment(request: Request, by: Deciding, proposal_id: str, said: Said) -> Response:
    """Keep a comment; the same words by the same author twice are kept once."""
    context = context_of(request)
    row_id = _read_id(proposal_id)
    with context.store.reading() as connection:
        found = proposal_listing.one(connection, row_id)
    if found is None:
        raise not_found("no proposal with this id")
    by.check(found.proposal.cluster, found.namespace)
    comment(context, row_id, decider(context, by), plain(said.text))
    with context.store.reading() as connection:
        listed = proposal_comments.of_proposal(connection, row_id)
    items = [{"at": one.at, "author": one.author, "text": one.text} for one in listed]
    return StrictJSON({"items": items}, headers={"Cache-Control": "no-store"})


def plain(text: str) -> str:
    """Leave out what no database keeps."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()


def _as_json(connection: Connection, done: Batch) -> dict[str, Any]:
    members = []
    for one in done.members:
        proposal = proposals.get(connection, one.proposal_id)
        members.append(
            {
                "id": ids.show(one.proposal_id),
                "decided": one.kept,
                "code": one.code,
                "message": one.words,
                "status": proposal.status if proposal else None,
                "outcome": proposal.outcome if proposal else None,
            }
        )
    return {
        "id": ids.show(done.id),
        "verdict": done.verdict,
        "by": done.by,
        "at": done.at,
        "reason": done.reason,
        "asked": done.asked,
        "decided": done.kept,
        "members": members,
    }


def _read_id(text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise Problem(404, "not_found", f"There is no id {text[:40]!r} here.") from None
