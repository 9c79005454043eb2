"""Who may decide on a proposal: by role, and by having four eyes on what destroys?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.actions import rails
from app.errors import Problem, forbidden
from app.store import proposals, tokens
from app.store.connection import Connection
from app.store.people import ROLES
from app.store.proposals import Proposal

Verdict = Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides: a person, or a program by the name of its token and who made that."""

    name: str
    role: str
    owner: str | None = None

    def may(self, role: str) -> bool:
        """Tell whether the role reaches the one asked for."""
        return ROLES.index(self.role) >= ROLES.index(role)


def role_needed(action: str) -> str:
    """Name the role that may approve an action."""
    return "approver" if action in proposals.DESTROYS else "operator"


def not_theirs(
    connection: Connection,
    proposal: Proposal,
    decider: Decider,
    verdict: Verdict,
    *,
    four_eyes: bool,
) -> Problem | None:
    """Say why this decision is not this decider's to make; None: it is."""
    role = role_needed(proposal.action) if verdict == "approved" else "operator"
    if not decider.may(role):
        return forbidden(
            f"{rails.action_word(proposal.action)} needs the role {role}; "
            f"{decider.name} has the role {decider.role}."
        )
    if verdict != "approved" or not proposal.destroys or not four_eyes:
        return None
    asked = _behind(connection, proposal.recommended_by)
    if asked & ({decider.name} | ({decider.owner} if decider.owner else set())):
        return forbidden(
            f"{proposal.recommended_by} asked for it, so somebody else than {decider.name} decides."
        )
    return None


def _behind(connection: Connection, name: str) -> set[str]:
    """Name everybody behind a requester: a token also speaks for whoever made it."""
    if not name.startswith("token "):
        return {name}
    return {name, *tokens.owners(connection, name.removeprefix("token "))}
