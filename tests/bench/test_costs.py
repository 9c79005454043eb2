"""Does intake ask as much of the database for a thousand alarms as for one, and how much of Python?

Counted, not timed: statements and function calls are the same on a busy machine.
"""

from __future__ import annotations

import cProfile
import json
import pstats
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from app.store.connection import Connection
from app.store.database import connect, writing
from ingest.apply import apply_posts
from ingest.documents import Post
from ingest.parse import Arrival, read_post
from tests.bench.documents import JOBS, alarm, rank_map

NOW = datetime(2026, 11, 3, tzinfo=UTC)
FAULTS = 8 * JOBS  # after so many alarms each further one joins a known incident
STATEMENTS = 30
CALLS = 550


class Database:
    """A database that counts the statements which reach the driver."""

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        self.statements = 0
        sa.event.listen(self.engine, "before_cursor_execute", self._count)

    def _count(self, *_: Any) -> None:
        self.statements += 1

    def apply(self, posts: list[Post]) -> int:
        """Write a group in one transaction; give the number of its statements."""
        before = self.statements
        with writing(self.engine).begin() as connection:
            receipts = apply_posts(connection, posts)
        assert len(receipts) == len(posts)
        return self.statements - before


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """Fill a database until every fault of the bench's alarms is known."""
    made = Database(migrated_url)
    made.apply([_post("rank_map", rank_map(job)) for job in range(JOBS)])
    made.apply(_alarms(0, FAULTS))
    yield made
    made.engine.dispose()


def _post(kind: str, document: dict[str, Any]) -> Post:
    return read_post(kind, document, Arrival(NOW, None, json.dumps(document)))


def _alarms(first: int, count: int, **more: Any) -> list[Post]:
    return [_post("alarm", {**alarm(number), **more}) for number in range(first, first + count)]


def test_a_group_asks_as_often_as_one_alarm(database: Database) -> None:
    one = database.apply(_alarms(FAULTS, 1))
    thousand = database.apply(_alarms(FAULTS + 1, 1_000))
    assert thousand <= STATEMENTS
    assert thousand <= one + 2


def test_many_reporters_ask_as_often_as_one(database: Database) -> None:
    first = _alarms(FAULTS, 200)
    database.apply(first)
    repeats = [post for rank in range(1, 6) for post in _alarms(FAULTS, 200, reporter_rank=rank)]
    assert database.apply(repeats) <= STATEMENTS
    with database.engine.connect() as connection:
        assert _reports(connection) >= 200 * 5


def _reports(connection: Connection) -> int:
    return int(connection.execute(sa.text("SELECT count(*) FROM alarm_reports")).scalar_one())


def test_an_alarm_that_joins_an_incident_costs_few_calls(database: Database) -> None:
    posts = _alarms(FAULTS, 2_000)
    database.apply(posts[:1_000])
    profile = cProfile.Profile()
    with writing(database.engine).begin() as connection:
        profile.runcall(apply_posts, connection, posts[1_000:])
    calls = pstats.Stats(profile).total_calls / 1_000  # type: ignore[attr-defined]
    assert calls <= CALLS, f"{calls:.0f} function calls an alarm"
