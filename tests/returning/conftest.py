"""Which running service, cluster and clock do the tests of the way back to service share?

Each test runs on SQLite, and those that a module names in `BOTH` on PostgreSQL as well: starting
the service costs more than most of what is tested here.
"""

from __future__ import annotations

import pytest

from tests.actions.conftest import cluster, make_service

__all__ = ["cluster", "make_service"]


@pytest.fixture
def migrated_url(request: pytest.FixtureRequest) -> str:
    """Give a fresh database with all tables and no row."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the databases of a test."""
    if "migrated_url" in metafunc.fixturenames:
        both = metafunc.function.__name__ in getattr(metafunc.module, "BOTH", ())
        kinds = ["sqlite", "postgres"] if both else ["sqlite"]
        metafunc.parametrize("migrated_url", kinds, indirect=True)
