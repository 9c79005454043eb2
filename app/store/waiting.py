"""How much waits for a person, for the numbers beside the navigation?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import cases, proposals

MOST = 1_000  # the page says "999+" beyond


@dataclass(frozen=True, slots=True)
class Waiting:
    """Counted up to MOST."""

    open_cases: int
    proposals: int  # that can be decided now


def read(connection: Connection) -> Waiting:
    """Count open cases and proposals that wait; both counts stop early."""
    can_be_decided = (proposals.c.status == "proposed", proposals.c.blocked.is_(None))
    return Waiting(
        _up_to(connection, sa.select(cases.c.id).where(cases.c.status == "open")),
        _up_to(connection, sa.select(proposals.c.id).where(*can_be_decided)),
    )


def _up_to(connection: Connection, statement: sa.Select[Any]) -> int:
    some = statement.limit(MOST).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())
