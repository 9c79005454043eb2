"""What holds an approval back, whatever the evidence says?

The same rails are asked before the button is drawn, when the decision is written, and once more
when a worker takes the approved action up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.store import proposals, run_settings
from app.store.connection import Connection
from app.store.proposals import Proposal


@dataclass(frozen=True, slots=True)
class Rail:
    """One reason why an approval is refused now."""

    code: str
    message: str


def in_the_way(connection: Connection, proposal: Proposal) -> Rail | None:
    """Find the first rail that refuses an approval; None: none does."""
    if proposal.blocked:
        return Rail("blocked", f"{title(proposal)} cannot be approved: {proposal.blocked}.")
    if not proposal.node_name:
        return Rail(
            "no_node_name",
            "The rank map named no node for this rank, so there is nothing to act on.",
        )
    braked = brake(connection, proposal)
    if braked is not None:
        return braked
    other = proposals.under_way_on_node(connection, proposal)
    if other is not None:
        return Rail(
            "node_busy",
            f"{title(other)} was approved by {other.decided_by} and is not finished: "
            "one action on a node at a time.",
        )
    return None


def brake(connection: Connection, proposal: Proposal) -> Rail | None:
    """Refuse while the brake is pulled; what undoes is never held back."""
    if proposal.action == "uncordon":
        return None
    state = run_settings.brake(connection)
    if not state.pulled:
        return None
    by = f" by {state.changed_by}" if state.changed_by else ""
    return Rail("brake", f"The brake was pulled{by}: {state.reason or 'no reason given'}.")


APPROVAL_LASTS = timedelta(minutes=15)
"""A decision is about the cluster as it stood; after a longer outage a person decides again."""


def approved_long_ago(proposal: Proposal, now: datetime) -> Rail | None:
    """Refuse to send what was approved too long ago; None: it is fresh, or it undoes."""
    at = proposal.decided_at
    if proposal.action == "uncordon" or at is None:
        return None
    by = proposal.execute_by or at + APPROVAL_LASTS
    if now <= by:
        return None
    minutes = int((now - at).total_seconds() // 60)
    return Rail(
        "stale_approval", f"It was approved {minutes} minutes ago, too long to be sent now."
    )


def before_sending(connection: Connection, proposal: Proposal, now: datetime) -> Rail | None:
    """Find the first rail that keeps an approved action from being sent; None: it may go out.

    Called in the transaction that claims the row.  What undoes is never held back.
    """
    return brake(connection, proposal) or approved_long_ago(proposal, now)


_TITLES = {
    "cordon": "Cordon",
    "uncordon": "Uncordon",
    "replace": "Replacement",
    "reboot": "Reboot",
    "deep_health_check": "Deep health check",
    "targeted_audit": "Targeted audit",
}


def action_word(action: str) -> str:
    """Name an action at the start of a sentence."""
    return _TITLES.get(action, action)


def title(proposal: Proposal) -> str:
    """Name an action and its node at the start of a sentence."""
    return f"{action_word(proposal.action)} of {proposal.node_name or 'a node without a name'}"
