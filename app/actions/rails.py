"""What holds an approval back, whatever the evidence says?

The same rails are asked before the button is drawn, when the decision is written, and once more
when a worker takes the approved action up, each time in the transaction that changes the row.
What undoes passes all of them; a rejection is never asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.actions import counting
from app.store import busy_nodes, evidence, rail_policy, run_settings, vetoes
from app.store.connection import Connection
from app.store.proposals import Proposal
from witness.rules import rails as limits
from witness.rules.decision_table import TABLE_VERSION
from witness.rules.rails import Cap


@dataclass(frozen=True, slots=True)
class Rail:
    """One reason why an approval is refused now."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left of every limit for one more action, and which limits could not be told."""

    caps: tuple[Cap, ...]
    unknown: tuple[str, ...]
    policy: str  # its version


def undoes(proposal: Proposal) -> bool:
    """Tell whether it takes back what was done: nothing holds that up."""
    return limits.effect_of(proposal.action) == "undoes"


def in_the_way(connection: Connection, proposal: Proposal, now: datetime) -> Rail | None:
    """Find the first rail that refuses an approval; None: none does."""
    if proposal.blocked:
        return Rail("blocked", f"{title(proposal)} cannot be approved: {proposal.blocked}.")
    if not proposal.node_name:
        return Rail(
            "no_node_name",
            "The rank map named no node for this rank, so there is nothing to act on.",
        )
    if undoes(proposal):
        return None
    return (
        brake(connection, proposal)
        or _busy(connection, proposal)
        or _held_back(connection, proposal, now)
    )


def before_sending(connection: Connection, proposal: Proposal, now: datetime) -> Rail | None:
    """Find the first rail that keeps an approved action from being sent; None: it may go out.

    Called in the transaction that claims the row, so that of two processes one takes the last
    place.  What undoes is never held back.
    """
    if undoes(proposal):
        return None
    rail_policy.lock(connection, now)
    return (
        brake(connection, proposal)
        or approved_before_brake(connection, proposal)
        or approved_long_ago(proposal, now)
        or _approved_on_other_grounds(connection, proposal)
        or _busy(connection, proposal, claiming=True)
        or _held_back(connection, proposal, now)
    )


def brake(connection: Connection, proposal: Proposal) -> Rail | None:
    """Refuse while the brake is pulled; what undoes is never held back."""
    if undoes(proposal):
        return None
    state = run_settings.brake(connection)
    if not state.pulled:
        return None
    by = f" by {state.changed_by}" if state.changed_by else ""
    return Rail("brake", f"The brake was pulled{by}: {state.reason or 'no reason given'}.")


def approved_before_brake(connection: Connection, proposal: Proposal) -> Rail | None:
    """Refuse what was approved before the brake was pulled, also once it is released."""
    changed, at = run_settings.brake(connection).changed_at, proposal.decided_at
    if undoes(proposal) or changed is None or at is None or at > changed:
        return None
    return Rail("before_brake", "It was approved before the brake was pulled.")


APPROVAL_LASTS = timedelta(minutes=15)
"""Where an approval says nothing itself: after a longer outage a person decides again."""


def approved_long_ago(proposal: Proposal, now: datetime) -> Rail | None:
    """Refuse to send what was approved too long ago; None: it is fresh, or it undoes."""
    at = proposal.decided_at
    if undoes(proposal) or at is None:
        return None
    by = proposal.execute_by or at + APPROVAL_LASTS
    if now <= by:
        return None
    minutes = int((now - at).total_seconds() // 60)
    return Rail(
        "stale_approval", f"It was approved {minutes} minutes ago, too long to be sent now."
    )


def _approved_on_other_grounds(connection: Connection, proposal: Proposal) -> Rail | None:
    """Refuse what was approved on evidence, or by a table, that is not the newest any more."""
    if proposal.table_version != str(TABLE_VERSION):
        return Rail(
            "table_changed",
            f"It was approved by version {proposal.table_version} of the decision table; "
            f"version {TABLE_VERSION} is in force now.",
        )
    version = evidence.version(connection, proposal.case_id)
    if version == proposal.evidence_version:
        return None
    return Rail(
        "evidence_changed",
        f"The evidence changed after the approval: version {proposal.evidence_version} then, "
        f"version {version} now.",
    )


def _busy(connection: Connection, proposal: Proposal, *, claiming: bool = False) -> Rail | None:
    other = busy_nodes.other_action(connection, proposal, claiming=claiming)
    if other is None:
        return None
    return Rail(
        "node_busy",
        f"{title(other)} was approved by {other.decided_by} and is not finished: "
        "one action on a node at a time.",
    )


def _held_back(connection: Connection, proposal: Proposal, now: datetime) -> Rail | None:
    """Ask vetoes, protection and limits."""
    name, instance_id = proposal.node_name, proposal.instance_id
    veto = vetoes.holding(connection, proposal.cluster, name, instance_id, now)
    if veto is not None:
        until = f" until {veto.until:%Y-%m-%d %H:%M} UTC" if veto.until else ""
        return Rail("veto", f"{veto.by} forbids to touch {name}{until}: {veto.reason}.")
    policy = rail_policy.read(connection)
    seen = counting.count(connection, counting.asked_of(proposal), policy, now)
    if seen.place is not None and seen.place.protected:
        return Rail("protected", seen.place.protected)
    refusal = limits.first_refusal(policy, proposal.action, seen.counts)
    return None if refusal is None else Rail(refusal.code, refusal.words)


def budget(connection: Connection, proposal: Proposal, now: datetime) -> Budget:
    """Say what is left of each limit for this action, and what could not be checked."""
    return budget_for(connection, counting.asked_of(proposal), now)


def budget_for(connection: Connection, asked: counting.Asked, now: datetime) -> Budget:
    """Say what is left of each limit for one more action."""
    policy = rail_policy.read(connection)
    counts = counting.count(connection, asked, policy, now).counts
    return Budget(
        limits.caps(policy, asked.action, counts),
        limits.unknowns(asked.action, counts),
        policy.name,
    )


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
