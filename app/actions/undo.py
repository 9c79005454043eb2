"""How is a cordon lifted again: by one click after a preview, and only where it is ours?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.actions import rails, writing
from app.actions.deciders import Decider
from app.actions.policy import approve_lasts
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, busy_nodes, evidence, ids, proposals, rail_policy
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules.decision_table import TABLE_VERSION

# Cordons that a person may take back, also those that never were ours: the answer then says so.
CAN_BE_LIFTED = ("verified", "accepted", "unknown")


def undo(
    context: Context, cordon_id: int, decider: Decider, reason: str, node_uid: str | None = None
) -> Proposal:
    """Write an uncordon that is approved by the one who asks for it, once."""
    now = context.now()

    def write(connection: Connection) -> Proposal | Problem:
        cordon = proposals.get(connection, cordon_id)
        if cordon is None or cordon.action != "cordon":
            return not_found("no cordon with this id")
        if not decider.may("operator"):
            return forbidden(
                f"Uncordon needs the role operator; {decider.name} has the role {decider.role}."
            )
        evidence.version(connection, cordon.case_id, lock=True)
        problem = _nothing_to_lift(connection, cordon)
        return problem or _approve(connection, cordon, decider, reason, node_uid, now)

    written = writing.write(context, write)
    if isinstance(written, Problem):
        raise written
    return written


def _nothing_to_lift(connection: Connection, cordon: Proposal) -> Problem | None:
    if cordon.status not in CAN_BE_LIFTED or not cordon.node_name:
        words = f"{rails.title(cordon)} is {cordon.status}: there is nothing to lift."
        return Problem(409, "nothing_to_lift", words, more={"status": cordon.status})
    other = being_called(connection, cordon)
    if other is not None:
        return Problem(
            409,
            "node_busy",
            f"{rails.title(other)} is being carried out at this moment; lift the cordon once it "
            "is done, in seconds.",
        )
    newest = proposals.newest_action_on_node(connection, cordon.cluster, cordon.node_name)
    if newest is not None and newest.action == "uncordon" and newest.status == "verified":
        at = newest.decided_at
        when = f" at {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
        return Problem(
            409,
            "already_decided",
            f"{rails.title(newest)} was already decided by {newest.decided_by}{when}.",
            more={"decided_by": newest.decided_by, "status": newest.status},
        )
    return None


def being_called(connection: Connection, cordon: Proposal) -> Proposal | None:
    """Find a call that is in flight on this node, or the same undoing that is on its way.

    No rail: an undo that overtook it would be lost.
    """
    under_way = busy_nodes.all_under_way(connection, cordon)
    return next((one for one in under_way if one.status == "executing" or rails.undoes(one)), None)


def _take_back(connection: Connection, cordon: Proposal, by: str, now: datetime) -> None:
    """Take back what is approved for the node and not sent yet: undoing waits for nothing."""
    for one in busy_nodes.all_under_way(connection, cordon):
        words = f"Taken back unsent: {by} lifts the cordon of {one.node_name}."
        values = {"status": "superseded", "finished_at": now, "outcome": words}
        if proposals.move(connection, one.id, ("approved",), values):
            audit.append(
                connection,
                by,
                "proposal.superseded",
                f"{rails.title(one)}, approved by {one.decided_by}: {words}",
                at=now,
                case_id=one.case_id,
                proposal_id=one.id,
                node_id=one.node_id,
                details={"status": "superseded"},
            )


def _approve(
    connection: Connection,
    cordon: Proposal,
    decider: Decider,
    reason: str,
    node_uid: str | None,
    now: datetime,
) -> Proposal:
    _take_back(connection, cordon, decider.name, now)
    ordinal = proposals.next_ordinal(connection, cordon.case_id, "uncordon")
    proposal_id = ids.derive("proposal", cordon.case_id, "uncordon", ordinal)
    values: dict[str, Any] = {
        "id": proposal_id,
        "case_id": cordon.case_id,
        "action": "uncordon",
        "ordinal": ordinal,
        "cluster": cordon.cluster,
        "node_id": cordon.node_id,
        "node_name": cordon.node_name,
        "node_uid": node_uid or cordon.node_uid,
        "instance_id": cordon.instance_id,
        "gpu_uuid": cordon.gpu_uuid,
        "status": "approved",
        "evidence_version": evidence.version(connection, cordon.case_id),
        "table_version": str(TABLE_VERSION),
        "why": reason or f"{decider.name} takes the cordon back.",
        "recommended_by": decider.name,
        "created_at": now,
        "decided_by": decider.name,
        "decided_at": now,
        "decision_reason": reason or None,
    }
    proposals.add(connection, values)
    because = f": {reason}" if reason else "."
    audit.append(
        connection,
        decider.name,
        "proposal.approved",
        f"Uncordon of {cordon.node_name} asked for and approved by {decider.name}{because}",
        at=now,
        case_id=cordon.case_id,
        proposal_id=proposal_id,
        node_id=cordon.node_id,
        details={"action": "uncordon", "undoes": ids.show(cordon.id), "node_uid": node_uid},
    )
    written = proposals.get(connection, proposal_id)
    assert written is not None
    return written


def ask_again(context: Context, proposal_id: int, decider: Decider) -> Proposal:
    """Propose an action anew after it ended without being done; a person decides it like any."""
    now = context.now()
    days = context.settings.proposal_days

    def write(connection: Connection) -> Proposal | Problem:
        lasts = approve_lasts(rail_policy.read(connection), days)
        before = proposals.get(connection, proposal_id)
        if before is None:
            return not_found("no proposal with this id")
        evidence.version(connection, before.case_id, lock=True)
        ordinal = proposals.next_ordinal(connection, before.case_id, before.action)
        if before.status not in CAN_BE_ASKED_AGAIN or _asked_since(connection, before):
            words = f"{rails.title(before)} is {before.status}, or was asked for again already."
            return Problem(409, "not_open_to_repeat", words, more={"status": before.status})
        return _propose(connection, before, ordinal, decider, now, now + lasts)

    written = writing.write(context, write)
    if isinstance(written, Problem):
        raise written
    return written


def _asked_since(connection: Connection, before: Proposal) -> bool:
    """Tell whether the same was proposed for the same machine later; a slice has many nodes."""
    mine = (before.action, before.node_id, before.node_name, before.instance_id)
    known = proposals.of_cases(connection, [before.case_id]).get(before.case_id, ())
    return any(
        (one.action, one.node_id, one.node_name, one.instance_id) == mine
        and one.ordinal > before.ordinal
        for one in known
    )


CAN_BE_ASKED_AGAIN = ("refused", "failed", "unknown", "rejected", "expired")


def _propose(
    connection: Connection,
    before: Proposal,
    ordinal: int,
    decider: Decider,
    now: datetime,
    expires_at: datetime,
) -> Proposal:
    new_id = ids.derive("proposal", before.case_id, before.action, ordinal)
    values = {
        name: getattr(before, name)
        for name in (
            "case_id", "action", "cluster", "node_id", "node_name", "instance_id", "gpu_uuid",
            "blocked", "why", "parameters",
        )
    }  # fmt: skip
    values |= {
        "id": new_id,
        "ordinal": ordinal,
        "status": "proposed",
        "evidence_version": evidence.version(connection, before.case_id),
        "table_version": str(TABLE_VERSION),
        "recommended_by": decider.name,
        "created_at": now,
        "expires_at": expires_at,
    }
    proposals.add(connection, values)
    audit.append(
        connection,
        decider.name,
        "proposal.asked_again",
        f"{rails.title(before)} proposed again by {decider.name}: it was {before.status} before.",
        at=now,
        case_id=before.case_id,
        proposal_id=new_id,
        node_id=before.node_id,
        details={"before": ids.show(before.id), "status": before.status},
    )
    written = proposals.get(connection, new_id)
    assert written is not None
    return written
