"""How are jobs asked to audit a machine closely, and how is it seen that they did?

Nothing outside is changed: the order is a row that the next attempts of jobs ask for. It is seen in
the passes that they report, with their rank maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.actions.orders.ports import Sight, TestSeen
from app.cluster.ports import ActionResult, Outcome
from app.config import Settings
from app.context import Context
from app.store import case_machines, ids, targeted_audits
from app.store.connection import Connection
from app.store.hardware_tests import AUDIT
from app.store.proposals import Proposal
from app.store.targeted_audits import NewAudit, TargetedAudit

SOURCE = "passes of jobs"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How closely, how long: steps between two audits, passes, days."""

    audit_every: int
    passes: int
    days: float


def wanted(proposal: Proposal, settings: Settings) -> Wanted:
    """Read how closely a proposal asks; what it leaves open comes from the settings."""
    given = proposal.parameters
    return Wanted(
        int(given.get("audit_every", settings.targeted_audit_every)),
        int(given.get("passes", settings.targeted_audit_passes)),
        float(given.get("days", settings.targeted_audit_days)),
    )


def order_from(proposal: Proposal, how: Wanted, now: datetime) -> NewAudit:
    """Write a standing order down for the machine of a proposal."""
    given = proposal.parameters
    return NewAudit(
        proposal_id=proposal.id,
        cluster=proposal.cluster,
        node_name=proposal.node_name,
        instance_id=proposal.instance_id,
        gpu_uuid=proposal.gpu_uuid,
        audit_every=how.audit_every,
        passes_wanted=how.passes,
        asked_at=now,
        ends_at=now + timedelta(days=how.days),
        namespace=given.get("namespace"),
        job=given.get("job"),
    )


class Audit:
    """A standing order to the next attempts of jobs on the machine."""

    stuck_after = timedelta(days=30)  # it ends by itself, long before
    look_every = timedelta(minutes=1)

    def send(self, context: Context, proposal: Proposal) -> ActionResult:
        """Write the standing order."""
        if not proposal.node_name and not proposal.instance_id:
            words = "No machine is known, so no job can be asked to audit it. Nothing was written."
            return ActionResult(Outcome.REFUSED, words)
        how = wanted(proposal, context.settings)
        order = order_from(proposal, how, context.now())
        context.store.write(lambda connection: targeted_audits.add(connection, order))
        words = (
            f"The next attempts on {proposal.node_name or proposal.instance_id} are asked to audit "
            f"every {how.audit_every} steps for {how.passes} audits, until "
            f"{order.ends_at:%Y-%m-%d %H:%M} UTC. The node itself is left as it is."
        )
        return ActionResult(Outcome.ACCEPTED, words)

    def look(self, context: Context, proposal: Proposal) -> Sight:
        """Count the audits that passed since a job took it, and look for an alarm."""
        with context.store.reading() as connection:
            found = targeted_audits.of_proposals(connection, [proposal.id])
            if not found:
                return Sight("failed", "The request was never written: nobody was asked.")
            return seen(connection, found[0], context.now())


def seen(connection: Connection, audit: TargetedAudit, now: datetime) -> Sight:
    """Say how far a standing order is; `details["audit"]` is what its row becomes."""
    if audit.state == "withdrawn":
        words = "It was withdrawn when the case was closed: no job is asked any more."
        return Sight("failed", words, details={"outcome": "withdrawn"})
    since = audit.taken_at or audit.asked_at
    gpu_id = case_machines.gpu_of(connection, audit.gpu_uuid)
    alarm = targeted_audits.alarm_since(connection, audit, gpu_id, since)
    taken = audit.taken_at is not None
    passed = targeted_audits.passes_since(connection, audit, since) if taken else 0
    done = f"{passed} of {audit.passes_wanted} audits passed"
    if alarm is not None:
        alarm_id, at = alarm
        words = f"An alarm came at {at:%Y-%m-%d %H:%M} UTC, after {done}."
        details = {"outcome": "alarmed", "alarm": ids.show(alarm_id)}
        return _sight("failed", words, audit, "alarmed", passed, "failed", details)
    over = now >= audit.ends_at
    if passed >= audit.passes_wanted and (over or not audit.probation):
        words = f"{done} on the machine since {since:%Y-%m-%d %H:%M} UTC, and no alarm named it."
        return _sight("verified", words, audit, "passed", passed, "passed")
    if over and not taken:
        words = f"No attempt took it until {audit.ends_at:%Y-%m-%d %H:%M} UTC: nothing was learnt."
        return _sight("failed", words, audit, "expired", 0, None, {"outcome": "not_taken"})
    if over:
        words = f"Only {done} until {audit.ends_at:%Y-%m-%d %H:%M} UTC, and no alarm came."
        details = {"outcome": "too_few"}
        return _sight("failed", words, audit, "expired", passed, "inconclusive", details)
    return _sight("waiting", _waiting(audit, done), audit, audit.state, passed, None)


def _waiting(audit: TargetedAudit, done: str) -> str:
    if audit.taken_at is None:
        return "No attempt has taken it yet: jobs ask when they start."
    by = audit.taken_by.get("job", "a job")
    return f"{done}; taken by {by} at {audit.taken_at:%Y-%m-%d %H:%M} UTC."


def _sight(
    status: Any,
    words: str,
    audit: TargetedAudit,
    state: str,
    passed: int,
    result: Any,
    details: dict[str, Any] | None = None,
) -> Sight:
    test = TestSeen(AUDIT, result, SOURCE, words, ("ring",)) if result else None
    kept = {"audit": {"id": ids.show(audit.id), "state": state, "passes": passed}}
    return Sight(status, words, details={**kept, **(details or {})}, test=test)
