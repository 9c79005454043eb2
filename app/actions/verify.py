"""What does the cluster show now of what we did: after a lost outcome, and as time passes?

Everything here only reads.  A cordon that somebody else lifted is noted on its case, never set
again by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from app.actions import rails, writing
from app.actions.looking import LOOKED_FOR, look_again
from app.actions.reaching import cordon_of, port_of, request_of
from app.cluster.ports import CordonCheck, Standing
from app.context import Context
from app.errors import Problem, not_found
from app.store import audit, held_nodes, proposals
from app.store.connection import Connection
from app.store.proposals import Proposal

# The words that stand when a process ended between the call and its record.
FIRST_LOOK = timedelta(seconds=30)  # an order that was on its way has arrived by then
ORPHANED = "It was being executed when the service stopped: outcome unknown. It is not sent again."


def read_again(context: Context, proposal_id: int, by: str) -> Proposal:
    """Read the outside world for an action that has not ended; settle it only where that proves it.

    Raises Problem where there is nothing to settle.
    """
    with context.store.reading() as connection:
        proposal = proposals.get(connection, proposal_id)
    if proposal is None:
        raise not_found("no proposal with this id")
    if proposal.status not in LOOKED_FOR:
        raise Problem(
            409,
            "not_unknown",
            f"{rails.title(proposal)} has an outcome already: {proposal.status}.",
            more={"status": proposal.status},
        )
    after = look_again(context, proposal_id, by)
    if after is None:
        raise Problem(409, "being_read", "Somebody else is reading it right now.")
    return after


def give_up_orphan(context: Context, proposal: Proposal) -> bool:
    """Say of a claim whose worker is gone that its outcome is unknown; False when it was not so."""
    now = context.now()

    def write(connection: Connection) -> bool:
        values = {
            "status": "unknown",
            "finished_at": now,
            "outcome": ORPHANED,
            # Whether it was taken may still be seen; it is never sent again.
            "next_look_at": now + FIRST_LOOK,
        }
        kept = proposals.move(
            connection, proposal.id, ("executing",), values, claimed_by=proposal.claimed_by
        )
        if kept:
            audit.append(
                connection,
                "service",
                "proposal.unknown",
                f"{rails.title(proposal)}, approved by {proposal.decided_by}: {ORPHANED}",
                at=now,
                case_id=proposal.case_id,
                proposal_id=proposal.id,
                node_id=proposal.node_id,
                details={"claimed_by": proposal.claimed_by},
            )
        return kept

    return writing.write(context, write)


def watch_held_nodes(context: Context, limit: int = 500) -> int:
    """Read every node that we hold and note what somebody else changed; give how many changed."""
    with context.store.reading() as connection:
        held = held_nodes.held(connection, limit)
    changed = 0
    silent: set[str] = set()
    for proposal in held:
        if proposal.cluster in silent:
            continue
        check = port_of(context, proposal.cluster).verify_cordon(request_of(proposal))
        if check.standing is Standing.UNKNOWN:
            # No answer says nothing about a node, and the rest of that cluster can wait as well.
            silent.add(proposal.cluster)
            continue
        changed += _note_standing(context, proposal, check)
    return changed


def _note_standing(context: Context, proposal: Proposal, check: CordonCheck) -> bool:
    now = context.now()
    before = str(proposal.details.get("stands", Standing.HOLDS))

    def write(connection: Connection) -> bool:
        _note_read(connection, proposal, check, now)
        if before == str(check.standing):
            return False
        newest = proposals.get(connection, proposal.id)
        if newest is None or newest.details.get("stands", str(Standing.HOLDS)) != before:
            return False  # another process noted it first
        details = {**newest.details, "stands": str(check.standing), "drift": list(check.drift)}
        proposals.move(connection, proposal.id, (newest.status,), {"details": details})
        audit.append(
            connection,
            "service",
            "node.stands" if check.standing is Standing.HOLDS else "node.drifted",
            drift_words(check),
            at=now,
            case_id=proposal.case_id,
            proposal_id=proposal.id,
            node_id=proposal.node_id,
            details={"standing": str(check.standing), "drift": list(check.drift)},
        )
        return True

    return writing.write(context, write)


def drift_words(check: CordonCheck) -> str:
    """Say what became of our cordon without us."""
    said = {
        Standing.LIFTED: "Uncordoned by somebody, not from here. ",
        Standing.DRIFTED: "Changed by somebody, not from here. ",
        Standing.BY_OTHER: "Our cordon was taken off by somebody, not from here. ",
    }
    return said.get(check.standing, "") + check.message


def _note_read(
    connection: Connection, proposal: Proposal, check: CordonCheck, now: datetime
) -> None:
    if proposal.node_id is None:
        return
    if check.standing in (Standing.GONE, Standing.REPLACED):
        held_nodes.note(connection, proposal.node_id, None, None, now)
    elif check.state is not None:
        # A drifted cordon stays on the watch list: part of it is still ours to lift.
        cordon = "ours" if check.standing is Standing.DRIFTED else cordon_of(check.state)
        held_nodes.note(connection, proposal.node_id, check.state.uid, cordon, now)
