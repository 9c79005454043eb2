"""Which running service do the tests of docket, case and approvals share?"""

from __future__ import annotations

import pytest

from tests.actions.conftest import cluster, make_service, service

__all__ = ["cluster", "make_service", "service"]


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Pages read through queries that the tests of actions run on both databases."""
    return migrated_sqlite_url
