"""Which queries did people save, and under which names?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import saved_queries

MOST_EACH = 50


class TooMany(Exception):
    """A person has as many saved queries as are kept."""


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A named query string of the page of repeat offenders."""

    id: int
    name: str
    author: str
    query: str
    created_at: datetime


def every(connection: Connection, limit: int = 200) -> tuple[SavedQuery, ...]:
    """List the saved queries of everybody, by name."""
    table = saved_queries.c
    rows = connection.execute(
        sa.select(table.id, table.name, table.author, table.query, table.created_at)
        .order_by(table.name, table.author)
        .limit(limit)
    )
    return tuple(SavedQuery(*row) for row in rows)


def save(connection: Connection, name: str, author: str, query: str, now: datetime) -> bool:
    """Keep a query; False where it took the place of an older one of that author and name."""
    table = saved_queries.c
    mine = sa.and_(table.author == author, table.name == name)
    changed = connection.execute(
        sa.update(saved_queries).where(mine).values(query=query, created_at=now)
    )
    if changed.rowcount:
        return False
    count = sa.select(sa.func.count()).select_from(saved_queries).where(table.author == author)
    if connection.execute(count).scalar_one() >= MOST_EACH:
        raise TooMany
    connection.execute(
        sa.insert(saved_queries).values(name=name, author=author, query=query, created_at=now)
    )
    return True


def find(connection: Connection, query_id: int) -> SavedQuery | None:
    """Read one saved query."""
    table = saved_queries.c
    row = connection.execute(
        sa.select(table.id, table.name, table.author, table.query, table.created_at).where(
            table.id == query_id
        )
    ).first()
    return None if row is None else SavedQuery(*row)


def remove(connection: Connection, query_id: int) -> bool:
    """Forget a saved query; False where it is gone already."""
    gone = connection.execute(sa.delete(saved_queries).where(saved_queries.c.id == query_id))
    return bool(gone.rowcount)
