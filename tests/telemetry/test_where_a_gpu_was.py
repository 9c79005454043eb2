"""In which machine was a GPU that was moved, and came back?"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from app.store import ids
from app.web.telemetry.events import node_at
from tests.pages_alarm import documents as d
from tests.telemetry import nodes
from tests.telemetry.house import House

MOVED = f"GPU-{uuid.UUID(int=7)}"


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """One database is enough."""
    return migrated_sqlite_url


def placed(job: str, rank: int, at: datetime) -> dict[str, Any]:
    """Say that a job saw the moved GPU in place of a rank's."""
    document = d.rank_map(job=job)
    document["ranks"][rank]["gpu_uuid"] = MOVED
    return {"kind": "rank_map", **document, "time": at.isoformat()}


def test_a_gpu_that_came_back_is_where_it_was_seen_last(house: House) -> None:
    service = house.serve()
    first, between, back = (nodes.moment(-seconds) for seconds in (9000, 6000, 3000))
    service.post(placed("one", 1, first), placed("two", 9, between), placed("three", 1, back))
    gpu = ids.derive("gpu", MOVED)
    with service.context.store.reading() as connection:
        found = [node_at(connection, gpu, at) for at in (first, between, back, nodes.moment())]
    names = [one.name if one else None for one in found]
    assert names == [d.node(1), d.node(9), d.node(1), d.node(1)]
