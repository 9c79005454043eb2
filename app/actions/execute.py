"""How is an approved action carried out: claimed by one worker, sent once, recorded, proven?

Between the call and its record a crash can come.  The claim stands in the row by then, so the
row ends as `unknown` and is never sent a second time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from app.actions import rails, writing
from app.cluster.dry_run import DryRunCluster
from app.cluster.errors import ClusterError, ClusterNotConfigured
from app.cluster.outcomes import outcome_of
from app.cluster.ports import (
    ActionResult,
    ClusterPort,
    CordonRequest,
    NodeState,
    Outcome,
    Standing,
)
from app.context import Context
from app.store import audit, held_nodes, ids, proposals
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.proposals import Proposal
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

# What each outcome makes of the row.  `dry_run` is no success: nothing was sent.
STATUS_OF = {
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


def port_of(context: Context, cluster: str) -> ClusterPort:
    """Give the cluster of this name, a dry run where none is configured."""
    return context.clusters.get(cluster) or DryRunCluster(cluster)


def request_of(proposal: Proposal) -> CordonRequest:
    """Write down what an approval asks of the cluster."""
    return CordonRequest(
        node=proposal.node_name or "",
        expect_uid=proposal.node_uid,
        case=ids.show(proposal.case_id),
        proposal=ids.show(proposal.id),
        by=proposal.decided_by or "nobody",
        reason=proposal.why,
        at=proposal.decided_at or proposal.created_at,
        evidence_version=str(proposal.evidence_version),
    )


def run_one(context: Context, proposal_id: int, worker: str) -> bool:
    """Carry one approved action out; False when another worker got there first."""
    proposal = _claim(context, proposal_id, worker)
    if proposal is None:
        return False
    if proposal.status != "executing":
        return True
    port = port_of(context, proposal.cluster)
    result = _call_once(port, proposal)
    recorded = _record(context, proposal, result, worker)
    if recorded and result.outcome is Outcome.CHANGED:
        verify(context, port, proposal)
    return True


def _claim(context: Context, proposal_id: int, worker: str) -> Proposal | None:
    now = context.now()

    def write(connection: Connection) -> Proposal | None:
        values: dict[str, Any] = {"claimed_by": worker, "claimed_at": now}
        before = proposals.get(connection, proposal_id)
        if before is None:
            return None
        rail = rails.brake(connection, before) or rails.approved_long_ago(before, now)
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
            _audit(connection, claimed, "refused", str(claimed.outcome), now, {})
        return claimed

    return writing.write(context, write)


def _call_once(port: ClusterPort, proposal: Proposal) -> ActionResult:
    """Look at the node once more, then order the change; nothing is ever sent twice."""
    request = request_of(proposal)
    try:
        state = port.node(request.node)
    except ClusterNotConfigured:
        pass  # the order below says the same in words, as a dry run or as a failure
    except ClusterError as error:
        return outcome_of(error, request.node)
    else:
        other = another_instance(state, proposal)
        if other is not None:
            return ActionResult(Outcome.REFUSED, f"{other} Nothing was changed.", state)
    if proposal.action == "cordon":
        return port.cordon(request)
    if proposal.action == "uncordon":
        return port.uncordon(request)
    return ActionResult(
        Outcome.REFUSED, f"{rails.action_word(proposal.action)} is not connected here."
    )


def another_instance(state: NodeState, proposal: Proposal) -> str | None:
    """Say that the name belongs to another instance than the case means; None: nothing says so."""
    if not proposal.instance_id or not state.instance_id:
        return None
    if state.instance_id == proposal.instance_id:
        return None
    return (
        f"Another machine carries the name {state.name} now: instance {state.instance_id}, "
        f"the case means {proposal.instance_id}."
    )


def _record(context: Context, proposal: Proposal, result: ActionResult, worker: str) -> bool:
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

    def write(connection: Connection) -> bool:
        values = {
            "status": status,
            "outcome": words,
            "details": details,
            "finished_at": now,
        }
        # A row that was given up as unknown meanwhile learns the truth from the one who called.
        kept = proposals.move(
            connection, proposal.id, ("executing", "unknown"), values, claimed_by=worker
        )
        if kept:
            _note_node(connection, proposal, result.state, result.outcome, now)
            _audit(connection, proposal, status, words, now, details)
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


def verify(context: Context, port: ClusterPort, proposal: Proposal) -> None:
    """Prove by reading that the change stands, and say so or say what was found instead."""
    request = request_of(proposal)
    if proposal.action == "cordon":
        check = port.verify_cordon(request)
        proven, words, state = check.standing is Standing.HOLDS, check.message, check.state
    else:
        proven, words, state = _read_uncordoned(port, request)
    now = context.now()

    def write(connection: Connection) -> bool:
        before = proposals.get(connection, proposal.id)
        if before is None:
            return False
        details = {**before.details, "verified_at": now.isoformat(), "standing": words}
        values: dict[str, Any] = {"details": details}
        if proven:
            values |= {"status": "verified", "outcome": f"{before.outcome} Read again: it stands."}
        else:
            values["outcome"] = f"{before.outcome} Read again: {words}"
        kept = proposals.move(connection, proposal.id, ("accepted",), values)
        if kept:
            _note_node(connection, proposal, state, Outcome.CHANGED, now)
            status = "verified" if proven else "not proven"
            _audit(connection, before, status, words, now, details)
        return kept

    _write_patiently(context, write)


def _read_uncordoned(
    port: ClusterPort, request: CordonRequest
) -> tuple[bool, str, NodeState | None]:
    try:
        state = port.node(request.node)
    except ClusterError as error:
        return False, error.message, None
    if state.our_cordon is not None or state.has_our_taint:
        return False, "something of ours is still on the node", state
    return True, f"nothing of ours is on {state.name}", state


def cordon_of(state: NodeState) -> str:
    """Name whose cordon a reading shows: "ours", "other" or "none"."""
    if state.our_cordon is not None and state.unschedulable:
        return "ours"
    return "other" if state.unschedulable else "none"


def describe(state: NodeState | None) -> Mapping[str, Any] | None:
    """Keep of a reading what a later reader of the audit needs."""
    if state is None:
        return None
    return {
        "name": state.name,
        "uid": state.uid,
        "unschedulable": state.unschedulable,
        "taints": [f"{taint.key}:{taint.effect}" for taint in state.taints],
        "cordon": cordon_of(state),
        "cordoned_by_other": state.cordoned_by_other,
        "resource_version": state.resource_version,
    }


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
        held_nodes.note(connection, proposal.node_id, state.uid, cordon_of(state), now)
    elif outcome is Outcome.GONE:
        held_nodes.note(connection, proposal.node_id, None, None, now)


def _audit(
    connection: Connection,
    proposal: Proposal,
    status: str,
    words: str,
    now: datetime,
    details: Mapping[str, Any],
) -> None:
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
