"""How does one person's yes or no become the only decision on a proposal?

The decision is a compare-and-set in the database, written and audited before anything is sent
anywhere: of any number of simultaneous clicks one is kept, and the others are told whose it was.
A yes is bound to what was seen: evidence, table, limits and machine.  A no is never held up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.actions import changed, fleets, policy, rails, writing
from app.actions.casework import Policy, judge_cases
from app.actions.changed import Look
from app.actions.deciders import Decider, Verdict, not_theirs, role_needed
from app.actions.lineage import Lineage, lineage_of, read_lineage
from app.config import Settings
from app.context import Context
from app.errors import Problem, not_found
from app.store import audit, evidence, held_nodes, proposals, rail_policy
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.rail_policy import RailPolicy

__all__ = ["Choice", "Decider", "Ground", "Verdict", "decide", "decide_in", "role_needed"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided, and on what; None: not said, so it is not compared."""

    verdict: Verdict
    evidence_version: int  # as the decider saw it
    reason: str = ""
    node_uid: str | None = None  # of the node as the preview showed it; None: no preview was read
    policy: str | None = None  # version of the limits as shown
    table_version: str | None = None
    lineage: Lineage | None = None  # of the machine as the preview showed it

    @property
    def look(self) -> Look:
        """Give what was before the eyes."""
        return Look(self.evidence_version, self.table_version, self.policy)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a decision needs beside the database: the settings, the clock, the batch it is in."""

    settings: Settings
    now: datetime
    batch_id: int | None = None


def decide(context: Context, proposal_id: int, decider: Decider, choice: Choice) -> Proposal:
    """Write the decision; raise Problem when it is not this decider's to make, or not any more."""
    if choice.verdict == "approved":
        choice = prepared(context, proposal_id, choice)
    ground = Ground(context.settings, context.now())
    decided = writing.write(context, lambda c: decide_in(c, proposal_id, decider, choice, ground))
    if isinstance(decided, Problem):
        # Raised only now: an expiry that was found on the way stays written.
        raise decided
    return decided


def prepared(context: Context, proposal_id: int, choice: Choice) -> Choice:
    """Read before the transaction what the approval of something that destroys rests on."""
    with context.store.reading() as connection:
        proposal = proposals.get(connection, proposal_id)
        lasts = timedelta(hours=rail_policy.read(connection).fleet_hours)
    if proposal is None or not proposal.destroys or proposal.status != "proposed":
        return choice
    fleets.make_sure(context, proposal.cluster, lasts)
    if choice.lineage is not None:
        return choice
    return _with_lineage(choice, read_lineage(context, proposal))


def _with_lineage(choice: Choice, lineage: Lineage) -> Choice:
    return Choice(
        choice.verdict, choice.evidence_version, choice.reason, choice.node_uid, choice.policy,
        choice.table_version, lineage,
    )  # fmt: skip


def decide_in(
    connection: Connection, proposal_id: int, decider: Decider, choice: Choice, ground: Ground
) -> Proposal | Problem:
    """Decide within a transaction that holds the audit chain; a Problem leaves it undecided."""
    rail_policy.lock(connection, ground.now)
    proposal = proposals.get(connection, proposal_id)
    if proposal is None:
        return not_found("no proposal with this id")
    limits = rail_policy.read(connection)
    eyes = choice.verdict == "approved" and policy.four_eyes(limits, ground.settings)
    problem = not_theirs(connection, proposal, decider, choice.verdict, four_eyes=eyes)
    problem = problem or _too_late(connection, proposal, ground.now)
    if problem is None and choice.verdict == "approved":
        problem = _changed(connection, proposal, choice, ground)
        problem = problem or _held_back(connection, proposal, ground.now)
    return problem or _keep(connection, proposal, decider, choice, ground, limits)


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


def _changed(
    connection: Connection, proposal: Proposal, choice: Choice, ground: Ground
) -> Problem | None:
    found = changed.since(connection, proposal, choice.look)
    if not found:
        return None
    if any(one.code == "table_changed" for one in found):
        # What waits was judged by the table before; only a new judgement can be approved.
        _judge_again(connection, proposal, ground)
    version = evidence.version(connection, proposal.case_id)
    return changed.problem(found, choice.look, version)


def _judge_again(connection: Connection, proposal: Proposal, ground: Ground) -> None:
    settings = ground.settings
    days = Policy.of(settings)
    judge_cases(connection, [proposal.case_id], ground.now, days)


def _held_back(connection: Connection, proposal: Proposal, now: datetime) -> Problem | None:
    if proposal.node_id is not None:
        held_nodes.lock(connection, proposal.node_id)
    rail = rails.in_the_way(connection, proposal, now)
    if rail is None:
        return None
    return Problem(409, rail.code, f"{rail.message} Nothing was approved.")


def _keep(
    connection: Connection,
    proposal: Proposal,
    decider: Decider,
    choice: Choice,
    ground: Ground,
    limits: RailPolicy,
) -> Proposal | Problem:
    values: dict[str, object] = {
        "status": choice.verdict,
        "decided_by": decider.name,
        "decided_at": ground.now,
        "decision_reason": choice.reason or None,
        "evidence_version": choice.evidence_version,
        "batch_id": ground.batch_id,
    }
    if choice.verdict == "approved":
        values |= _bound(proposal, choice, ground.now, limits)
    else:
        values |= {"finished_at": ground.now, "outcome": f"Rejected by {decider.name}."}
    kept = proposals.move(connection, proposal.id, proposals.PENDING, values)
    after = proposals.get(connection, proposal.id)
    assert after is not None
    if not kept:
        return already_decided(after)
    _note(connection, after, decider, choice, ground.now)
    if choice.verdict == "rejected" and _is_stale(connection, after):
        # The no was said to older evidence: what is known now is proposed anew.
        _judge_again(connection, after, ground)
    return after


def _is_stale(connection: Connection, proposal: Proposal) -> bool:
    return evidence.version(connection, proposal.case_id, lock=True) != proposal.evidence_version


def _bound(
    proposal: Proposal, choice: Choice, now: datetime, limits: RailPolicy
) -> dict[str, object]:
    """Bind a yes to the machine that was seen, to the limits, and to a time."""
    lineage = {**lineage_of(proposal), **(choice.lineage or {})}
    if choice.node_uid:
        lineage["node_uid"] = choice.node_uid
    values: dict[str, object] = {
        "policy": limits.name,
        "lineage": lineage,
        "execute_by": now + timedelta(minutes=limits.execute_minutes),
    }
    if lineage.get("node_uid"):
        values["node_uid"] = lineage["node_uid"]
    return values


def _note(
    connection: Connection, after: Proposal, decider: Decider, choice: Choice, now: datetime
) -> None:
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
            "parameters": dict(after.parameters),
            "evidence_version": after.evidence_version,
            "table_version": after.table_version,
            "policy": after.policy,
            "node": after.node_name,
            "node_uid": after.node_uid,
            "instance_id": after.instance_id,
            "lineage": dict(after.lineage),
        },
    )


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
