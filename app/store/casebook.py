"""How is what people say about a case written down?"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import cases, notes, proposals

ADJUDICATIONS = ("open", "hardware confirmed", "software", "not reproduced")


def add_note(connection: Connection, case_id: int, author: str, text: str, at: datetime) -> None:
    """Keep a note on a case."""
    connection.execute(
        notes.insert().values(at=at, author=author, case_id=case_id, kind="note", text=text)
    )


def newest_note(connection: Connection, case_id: int, author: str) -> str | None:
    """Read what a person wrote last on a case."""
    text = connection.execute(
        sa.select(notes.c.text)
        .where(notes.c.case_id == case_id, notes.c.author == author)
        .order_by(notes.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    return None if text is None else str(text)


def adjudicate(connection: Connection, case_id: int, before: str, after: str, at: datetime) -> bool:
    """Judge a case if it still stands as `before`; False when somebody judged it meanwhile."""
    closed = after != "open"
    changed = connection.execute(
        cases.update()
        .where(cases.c.id == case_id, cases.c.adjudication == before)
        .values(
            adjudication=after,
            status="closed" if closed else "open",
            closed_at=at if closed else None,
        )
    )
    return changed.rowcount == 1


def newer_open_case(connection: Connection, case_id: int) -> int | None:
    """Find an open case about the same subject that was opened after this one."""
    this = sa.select(cases.c.subject, cases.c.subject_id, cases.c.ordinal).where(
        cases.c.id == case_id
    )
    subject, subject_id, ordinal = connection.execute(this).one()
    found = connection.execute(
        sa.select(cases.c.id)
        .where(
            cases.c.subject == subject,
            cases.c.subject_id == subject_id,
            cases.c.ordinal > ordinal,
            cases.c.status == "open",
        )
        .limit(1)
    ).scalar_one_or_none()
    return None if found is None else int(found)


def supersede_waiting(
    connection: Connection, case_id: int, why: str, at: datetime, but: Collection[str] = ()
) -> int:
    """Close what waits for a decision in a case; give how many proposals that were.

    `but` names who proposed what stays open.
    """
    changed = connection.execute(
        proposals.update()
        .where(
            proposals.c.case_id == case_id,
            proposals.c.status == "proposed",
            proposals.c.recommended_by.not_in(but),
        )
        .values(status="superseded", finished_at=at, outcome=why)
    )
    return changed.rowcount
