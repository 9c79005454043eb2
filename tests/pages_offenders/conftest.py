"""How does a test get the service on both databases, at a moment of its own?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.config import Settings
from app.context import Context
from app.main import create_app, make_context
from tests.pages_offenders.house import TOKEN, House
from tests.web.conftest import Clock

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands some days after the documents of the cases."""
    return Clock(NOW)


@pytest.fixture
def house(migrated_url: str, tmp_path: Path, clock: Clock) -> Iterator[House]:
    """Give the service on an empty database of each kind."""
    settings = Settings(database_url=migrated_url, data_dir=tmp_path, admin_token=TOKEN)
    made = make_context(settings)
    context = Context(made.settings, made.store, made.clusters, clock)
    yield House(create_app(settings, context), context)
    made.store.close()


@pytest.fixture
def one_house(migrated_sqlite_url: str, tmp_path: Path, clock: Clock) -> Iterator[House]:
    """Give the service on SQLite, for what no database decides."""
    settings = Settings(database_url=migrated_sqlite_url, data_dir=tmp_path, admin_token=TOKEN)
    made = make_context(settings)
    context = Context(made.settings, made.store, made.clusters, clock)
    yield House(create_app(settings, context), context)
    made.store.close()
