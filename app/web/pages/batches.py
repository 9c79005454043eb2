"""What would many approvals do together, and what became of them?"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from app.actions.batch import LIMIT, Picked, attempt, decide_together
from app.actions.batch_reading import read_ends
from app.actions.comments import comment
from app.actions.decide import Choice
from app.actions.deciders import Decider, Verdict
from app.actions.executor import executor_of
from app.context import context_of
from app.errors import Problem, not_found
from app.store import batches, evidence, ids, proposals
from app.store.people import Person
from app.web import batch_view
from app.web.addresses import read_id
from app.web.rendering import done, render
from app.web.security import Operator, Viewer

router = APIRouter(include_in_schema=False)

Members = Annotated[list[str], Form(max_length=LIMIT)]
Text = Annotated[str, Form(max_length=2_000)]


def _decider(person: Person) -> Decider:
    return Decider(person.name, person.role)


@router.get("/approvals/batch")
def preview(
    request: Request, person: Operator, m: Annotated[list[str], Query(max_length=LIMIT)]
) -> Response:
    """Show what deciding the chosen proposals together would do; nothing is kept of it."""
    context = context_of(request)
    rows = list(dict.fromkeys(read_id(one, "proposal") for one in m))
    with context.store.reading() as connection:
        known = [proposals.get(connection, row_id) for row_id in rows]
        picked = [Picked(one.id, evidence.version(connection, one.case_id)) for one in known if one]
        found = batch_view.listed(connection, picked)
    if not found:
        raise not_found("no proposal with any of these ids")
    trial = attempt(context, picked, _decider(person), Choice("approved", 0))
    ends = read_ends(context, [one.proposal for one in found.values()])
    whole = batch_view.whole(found, trial, ends)
    return render(request, "batch.html", whole=whole, chosen=len(rows), nav="/approvals")


@router.post("/approvals/batch/approve")
def approve(
    request: Request,
    person: Operator,
    member: Members,
    reason: Text = "",
    policy: Annotated[str, Form(max_length=40)] = "",
    typed: Text = "",
) -> Response:
    """Approve every member that nothing holds back; one reason for all of them."""
    picked = [_member(one) for one in member]
    context = context_of(request)
    with context.store.reading() as connection:
        found = batch_view.listed(connection, picked)
    word = batch_view.typed_for(sum(one.proposal.destroys for one in found.values()))
    if word is not None and " ".join(typed.split()).casefold() != word:
        here = "/approvals/batch?" + "&".join(f"m={ids.show(one.proposal_id)}" for one in picked)
        return done(request, here, f"“{word}” was not typed. Nothing was approved.")
    return _decide(request, person, picked, "approved", reason, policy or None)


@router.post("/approvals/batch/reject")
def reject(request: Request, person: Operator, member: Members, reason: Text = "") -> Response:
    """Reject every member; nothing is sent anywhere."""
    picked = [_member(one) for one in member]
    return _decide(request, person, picked, "rejected", reason, None)


def _decide(
    request: Request,
    person: Person,
    picked: list[Picked],
    verdict: Verdict,
    reason: str,
    policy: str | None,
) -> Response:
    context = context_of(request)
    choice = Choice(verdict, 0, reason.strip(), policy=policy)
    batch = decide_together(context, picked, _decider(person), choice)
    executor_of(request).wake()
    words = f"{person.name} {verdict} {batch.kept} of {batch.asked} at {batch.at:%H:%M:%S} UTC."
    left = batch.asked - batch.kept
    if left:
        words += f" {left} {'was' if left == 1 else 'were'} not decided; each says why."
    return done(request, f"/approvals/batches/{ids.show(batch.id)}", words)


def _member(text: str) -> Picked:
    ident, _, version = text.partition(".")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Problem(422, "invalid", "A member of the form cannot be read.", field="member")
    return Picked(read_id(ident, "proposal"), int(version))


@router.get("/approvals/batches/{batch_id}")
def decided(request: Request, person: Viewer, batch_id: str) -> Response:
    """Show what became of a batch, member by member."""
    with context_of(request).store.reading() as connection:
        batch = batches.get(connection, read_id(batch_id, "batch"))
        if batch is None:
            raise not_found("no batch with this id")
        members = [Picked(one.proposal_id, 0) for one in batch.members]
        found = batch_view.listed(connection, members)
    rows = batch_view.after(found, batch)
    return render(request, "batch_after.html", batch=batch, rows=rows, nav="/approvals")


@router.post("/proposals/{proposal_id}/comments")
def add_comment(request: Request, person: Operator, proposal_id: str, text: Text = "") -> Response:
    """Keep a comment on a proposal, before or after its decision."""
    row_id = read_id(proposal_id, "proposal")
    kept = comment(context_of(request), row_id, _decider(person), text)
    words = f"{person.name} commented." if kept else "The same comment stood there already."
    return done(request, f"/proposals/{proposal_id}#comments", words)
