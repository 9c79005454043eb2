"""Do the rails hold in any order of alarms, decisions, crashes, foreign changes and clocks?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy.engine import Connection

from app.config import Settings
from app.context import Context
from app.store import audit, ids, proposals
from app.store.database import connect
from app.store.store import Store
from ingest.apply import apply_posts
from tests.approvals.house import CLUSTER
from tests.approvals.walk import NODES, Walk, first_alarms, first_map, name_of, posted
from tests.approvals.world import Machines, MemoryStore, Nodes, World

WALKS = 120
SLOW_WALKS = 10_000
PROVED_EVERY = 50  # walks whose audit chain is read as a whole


@pytest.fixture
def database(migrated_sqlite_url: str) -> Iterator[Connection]:
    """Give a connection to a database with one job, inside a transaction that is never kept."""
    engine = connect(migrated_sqlite_url)
    with engine.connect() as connection:
        connection.begin()
        world = World()
        apply_posts(connection, [posted(one, world) for one in (first_map(), *first_alarms())])
        yield connection
        connection.rollback()
    engine.dispose()


def walk(connection: Connection, folder: Path, seed: int) -> Walk:
    """Take one walk and undo what it did to the database."""
    world = World()
    for number in range(NODES):
        world.add(name_of(number))
    settings = Settings(data_dir=folder)
    store = cast(Store, MemoryStore(connection.engine, connection, world))

    def sent(instance: str) -> str:
        for one in proposals.executing(connection):
            if one.instance_id == instance and one.action == "replace":
                return ids.show(one.id)
        raise AssertionError("a call that no claim stands behind")

    context = Context(
        settings,
        store,
        {CLUSTER: cast(Any, Nodes(world))},
        now=lambda: world.time,
        providers={CLUSTER: cast(Any, Machines(world, sent))},
    )
    savepoint = connection.begin_nested()
    made = Walk(context, world, seed)
    try:
        made.go()
        if seed % PROVED_EVERY == 0:
            assert audit.verify(connection).first_bad is None
    finally:
        savepoint.rollback()
    return made


def take(connection: Connection, folder: Path, seeds: range) -> Counter[str]:
    """Take walks; give how often each thing happened in all of them."""
    happened: Counter[str] = Counter()
    for seed in seeds:
        try:
            made = walk(connection, folder, seed)
        except Exception as error:
            error.add_note(f"the walk of seed {seed}")
            raise
        happened.update(made.done)
        happened.update(f"call {action}" for action, _, _ in made.checks.called.values())
        happened.update(f"ends {status}" for status in made.checks.before.values())
        happened["undone"] += made.checks.undos
    return happened


def holds(happened: Counter[str], walks: int) -> None:
    """Hold that the walks went everywhere, so that nothing was held of nothing."""
    for name in ("call cordon", "undone", "ends refused", "ends verified", "ends unknown"):
        assert happened[name] > walks / 10, (name, happened)
    for name in ("call uncordon", "call replace", "ends expired", "ends rejected"):
        assert happened[name] > walks / 200, (name, happened)


@pytest.mark.timeout(900)
def test_the_rails_hold_in_any_order(database: Connection, tmp_path: Path) -> None:
    holds(take(database, tmp_path, range(WALKS)), WALKS)


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_the_rails_hold_in_ten_thousand_orders(database: Connection, tmp_path: Path) -> None:
    happened = take(database, tmp_path, range(100_000, 100_000 + SLOW_WALKS))
    holds(happened, SLOW_WALKS)
