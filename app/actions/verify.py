"""What does the cluster show now of what we did: after a lost outcome, and as time passes?

Everything here only reads.  A cordon that somebody else lifted is noted on its case, never set
again by itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.actions import rails, writing
from app.actions.execute import cordon_of, describe, port_of, request_of
from app.cluster.errors import ClusterError, NodeGone
from app.cluster.ports import CordonCheck, NodeState, Standing
from app.context import Context
from app.errors import Problem, not_found
from app.store import audit, held_nodes, proposals
from app.store.connection import Connection
from app.store.proposals import Proposal

# The words that stand when a process ended between the call and its record.
ORPHANED = "It was being executed when the service stopped: outcome unknown. It is not sent again."


def read_again(context: Context, proposal_id: int, by: str) -> Proposal:
    """Read the node of an action whose outcome is unknown; settle it only where that proves it."""
    with context.store.reading() as connection:
        proposal = proposals.get(connection, proposal_id)
    if proposal is None:
        raise not_found("no proposal with this id")
    if proposal.status not in ("unknown", "accepted"):
        raise Problem(
            409,
            "not_unknown",
            f"{rails.title(proposal)} has an outcome already: {proposal.status}.",
            more={"status": proposal.status},
        )
    status, words, state = _look(context, proposal)
    now = context.now()

    def write(connection: Connection) -> Proposal:
        details = {**proposal.details, "read_again_at": now.isoformat(), "read_again": words}
        details["node"] = describe(state) or details.get("node")
        values: dict[str, Any] = {"details": details, "outcome": words}
        if status is not None:
            values |= {"status": status, "finished_at": now}
        kept = proposals.move(connection, proposal_id, (proposal.status,), values)
        if kept:
            if state is not None and proposal.node_id is not None:
                held_nodes.note(connection, proposal.node_id, state.uid, cordon_of(state), now)
            audit.append(
                connection,
                by,
                "proposal.read_again",
                f"{by} read the cluster again for {_lower(rails.title(proposal))}: {words}",
                at=now,
                case_id=proposal.case_id,
                proposal_id=proposal_id,
                node_id=proposal.node_id,
                details={"status": status or proposal.status},
            )
        after = proposals.get(connection, proposal_id)
        assert after is not None
        return after

    return writing.write(context, write)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _look(context: Context, proposal: Proposal) -> tuple[str | None, str, NodeState | None]:
    """Give the status that the reading proves (None: none), the words and the node."""
    port, request = port_of(context, proposal.cluster), request_of(proposal)
    if proposal.action == "uncordon":
        return _look_for_uncordon(context, proposal)
    check = port.verify_cordon(request)
    if check.standing is Standing.HOLDS and check.state is not None:
        ours = check.state.our_cordon
        if ours is not None and ours.proposal == request.proposal:
            return "verified", f"Read again: {check.message}", check.state
    if check.standing in (Standing.GONE, Standing.REPLACED):
        return "gone", check.message, check.state
    return None, f"Still unknown. Read again: {check.message}", check.state


def _look_for_uncordon(
    context: Context, proposal: Proposal
) -> tuple[str | None, str, NodeState | None]:
    port = port_of(context, proposal.cluster)
    try:
        state = port.node(proposal.node_name or "")
    except NodeGone as error:
        return "gone", error.message, None
    except ClusterError as error:
        return None, f"Still unknown. {error.message}", None
    if state.our_cordon is None and not state.has_our_taint:
        return "verified", f"Read again: nothing of ours is on {state.name}.", state
    return None, f"Still unknown. Our cordon is still on {state.name}.", state


def give_up_orphan(context: Context, proposal: Proposal) -> bool:
    """Say of a claim whose worker is gone that its outcome is unknown; False when it was not so."""
    now = context.now()

    def write(connection: Connection) -> bool:
        values = {"status": "unknown", "finished_at": now, "outcome": ORPHANED}
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
