"""Which real service can a test of an adapter have?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.witness_report.conftest import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Serve for the whole session; each test has a job of its own."""
    made = Service(tmp_path_factory.mktemp("service"))
    yield made
    made.server.close()
