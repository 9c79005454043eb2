"""Does the preview say plainly what a failing cluster answers, and stay a page?"""

from __future__ import annotations

import pytest

from tests.actions.service import Service
from tests.actions.test_faults import ANSWERS, NODE
from tests.doubles.kubernetes.double import KubernetesDouble


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Reading a cluster has nothing to do with the kind of database: one is enough."""
    return migrated_sqlite_url


@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_a_failing_reading_is_said_on_the_preview(
    service: Service, cluster: KubernetesDouble, kind: str
) -> None:
    cluster.set_fault(f"GET {NODE}", **ANSWERS[kind])
    proposal = service.proposal()
    page = service.person().get(f"/proposals/{proposal['id']}")
    assert 'class="pred x"' in page if kind == "404" else 'class="pred u"' in page
    assert 'role="status"' in page
    assert "Traceback" not in page
    assert cluster.calls == []
    assert service.read(f"/proposals/{proposal['id']}")["status"] == "proposed"


@pytest.mark.parametrize("kind", ["403", "500", "never"])
def test_pods_that_cannot_be_read_are_unknown_and_not_none(
    service: Service, cluster: KubernetesDouble, kind: str
) -> None:
    cluster.set_fault("GET /api/v1/pods", **ANSWERS[kind])
    page = service.person().get(f"/proposals/{service.proposal()['id']}")
    assert '<span class="tag unknown">Not known</span>' in page
    assert "The node is Ready" in page
