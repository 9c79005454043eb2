"""Which audit entries are shown, exported or searched?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.audit import BATCH, Entry, entry
from app.store.tables import audit_entries


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are asked for; None and empty mean all."""

    actor: str = ""
    verb: str = ""  # a whole verb, or its beginning up to the dot
    text: str = ""  # somewhere in the summary
    since: datetime | None = None
    until: datetime | None = None
    case_id: int | None = None
    proposal_id: int | None = None
    node_id: int | None = None
    job_id: int | None = None


def count(connection: Connection) -> int:
    """Count all entries."""
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(audit_entries)).scalar_one()
    )


def page(
    connection: Connection, wanted: Filter, *, before: int | None, limit: int
) -> tuple[Entry, ...]:
    """List entries, the newest first, older than the entry `before`."""
    statement = _filtered(sa.select(audit_entries), wanted)
    if before is not None:
        statement = statement.where(audit_entries.c.id < before)
    statement = statement.order_by(audit_entries.c.id.desc()).limit(limit)
    return tuple(entry(row._asdict()) for row in connection.execute(statement))


def of_case(connection: Connection, case_id: int, limit: int = 200) -> tuple[Entry, ...]:
    """List what was done on a case, the newest first."""
    return page(connection, Filter(case_id=case_id), before=None, limit=limit)


def after(connection: Connection, entry_id: int, limit: int) -> tuple[Entry, ...]:
    """List the entries written after one, the oldest first."""
    statement = sa.select(audit_entries).where(audit_entries.c.id > entry_id)
    rows = connection.execute(statement.order_by(audit_entries.c.id).limit(limit))
    return tuple(entry(row._asdict()) for row in rows)


def walk(connection: Connection, wanted: Filter) -> Iterator[Entry]:
    """Go through entries in the order of their writing, the true order, a batch at a time."""
    after = 0
    while True:
        statement = _filtered(sa.select(audit_entries), wanted)
        statement = statement.where(audit_entries.c.id > after)
        rows = connection.execute(statement.order_by(audit_entries.c.id).limit(BATCH)).all()
        for row in rows:
            yield entry(row._asdict())
        if len(rows) < BATCH:
            return
        after = rows[-1].id


def _filtered(statement: sa.Select[Any], wanted: Filter) -> sa.Select[Any]:
    column = audit_entries.c
    if wanted.actor:
        statement = statement.where(column.actor == wanted.actor)
    if wanted.verb:
        statement = statement.where(
            sa.or_(
                column.verb == wanted.verb,
                column.verb.startswith(wanted.verb.rstrip(".") + ".", autoescape=True),
            )
        )
    if wanted.text:
        statement = statement.where(column.summary.icontains(wanted.text, autoescape=True))
    if wanted.since is not None:
        statement = statement.where(column.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(column.at < wanted.until)
    for name in ("case_id", "proposal_id", "node_id", "job_id"):
        if (value := getattr(wanted, name)) is not None:
            statement = statement.where(column[name] == value)
    return statement
