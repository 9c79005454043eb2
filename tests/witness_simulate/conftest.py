"""Which running service do simulated jobs report to?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.config import Settings
from app.main import make_context
from app.store.migrate import upgrade
from tests.actions.service import ADMIN_TOKEN, Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Serve the whole application on a fresh database for the tests of one file."""
    folder: Path = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder / 'witness.db'}"
    upgrade(url)
    settings = Settings(database_url=url, data_dir=folder, admin_token=ADMIN_TOKEN)
    running = Service(make_context(settings))
    yield running
    running.close()
