"""How does a test get the service with jobs in it?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.pages_offenders.conftest import house, one_house
from tests.web.conftest import Clock

__all__ = ["clock", "house", "one_house"]


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands a day after the documents that these tests post."""
    return Clock(datetime(2026, 11, 3, 12, tzinfo=UTC))
