"""Which service without a web server do the tests of approvals share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.actions.conftest import cluster, make_service
from tests.approvals.house import House

__all__ = ["cluster", "make_service"]


@pytest.fixture
def make_house(migrated_url: str, tmp_path: Path) -> Iterator[Callable[..., House]]:
    """Give a function that sets up a service on a fresh database."""
    with ExitStack() as stack:

        def make(**more: Any) -> House:
            house = House(migrated_url, tmp_path, **more)
            stack.callback(house.context.store.close)
            return house

        yield make


@pytest.fixture
def house(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    """Give a service that knows a job on forty nodes, on the embedded database."""
    made = House(migrated_sqlite_url, tmp_path)
    yield made
    made.context.store.close()
