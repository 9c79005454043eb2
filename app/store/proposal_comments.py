"""What did people write about one proposal?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import notes

KIND = "comment"


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment."""

    id: int
    at: datetime
    author: str
    text: str


def add(
    connection: Connection, proposal_id: int, case_id: int, author: str, text: str, at: datetime
) -> int:
    """Keep a comment; it also stands among the notes of the case."""
    row = {
        "at": at, "author": author, "case_id": case_id, "proposal_id": proposal_id,
        "kind": KIND, "text": text,
    }  # fmt: skip
    return int(connection.execute(notes.insert().values(row).returning(notes.c.id)).scalar_one())


def of_proposal(connection: Connection, proposal_id: int, limit: int = 200) -> tuple[Comment, ...]:
    """Read the comments on a proposal, the oldest first."""
    rows = connection.execute(
        sa.select(notes.c.id, notes.c.at, notes.c.author, notes.c.text)
        .where(notes.c.proposal_id == proposal_id)
        .order_by(notes.c.id.desc())
        .limit(limit)
    )
    return tuple(Comment(*row) for row in rows)[::-1]
