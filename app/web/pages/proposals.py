"""What would this action do, who decides it, and what came of it?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions import preview, undo, verify
from app.actions.decide import Choice, Decider, decide
from app.actions.executor import executor_of
from app.actions.previewing.about_platform import THEN
from app.actions.previewing.looking_again import Looked, look_again
from app.actions.previewing.seen import LONGEST
from app.actions.reaching import port_of
from app.actions.ways import way_of
from app.context import context_of
from app.errors import Problem, not_found
from app.store import ids
from app.store.people import Person
from app.web import proposal_answers, proposal_view
from app.web.addresses import read_id
from app.web.proposal_life import Life, read_life
from app.web.proposal_view import Subject
from app.web.rendering import done, fragment, render, unchanged
from app.web.security import Operator, Viewer

router = APIRouter(include_in_schema=False)

WAIT_S = 3.0

Text = Annotated[str, Form(max_length=2_000)]
Version = Annotated[int, Form(ge=0, le=2**31 - 1)]


def decider(person: Person) -> Decider:
    """Let a person decide with the role that the person has."""
    return Decider(person.name, person.role)


def _subject(request: Request, proposal_id: str) -> Subject:
    with context_of(request).store.reading() as connection:
        about = proposal_view.subject(connection, read_id(proposal_id, "proposal"))
    if about is None:
        raise not_found("no proposal with this id")
    return about


@router.get("/proposals/{proposal_id}")
def proposal(request: Request, person: Viewer, proposal_id: str) -> Response:
    """Show a proposal: the live preview while it is open, its life afterwards."""
    context = context_of(request)
    about = _subject(request, proposal_id)
    cluster = port_of(context, about.proposal.cluster).status()
    if about.proposal.status != "proposed":
        return render(
            request, "proposal.html", about=about, life=_life(request, about), cluster=cluster
        )
    shown = preview.preview(context, about.proposal)
    return render(
        request,
        "proposal_open.html",
        about=about,
        shown=shown,
        answers=proposal_answers.answers(shown),
        choices=proposal_answers.rows(shown.going, context.now().timestamp()),
        then=THEN,
        way=proposal_view.WAYS.get(way_of(shown.proposal)),
        cluster=cluster,
    )


def _life(request: Request, about: Subject) -> Life:
    with context_of(request).store.reading() as connection:
        return read_life(connection, about.proposal)


@router.get("/fragment/proposals/{proposal_id}")
def life_fragment(request: Request, person: Viewer, proposal_id: str) -> Response:
    """Give the life of a proposal for a page that shows it, 204 while nothing changed."""
    about = _subject(request, proposal_id)
    life = _life(request, about)
    same = unchanged(request, life.stamp)
    if same is not None:
        return same
    return fragment(request, "_proposal_after.html", stamp=life.stamp, about=about, life=life)


class Approval(BaseModel):
    """What the form of an approval carries: what was seen, what was typed, and why."""

    evidence_version: int = Field(ge=0, le=2**31 - 1)
    reason: str = Field("", max_length=2_000)
    node_uid: str = Field("", max_length=2_000)
    policy: str = Field("", max_length=200)
    table_version: str = Field("", max_length=200)
    node: str = Field("", max_length=2_000)  # typed
    words: str = Field("", max_length=2_000)  # typed, where other teams' pods end
    seen: str = Field("", max_length=LONGEST)


@router.post("/proposals/{proposal_id}/approve")
def approve(
    request: Request, person: Operator, proposal_id: str, asked: Annotated[Approval, Form()]
) -> Response:
    """Approve, let it be carried out, and say what came of it."""
    context = context_of(request)
    about = _subject(request, proposal_id)
    here = f"/proposals/{proposal_id}"
    looked = Looked()
    if about.proposal.status == "proposed":
        looked = look_again(context, about.proposal, asked.seen, asked.node, asked.words)
    if looked.refused is not None:
        return done(request, here, looked.refused)
    choice = Choice(
        "approved", asked.evidence_version, asked.reason.strip(), asked.node_uid or None,
        asked.policy or None, asked.table_version or None, looked.lineage,
    )  # fmt: skip
    try:
        decided = decide(context, about.proposal.id, decider(person), choice)
    except Problem as problem:
        return _say(request, here, problem)
    after = executor_of(request).wait_for(decided.id, WAIT_S)
    at = decided.decided_at or context.now()
    return done(request, here, proposal_view.done_words(after, person.name, at))


@router.post("/proposals/{proposal_id}/reject")
def reject(
    request: Request,
    person: Operator,
    proposal_id: str,
    evidence_version: Version,
    reason: Text = "",
) -> Response:
    """Reject a proposal; nothing is sent anywhere."""
    context = context_of(request)
    about = _subject(request, proposal_id)
    choice = Choice("rejected", evidence_version, reason.strip())
    try:
        decided = decide(context, about.proposal.id, decider(person), choice)
    except Problem as problem:
        return _say(request, f"/proposals/{proposal_id}", problem)
    at = decided.decided_at or context.now()
    words = f"{about.title}: rejected by {person.name} at {at:%H:%M:%S} UTC. Nothing was changed."
    return done(request, f"/proposals/{proposal_id}", words)


def _say(request: Request, here: str, problem: Problem) -> Response:
    """Bring the person back to the page with the reason; a missing proposal stays an error."""
    if problem.status != 409:
        raise problem
    return done(request, here, problem.message)


@router.get("/proposals/{proposal_id}/undo")
def preview_undo(request: Request, person: Viewer, proposal_id: str) -> Response:
    """Show what lifting a cordon would do now."""
    about = _subject(request, proposal_id)
    if about.proposal.action != "cordon":
        raise not_found("no cordon with this id")
    shown = preview.of_uncordon(context_of(request), about.proposal)
    return render(request, "undo.html", about=about, shown=shown)


@router.post("/proposals/{proposal_id}/undo")
def lift(
    request: Request,
    person: Operator,
    proposal_id: str,
    reason: Text = "",
    node_uid: Text = "",
) -> Response:
    """Lift a cordon of ours and say what came of it."""
    context = context_of(request)
    cordon_id = read_id(proposal_id, "proposal")
    try:
        written = undo.undo(context, cordon_id, decider(person), reason.strip(), node_uid or None)
    except Problem as problem:
        return _say(request, f"/proposals/{proposal_id}", problem)
    after = executor_of(request).wait_for(written.id, WAIT_S)
    at = written.decided_at or context.now()
    words = proposal_view.done_words(after, person.name, at)
    return done(request, f"/proposals/{ids.show(written.id)}", words)


@router.post("/proposals/{proposal_id}/read-again")
def read_again(request: Request, person: Operator, proposal_id: str) -> Response:
    """Read the cluster for an action whose outcome is unknown."""
    here = f"/proposals/{proposal_id}"
    row_id = read_id(proposal_id, "proposal")
    try:
        after = verify.read_again(context_of(request), row_id, person.name)
    except Problem as problem:
        return _say(request, here, problem)
    return done(request, here, f"Read by {person.name}. {after.outcome}")


@router.post("/proposals/{proposal_id}/ask-again")
def ask_again(request: Request, person: Operator, proposal_id: str) -> Response:
    """Propose the same action anew."""
    row_id = read_id(proposal_id, "proposal")
    try:
        written = undo.ask_again(context_of(request), row_id, decider(person))
    except Problem as problem:
        return _say(request, f"/proposals/{proposal_id}", problem)
    words = f"Proposed again by {person.name}. Nothing was changed yet."
    return done(request, f"/proposals/{ids.show(written.id)}", words)
