"""Which rank maps did an attempt post?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.store.intake.upsert import merge
from app.store.tables import attempt_maps


@dataclass(frozen=True, slots=True)
class MapLink:
    """One map of one attempt; times in microseconds."""

    attempt_id: int
    rank_map_id: int
    at: int
    received_at: int
    document_id: int


def maps_of(connection: Connection, attempt_id: int) -> set[int]:
    """Read the ids of all maps that an attempt posted."""
    query = sa.select(attempt_maps.c.rank_map_id).where(attempt_maps.c.attempt_id == attempt_id)
    return set(connection.execute(query).scalars())


def write_links(connection: Connection, links: Sequence[MapLink]) -> None:
    """Insert links, counting those that come again."""
    rows = [{**asdict(link), "received": 1} for link in links]
    merge(connection, attempt_maps, rows, {"received": "add"})
