"""How does a person say what became of an order where nothing that can be read shows it?

A row without an outcome counts among the nodes that are being destroyed, so it must not stay so for
ever. What a person says is kept as that person's word: it is never sent again because of it.
"""

from __future__ import annotations

from app.actions import rails, writing
from app.actions.deciders import Decider, role_needed
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.filters import bad
from app.store import audit, evidence, proposals
from app.store.connection import Connection
from app.store.proposals import Proposal


def can_be_settled(proposal: Proposal) -> bool:
    """Tell whether a person may say what became of it: nobody knows, or it is stuck."""
    stuck = proposal.status in ("accepted", "waiting") and "stuck_since" in proposal.details
    return proposal.status == "unknown" or stuck


def settle(
    context: Context, proposal_id: int, decider: Decider, *, done: bool, reason: str
) -> Proposal:
    """Keep what a person says of an order; raise Problem where it has an outcome already."""
    if not reason.strip():
        raise bad("reason", "reason must say how that is known; it stands in the audit.")
    now = context.now()

    def write(connection: Connection) -> Proposal | Problem:
        before = proposals.get(connection, proposal_id)
        if before is None:
            return not_found("no proposal with this id")
        role = role_needed(before.action)
        if not decider.may(role):
            return forbidden(f"Settling {rails.title(before)} needs the role {role}.")
        evidence.version(connection, before.case_id, lock=True)
        if not can_be_settled(before):
            words = f"{rails.title(before)} is {before.status}: there is nothing to settle."
            return Problem(409, "nothing_to_settle", words, more={"status": before.status})
        said = f"{decider.name} says that it was {'' if done else 'not '}done: {reason.strip()}"
        values = {
            "status": "verified" if done else "failed",
            "finished_at": now,
            "next_look_at": None,
            "outcome": f"{before.outcome or ''} {said}".strip(),
            "details": {**before.details, "settled_by": decider.name, "settled_at": str(now)},
        }
        if not proposals.move(connection, proposal_id, (before.status,), values):
            return Problem(409, "nothing_to_settle", "It has an outcome by now.")
        audit.append(
            connection,
            decider.name,
            "proposal.settled",
            f"{rails.title(before)}, approved by {before.decided_by}: {said}",
            at=now,
            case_id=before.case_id,
            proposal_id=proposal_id,
            node_id=before.node_id,
            details={"before": before.status, "done": done},
        )
        after = proposals.get(connection, proposal_id)
        assert after is not None
        return after

    written = writing.write(context, write)
    if isinstance(written, Problem):
        raise written
    return written
