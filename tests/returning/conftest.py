"""Which running service, cluster and clock do the tests of the way back to service share?"""

from __future__ import annotations

from tests.actions.conftest import cluster, make_service

__all__ = ["cluster", "make_service"]
