"""How often did a GPU do a step again, and beside how many witnesses?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.tables import replays

MOST = 50


@dataclass(frozen=True, slots=True)
class Replayed:
    """Replays of one step on one GPU."""

    step: int
    replays: int
    wrong: int
    witnesses: int
    at: datetime


def since(connection: Connection, gpu_id: int | None, at: datetime) -> tuple[Replayed, ...]:
    """Read the newest replays on a GPU since a time."""
    if gpu_id is None:
        return ()
    columns = (
        replays.c.step, replays.c.replays, replays.c.wrong, replays.c.witnesses, replays.c.at,
    )  # fmt: skip
    query = (
        sa.select(*columns)
        .where(replays.c.gpu_id == gpu_id, replays.c.at >= at)
        .order_by(replays.c.at.desc())
        .limit(MOST)
    )
    return tuple(
        Replayed(step, count, wrong, len(json.loads(names)) if names else 0, moment)
        for step, count, wrong, names, moment in connection.execute(query)
    )
