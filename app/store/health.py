"""Can the database be read and written now, and how much waits in it?"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.store import Store
from app.store.tables import proposals


def answers(store: Store) -> None:
    """Read and take the write lock once; raise StoreUnavailable when either fails."""
    with store.reading() as connection:
        connection.execute(sa.text("SELECT 1"))
    store.write(lambda connection: connection.execute(sa.text("SELECT 1")).scalar_one())


def proposals_by_status(connection: Connection) -> dict[str, int]:
    """Count the proposals by status; the index on status answers it."""
    rows = connection.execute(
        sa.select(proposals.c.status, sa.func.count().label("number")).group_by(proposals.c.status)
    )
    return {row.status: row.number for row in rows}
