"""What else follows from what was seen of an order: a test's result, a new machine, a release?"""

from __future__ import annotations

from datetime import datetime

from app.actions import hardware_tests, probation, propose, screening, slices
from app.actions.orders.ports import Sight
from app.config import Settings
from app.store.connection import Connection
from app.store.proposals import Proposal


def follow(
    connection: Connection, settings: Settings, proposal: Proposal, sight: Sight, now: datetime
) -> None:
    """Do what follows from a look at an order, whose row was just written; never twice.

    Call it in the transaction that records the look, inside `writing.write`.
    """
    if sight.test is not None:
        hardware_tests.note(connection, settings, proposal, sight.test, now)
    if proposal.action == "targeted_audit":
        probation.settle_audit(connection, sight, now)
    if proposal.action == "uncordon" and proposal.status == "verified":
        probation.after_uncordon(connection, settings, proposal, now)
    if proposal.action == "cordon" and proposal.status == "verified":
        rest = sight.details.get(slices.SLICE) or ()
        slices.propose_rest(connection, proposal, rest, now, settings.proposal_days)
    if proposal.action == "replace" and proposal.status == "verified":
        propose.end_after_replacement(connection, proposal, now)
        screening.after_replacement(connection, proposal, sight.link, now, settings.proposal_days)
