"""How is a released machine watched: audited closely for a while, and its GPU known for longer?"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from app.actions import writing
from app.actions.hardware_tests import note
from app.actions.orders.auditing import Wanted, order_from, seen
from app.actions.orders.ports import Sight
from app.config import Settings
from app.context import Context
from app.store import audit, proposals, targeted_audits
from app.store.connection import Connection
from app.store.ids import read
from app.store.proposals import Proposal
from app.store.targeted_audits import TargetedAudit

OVER = ("passed", "alarmed", "expired")


def after_uncordon(
    connection: Connection, settings: Settings, proposal: Proposal, now: datetime
) -> None:
    """Ask for close audits of a machine that was released, once a release."""
    if not proposal.node_name and not proposal.instance_id:
        return
    if targeted_audits.of_proposals(connection, [proposal.id]):
        return
    how = Wanted(
        settings.targeted_audit_every, settings.targeted_audit_passes, settings.probation_days
    )
    order = order_from(proposal, how, now)
    targeted_audits.add(connection, order)
    audit.append(
        connection,
        "service",
        "probation.began",
        f"{proposal.node_name or proposal.instance_id} was released: on probation until "
        f"{order.ends_at:%Y-%m-%d %H:%M} UTC, jobs on it are asked to audit every "
        f"{how.audit_every} steps.",
        at=now,
        case_id=proposal.case_id,
        proposal_id=proposal.id,
        node_id=proposal.node_id,
        details={"audit_every": how.audit_every, "passes": how.passes, "days": how.days},
    )


def settle_audit(connection: Connection, sight: Sight, now: datetime) -> None:
    """Keep in its row what a look at a standing order showed."""
    kept: Any = sight.details.get("audit")
    if not isinstance(kept, dict):
        return
    at = now if kept["state"] in OVER else None
    targeted_audits.settle(connection, read(kept["id"]), kept["state"], kept["passes"], at)


def watch(context: Context) -> int:
    """Look at the probations that are not over; give how many ended."""
    now = context.now()
    with context.store.reading() as connection:
        found = [
            (one, seen(connection, one, now)) for one in targeted_audits.probations(connection)
        ]
    ended = 0
    for one, sight in found:
        work = partial(_look, settings=context.settings, one=one, sight=sight, now=now)
        ended += writing.write(context, work)
    return ended


def _look(
    connection: Connection, settings: Settings, one: TargetedAudit, sight: Sight, now: datetime
) -> bool:
    settle_audit(connection, sight, now)
    proposal = proposals.get(connection, one.proposal_id)
    if sight.test is None or proposal is None:
        return sight.status == "failed"
    return note(connection, settings, proposal, sight.test, now)
