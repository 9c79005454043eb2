"""In which state does an approved action end when the cluster fails while it is carried out?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.actions.fleet import SUSPECT
from tests.actions.service import Service
from tests.doubles.kubernetes.double import KubernetesDouble

NODE = f"/api/v1/nodes/{SUSPECT}"
ANSWERS: dict[str, dict[str, Any]] = {
    "401": {"status": 401},
    "403": {"status": 403},
    "404": {"status": 404},
    "429": {"status": 429, "retry_after": 7},
    "500": {"status": 500},
    "late": {"delay_s": 3.0},
    "never": {"hang": True},
    "broken off": {"reset": True},
}


# What a real patch may meet, and how the row then ends.
PATCHES = {
    "401": "refused",
    "403": "refused",
    "404": "gone",
    "429": "failed",
    "500": "failed",
    "never": "unknown",
    "broken off": "unknown",
}


@pytest.mark.parametrize("kind", sorted(PATCHES))
def test_a_failing_patch_ends_in_a_true_state(
    service: Service, cluster: KubernetesDouble, kind: str
) -> None:
    cluster.set_fault(f"PATCH {NODE}", dry_run=False, **ANSWERS[kind])
    proposal = service.proposal()
    after = service.decide(proposal).json()
    assert after["status"] == PATCHES[kind], after
    assert after["outcome"]
    assert "unschedulable" not in cluster.node(SUSPECT)["spec"]
    assert len(cluster.changes("PATCH")) == 1
    page = service.person().get(f"/proposals/{proposal['id']}")
    assert after["outcome"].split(".")[0][:40] in page


def test_a_lost_answer_is_settled_by_reading(service: Service, cluster: KubernetesDouble) -> None:
    cluster.set_fault(f"PATCH {NODE}", dry_run=False, reset=True, apply_first=True)
    proposal = service.proposal()
    after = service.decide(proposal).json()
    assert after["status"] == "verified", after
    assert len(cluster.changes("PATCH")) == 1


def test_what_failed_can_be_proposed_again_by_a_person(
    service: Service, cluster: KubernetesDouble
) -> None:
    cluster.set_fault(f"PATCH {NODE}", dry_run=False, status=403)
    proposal = service.proposal()
    assert service.decide(proposal).json()["status"] == "refused"
    cluster.clear_faults()
    address = f"/proposals/{proposal['id']}"
    page = service.person("operator", "alice").press(f"{address}/ask-again", address)
    assert "Proposed again by alice" in page
    again = service.person("operator", "alice").press(f"{address}/ask-again", address)
    assert "was asked for again already" in again
    second = next(one for one in service.proposals() if one["status"] == "proposed")
    assert service.decide(second).json()["status"] == "verified"
    assert cluster.node(SUSPECT)["spec"]["unschedulable"] is True
