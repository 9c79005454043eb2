"""Which application do the tests of node and GPU pages get?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages_timeline.fleet import Fleet


@pytest.fixture
def fleet(migrated_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Give the application on an empty database of each kind."""
    opened = Fleet(migrated_url, tmp_path)
    yield opened
    opened.close()
