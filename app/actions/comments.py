"""How does somebody say something about a proposal, before or after it was decided?"""

from __future__ import annotations

from app.actions import rails, writing
from app.actions.deciders import Decider
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, proposal_comments, proposals
from app.store.connection import Connection

TEXT_LIMIT = 4_000  # characters


def comment(context: Context, proposal_id: int, author: Decider, text: str) -> bool:
    """Keep a comment; False when the newest one is the same words by the same author."""
    said = text.strip()
    if not said or len(said) > TEXT_LIMIT:
        words = f"A comment needs words, at most {TEXT_LIMIT} characters."
        raise Problem(422, "invalid", words, field="text")
    if not author.may("operator"):
        raise forbidden(f"A comment needs the role operator; {author.name} is {author.role}.")
    now = context.now()

    def write(connection: Connection) -> bool | Problem:
        proposal = proposals.get(connection, proposal_id)
        if proposal is None:
            return not_found("no proposal with this id")
        before = proposal_comments.of_proposal(connection, proposal_id, 1)
        if before and (before[0].author, before[0].text) == (author.name, said):
            return False
        proposal_comments.add(connection, proposal_id, proposal.case_id, author.name, said, now)
        audit.append(
            connection,
            author.name,
            "proposal.commented",
            f"{rails.title(proposal)}: {author.name} wrote: {said}",
            at=now,
            case_id=proposal.case_id,
            proposal_id=proposal_id,
            node_id=proposal.node_id,
            details={"text": said},
        )
        return True

    done = writing.write(context, write)
    if isinstance(done, Problem):
        raise done
    return done
