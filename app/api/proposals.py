"""How does a program read proposals, and approve or reject one?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from app.actions.decide import Choice, Decider, Verdict, decide
from app.actions.executor import executor_of
from app.api.paging import Listing
from app.api.reading import Reading
from app.auth import Deciding, Sender
from app.context import Context, context_of
from app.errors import not_found
from app.filters import bad
from app.store import blast_reading, docket_reading, ids, proposal_listing, proposals, tokens
from app.store.blast_reading import ReachedJob
from app.store.proposal_listing import ListedProposal
from app.strict_json import StrictJSON

router = APIRouter(prefix="/api/v1", tags=["deciding"])

WAIT_S = 3.0
STATUSES = (*proposals.PENDING, *proposals.UNDER_WAY, *proposals.ENDED)
PROPOSALS = Listing(
    "proposals",
    order="newest first: created_at descending, then id",
    filters=(
        "cluster", "namespace", "job", "node", "instance", "gpu", "rule", "status", "from", "to",
        "q",
    ),
    columns=(
        "id", "case", "action", "status", "cluster", "node", "instance_id", "gpu_uuid",
        "evidence_version", "recommended_by", "blocked", "created_at", "expires_at",
        "decided_by", "decided_at", "outcome",
    ),
    cursor=(int, int),
)  # fmt: skip


class Decision(BaseModel):
    """What a program sends to approve or reject."""

    model_config = ConfigDict(extra="ignore")

    evidence_version: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = Field(
        description="as read from the proposal; another one now is answered 409"
    )
    reason: Annotated[str, Field(max_length=2_000)] = ""
    node_uid: Annotated[str | None, Field(max_length=200)] = Field(
        None, description="uid of the node that is meant; another one is refused"
    )
    policy: Annotated[str | None, Field(max_length=40)] = Field(
        None, description="version of the limits as read; another one now is answered 409"
    )


@router.get("/proposals", summary="List proposals", openapi_extra=PROPOSALS.openapi())
def listed(request: Request, by: Reading) -> Response:
    """List proposals, the newest first."""
    page = PROPOSALS.read(request)
    for status in page.filters.status:
        if status not in STATUSES:
            raise bad("status", f"status must be one of {', '.join(STATUSES)}.")
    with context_of(request).store.reading() as connection:
        after = (page.after[0], page.after[1]) if page.after else None
        found = proposal_listing.page(
            connection, page.filters, after, page.limit + 1, bound=(by.cluster, by.namespace)
        )
    as_row = csv_row if page.form == "csv" else _plain
    return PROPOSALS.answer(page, [as_row(one) for one in found], [one.key for one in found])


@router.get("/proposals/{proposal_id}", summary="Read one proposal")
def proposal(request: Request, by: Reading, proposal_id: str) -> Response:
    """Give one proposal with the jobs that its case reaches."""
    return _answer(request, by, _read_id(proposal_id))


@router.post("/proposals/{proposal_id}/approve", summary="Approve a proposal")
def approve(request: Request, by: Deciding, proposal_id: str, decision: Decision) -> Response:
    """Approve; 409 when the evidence changed, or somebody decided it before."""
    return _decide(request, by, proposal_id, decision, "approved")


@router.post("/proposals/{proposal_id}/reject", summary="Reject a proposal")
def reject(request: Request, by: Deciding, proposal_id: str, decision: Decision) -> Response:
    """Reject; 409 when the evidence changed, or somebody decided it before."""
    return _decide(request, by, proposal_id, decision, "rejected")


def _decide(
    request: Request, by: Sender, proposal_id: str, decision: Decision, verdict: Verdict
) -> Response:
    context = context_of(request)
    row_id = _read_id(proposal_id)
    with context.store.reading() as connection:
        found = proposal_listing.one(connection, row_id)
    if found is None:
        raise not_found("no proposal with this id")
    by.check(found.proposal.cluster, found.namespace)
    choice = Choice(
        verdict,
        decision.evidence_version,
        decision.reason,
        decision.node_uid,
        policy=decision.policy,
    )
    decide(context, row_id, decider(context, by), choice)
    if verdict == "approved":
        executor_of(request).wait_for(row_id, WAIT_S)
    return _answer(request, by, row_id)


def decider(context: Context, by: Sender) -> Decider:
    """Let a program decide in the name of its token, and of whoever made that."""
    if by.token_id is None:
        return Decider(by.name, "admin" if by.scope == "admin" else "approver")
    with context.store.reading() as connection:
        token = tokens.by_id(connection, by.token_id)
    return Decider(f"token {by.name}", "approver", token.created_by if token else None)


def _answer(request: Request, by: Sender, row_id: int) -> Response:
    with context_of(request).store.reading() as connection:
        found = proposal_listing.one(connection, row_id)
        if found is None or not by.allows(found.proposal.cluster, found.namespace):
            raise not_found("no proposal with this id")
        case = docket_reading.one(connection, found.proposal.case_id)
        assert case is not None
        reached = blast_reading.reached(connection, case)
    return StrictJSON(as_json(found, reached), headers={"Cache-Control": "no-store"})


def _read_id(text: str) -> int:
    try:
        return ids.read(text)
    except ValueError:
        raise not_found("no proposal with this id") from None


def _plain(one: ListedProposal) -> dict[str, Any]:
    return as_json(one, None)


def as_json(one: ListedProposal, reached: Sequence[ReachedJob] | None) -> dict[str, Any]:
    """Give one proposal as programs read it; `reached` None: not asked for, as in lists."""
    p = one.proposal
    return {
        "id": ids.show(p.id),
        "url": f"/proposals/{ids.show(p.id)}",
        "case": ids.show(p.case_id),
        "action": p.action,
        "cluster": p.cluster,
        "target": {
            "node": p.node_name,
            "node_uid": p.node_uid,
            "instance_id": p.instance_id,
            "gpu_uuid": p.gpu_uuid,
        },
        "status": p.status,
        "result": p.result,
        "evidence_version": one.evidence_version,
        "table_version": p.table_version,
        "recommended_by": p.recommended_by,
        "why": p.why,
        "blocked": p.blocked,
        "blast_radius": None if reached is None else blast(reached),
        "created_at": p.created_at,
        "expires_at": p.expires_at,
        "decided_by": p.decided_by,
        "decided_at": p.decided_at,
        "decision_reason": p.decision_reason,
        "policy": p.policy,
        "lineage": p.lineage,
        "execute_by": p.execute_by,
        "batch": None if p.batch_id is None else ids.show(p.batch_id),
        "claimed_at": p.claimed_at,
        "finished_at": p.finished_at,
        "outcome": p.outcome,
        "details": p.details,
    }


def csv_row(one: ListedProposal) -> dict[str, Any]:
    """Give one proposal as a flat row."""
    whole = as_json(one, None)
    target = whole.pop("target")
    return {**whole, "node": target["node"], **target}


def blast(reached: Sequence[ReachedJob]) -> dict[str, Any]:
    """Give the jobs that a case reaches."""
    return {
        "jobs": [
            {
                "id": ids.show(job.job_id),
                "job": job.job,
                "namespace": job.namespace,
                "level": job.level,
                "started_at": job.started_at,
                "ended_at": job.ended_at,
                "first_step": job.first_step,
                "last_step": job.last_step,
                "suspect_window": None if job.window is None else list(job.window),
                "checkpoints": job.saved,
                "checkpoints_inside": job.inside,
                "newest_before": job.before,
            }
            for job in reached
        ]
    }
