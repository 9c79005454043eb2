"""How is an approved action carried out: claimed by one worker, sent once, recorded, looked at?

Between the call and its record a crash can come.  The claim stands in the row by then, so the
row ends as `unknown` and is never sent a second time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from app.actions import looking, rails, writing
from app.actions.orders.book import order_of
from app.actions.reaching import cordon_of, describe, may_be_its
from app.cluster.ports import ActionResult, NodeState, Outcome
from app.context import Context
from app.store import audit, held_nodes, proposals
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.proposals import Proposal
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

# What each outcome makes of the row.  `dry_run` is no success: nothing was sent.
STATUS_OF = {
    Outcome.ACCEPTED: "accepted",
    Outcome.UNDER_WAY: "waiting",
    Outcome.CHANGED: "accepted",
    Outcome.ALREADY_OURS: "verified",
    Outcome.ALREADY_BY_OTHER: "verified",
    Outcome.REFUSED: "refused",
    Outcome.GONE: "gone",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
    Outcome.DRY_RUN: "refused",
}
_SATISFIED = (Outcome.ALREADY_OURS, Outcome.ALREADY_BY_OTHER)
# The database may be away when the cluster has already answered; the answer is kept in memory.
RECORD_TRIES = 20
RECORD_PAUSE_S = 1.0


def run_one(context: Context, proposal_id: int, worker: str) -> bool:
    """Carry one approved action out; False when another worker got there first."""
    proposal = _claim(context, proposal_id, worker)
    if proposal is None:
        return False
    if proposal.status != "executing":
        return True
    result = _send(context, proposal)
    if _record(context, proposal, result) and result.outcome is Outcome.CHANGED:
        looking.look_again(context, proposal.id)
    return True


def _claim(context: Context, proposal_id: int, worker: str) -> Proposal | None:
    now = context.now()

    def write(connection: Connection) -> Proposal | None:
        values: dict[str, Any] = {"claimed_by": worker, "claimed_at": now}
        before = proposals.get(connection, proposal_id)
        if before is None:
            return None
        rail = rails.before_sending(connection, before, now)
        if rail is None:
            values["status"] = "executing"
        else:
            # An old queue never runs: neither when the brake is released nor after an outage.
            words = f"{rail.message} It had not been sent: nothing was changed."
            values |= {"status": "refused", "finished_at": now, "outcome": words}
        if not proposals.move(connection, proposal_id, ("approved",), values):
            return None
        claimed = proposals.get(connection, proposal_id)
        assert claimed is not None
        if rail is not None:
            note(connection, claimed, "refused", str(claimed.outcome), now, {})
        return claimed

    return writing.write(context, write)


def _send(context: Context, proposal: Proposal) -> ActionResult:
    """Order it; nothing is ever sent twice."""
    order = order_of(proposal)
    if order is None:
        words = f"{rails.action_word(proposal.action)} is not connected here."
        return ActionResult(Outcome.REFUSED, words)
    return order.send(context, proposal)


def _record(context: Context, proposal: Proposal, result: ActionResult) -> bool:
    now = context.now()
    status = STATUS_OF[result.outcome]
    words = result.message
    if result.outcome in _SATISFIED:
        words = f"Satisfied without change: {words}"
    details = {
        "outcome": str(result.outcome),
        "event_written": result.event_written,
        "node": describe(result.state),
        **dict(result.details),
    }
    order = order_of(proposal)
    look_at = now + order.look_every if order and status in looking.LOOKED_FOR else None

    def write(connection: Connection) -> bool:
        values = {
            "status": status,
            "outcome": words,
            "details": details,
            "finished_at": now,
            "next_look_at": look_at,
        }
        # A row that was given up as unknown meanwhile learns the truth from the one who called.
        kept = proposals.move(
            connection,
            proposal.id,
            ("executing", "unknown"),
            values,
            claimed_by=proposal.claimed_by,
        )
        if kept:
            _note_node(connection, proposal, result.state, result.outcome, now)
            note(connection, proposal, status, words, now, details)
        return kept

    return _write_patiently(context, write)


def _write_patiently(context: Context, write: Callable[[Connection], bool]) -> bool:
    for attempt in range(RECORD_TRIES):
        try:
            return writing.write(context, write)
        except (StoreUnavailable, QueueFull) as error:
            log.warning("an outcome waits for the database (%d): %s", attempt + 1, error)
            time.sleep(RECORD_PAUSE_S)
    log.error("an outcome could not be recorded; its row will end as unknown")
    return False


def _note_node(
    connection: Connection,
    proposal: Proposal,
    state: NodeState | None,
    outcome: Outcome,
    now: datetime,
) -> None:
    if proposal.node_id is None:
        return
    if state is not None:
        if not may_be_its(state, proposal):
            return
        held_nodes.note(connection, proposal.node_id, state.uid, cordon_of(state), now)
    elif outcome is Outcome.GONE:
        held_nodes.note(connection, proposal.node_id, None, None, now)


def note(
    connection: Connection,
    proposal: Proposal,
    status: str,
    words: str,
    now: datetime,
    details: Mapping[str, Any],
) -> None:
    """Append what became of an action to the audit."""
    audit.append(
        connection,
        "service",
        f"proposal.{status.replace(' ', '_')}",
        f"{rails.title(proposal)}, approved by {proposal.decided_by}: {words}",
        at=now,
        case_id=proposal.case_id,
        proposal_id=proposal.id,
        node_id=proposal.node_id,
        details={"status": status, **details},
    )
