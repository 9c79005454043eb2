"""How does one person's yes or no become the only decision on a proposal?

The decision is a compare-and-set in the database, written and audited before anything is sent
anywhere: of any number of simultaneous clicks one is kept, and the others are told whose it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.actions import rails, writing
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, evidence, held_nodes, ids, proposals
from app.store.connection import Connection
from app.store.people import ROLES
from app.store.proposals import Proposal

Verdict = Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides: a person, or a program by the name of its token."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Tell whether the role reaches the one asked for."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided, and on which evidence."""

    verdict: Verdict
    evidence_version: int  # as the decider saw it
    reason: str = ""
    node_uid: str | None = None  # of the node as the preview showed it; None: no preview was read


def role_needed(action: str) -> str:
    """Name the role that may approve an action."""
    return "approver" if action in proposals.DESTROYS else "operator"


def decide(context: Context, proposal_id: int, decider: Decider, choice: Choice) -> Proposal:
    """Write the decision; raise Problem when it is not this decider's to make, or not any more."""
    now = context.now()
    four_eyes = context.settings.four_eyes

    def write(connection: Connection) -> Proposal | Problem:
        proposal = proposals.get(connection, proposal_id)
        if proposal is None:
            return not_found("no proposal with this id")
        problem = _not_theirs(proposal, decider, choice, four_eyes)
        problem = problem or _too_late(connection, proposal, now)
        problem = problem or _evidence_moved(connection, proposal, choice)
        if problem is None and choice.verdict == "approved":
            problem = _held_back(connection, proposal)
        return problem or _keep(connection, proposal, decider, choice, now)

    decided = writing.write(context, write)
    if isinstance(decided, Problem):
        # Raised only now: an expiry that was found on the way stays written.
        raise decided
    return decided


def _not_theirs(
    proposal: Proposal, decider: Decider, choice: Choice, four_eyes: bool
) -> Problem | None:
    role = role_needed(proposal.action) if choice.verdict == "approved" else "operator"
    if not decider.may(role):
        return forbidden(
            f"{rails.action_word(proposal.action)} needs the role {role}; "
            f"{decider.name} has the role {decider.role}."
        )
    own = proposal.recommended_by == decider.name
    if four_eyes and own and proposal.destroys and choice.verdict == "approved":
        return forbidden(f"{decider.name} asked for it, so another approver decides.")
    return None


def _too_late(connection: Connection, proposal: Proposal, now: datetime) -> Problem | None:
    if proposal.is_expired(now):
        expire(connection, proposal, now)
        return Problem(
            409, "expired", f"{rails.title(proposal)} expired undecided. Nothing was changed."
        )
    if proposal.status != "proposed":
        return already_decided(proposal)
    return None


def already_decided(proposal: Proposal) -> Problem:
    """Say who was first, and when."""
    if proposal.decided_at is None or proposal.decided_by is None:
        words = f"{rails.title(proposal)} is not open any more: {proposal.status}."
        return Problem(409, "not_open", words, more={"status": proposal.status})
    verdict = "rejected" if proposal.status == "rejected" else "approved"
    at = proposal.decided_at
    return Problem(
        409,
        "already_decided",
        f"{rails.title(proposal)} was already decided by {proposal.decided_by} at "
        f"{at:%Y-%m-%d %H:%M:%S} UTC: {verdict}. This decision changed nothing.",
        more={
            "decided_by": proposal.decided_by,
            "decided_at": at.isoformat().replace("+00:00", "Z"),
            "decision": verdict,
            "status": proposal.status,
        },
    )


def _evidence_moved(connection: Connection, proposal: Proposal, choice: Choice) -> Problem | None:
    # The case is locked: no new evidence can come between this look and the decision.
    now = evidence.version(connection, proposal.case_id, lock=True)
    if choice.evidence_version == now:
        return None
    seen = choice.evidence_version
    new = evidence.newest(connection, proposal.case_id, min(max(now - seen, 1), 10))
    added = "; ".join(one.words for one in new)
    return Problem(
        409,
        "evidence_changed",
        f"The evidence changed since this was shown: version {seen} then, version {now} now. "
        f"New: {added}. Nothing was decided; look at it again.",
        more={
            "seen": seen,
            "evidence_version": now,
            "changed": [
                {"alarm": ids.show(one.alarm_id), "kind": one.kind, "what": one.words}
                for one in new
            ],
        },
    )


def _held_back(connection: Connection, proposal: Proposal) -> Problem | None:
    if proposal.node_id is not None:
        held_nodes.lock(connection, proposal.node_id)
    rail = rails.in_the_way(connection, proposal)
    if rail is None:
        return None
    return Problem(409, rail.code, f"{rail.message} Nothing was approved.")


def _keep(
    connection: Connection, proposal: Proposal, decider: Decider, choice: Choice, now: datetime
) -> Proposal | Problem:
    values: dict[str, object] = {
        "status": choice.verdict,
        "decided_by": decider.name,
        "decided_at": now,
        "decision_reason": choice.reason or None,
        "evidence_version": choice.evidence_version,
    }
    if choice.node_uid:
        values["node_uid"] = choice.node_uid
    if choice.verdict == "rejected":
        values |= {"finished_at": now, "outcome": f"Rejected by {decider.name}."}
    kept = proposals.move(connection, proposal.id, proposals.PENDING, values)
    after = proposals.get(connection, proposal.id)
    assert after is not None
    if not kept:
        return already_decided(after)
    because = f": {choice.reason}" if choice.reason else "."
    audit.append(
        connection,
        decider.name,
        f"proposal.{choice.verdict}",
        f"{rails.title(after)} {choice.verdict} by {decider.name}{because}",
        at=now,
        case_id=after.case_id,
        proposal_id=after.id,
        node_id=after.node_id,
        details={
            "action": after.action,
            "evidence_version": after.evidence_version,
            "table_version": after.table_version,
            "node": after.node_name,
            "node_uid": after.node_uid,
            "instance_id": after.instance_id,
        },
    )
    return after


def expire(connection: Connection, proposal: Proposal, now: datetime) -> bool:
    """Close a proposal that nobody decided in time; False when somebody did after all."""
    values = {"status": "expired", "finished_at": now, "outcome": "Nobody decided in time."}
    if not proposals.move(connection, proposal.id, proposals.PENDING, values):
        return False
    audit.append(
        connection,
        "service",
        "proposal.expired",
        f"{rails.title(proposal)} expired: nobody decided in time.",
        at=now,
        case_id=proposal.case_id,
        proposal_id=proposal.id,
        node_id=proposal.node_id,
        details={"evidence_version": proposal.evidence_version},
    )
    return True
