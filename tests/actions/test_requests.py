"""Can a person ask for what no rule proposes, and is it held back like everything else?"""

from __future__ import annotations

import httpx2

from tests.actions.fleet import alarm, rank_map
from tests.actions.service import BEARER, Service


def _case(service: Service) -> str:
    (case,) = service.read("/cases")["items"]
    return str(case["id"])


def _ask(service: Service, **wanted: object) -> httpx2.Response:
    path = f"{service.url}/api/v1/cases/{_case(service)}/proposals"
    return httpx2.post(path, json=wanted, headers=BEARER, timeout=30)


def test_what_a_person_asks_for_waits_for_somebody_else(service: Service) -> None:
    asker = service.person("approver", "ann")
    case = _case(service)
    page = asker.press(
        f"/cases/{case}/ask", f"/cases/{case}", action="reboot", reason="the vendor asks for it"
    )
    assert "Reboot of" in page
    assert "proposed by ann" in page
    (proposal,) = service.proposals("reboot")
    assert proposal["recommended_by"] == "ann"
    said = asker.press(
        f"/proposals/{proposal['id']}/approve", f"/proposals/{proposal['id']}",
        evidence_version=proposal["evidence_version"], node=proposal["target"]["node"],
    )  # fmt: skip
    assert service.proposal("reboot")["status"] == "proposed", said
    entry = service.audit()["proposal.asked"]
    assert "the vendor asks for it" in entry.summary


def test_new_evidence_does_not_take_it_back_and_binds_it_anew(service: Service) -> None:
    assert _ask(service, action="reboot", reason="vendor").status_code == 201
    before = service.proposal("reboot")
    service.post(
        rank_map("moe-7b", "2026-03-11T09:50:00Z"), alarm("moe-7b", "2026-03-11T10:00:00Z")
    )
    after = service.proposal("reboot")
    assert after["status"] == "proposed"
    assert after["evidence_version"] > before["evidence_version"]
    assert after["why"] == "vendor"


def test_the_same_is_not_asked_for_twice(service: Service) -> None:
    assert _ask(service, action="deep_health_check", reason="to be sure").status_code == 201
    again = _ask(service, action="deep_health_check", reason="to be sure")
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "already_there"
    assert again.json()["error"]["proposal"]


def test_what_makes_no_sense_is_refused_and_nothing_is_kept(service: Service) -> None:
    for field, wanted in (
        ("action", {"action": "explode", "reason": "x"}),
        ("way", {"action": "reboot", "reason": "x", "way": "gke_label"}),
        ("checks", {"action": "deep_health_check", "reason": "x", "checks": ["MultiNodeTraining"]}),
        ("checks", {"action": "reboot", "reason": "x", "checks": ["InstanceStress"]}),
        ("reason", {"action": "reboot", "reason": "  "}),
    ):
        answer = _ask(service, **wanted)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["field"] == field
    assert service.proposals("reboot") == []
    viewer = service.person("viewer", "vic")
    answer = viewer.send(f"/cases/{_case(service)}/ask", action="reboot", reason="x")
    assert answer.status_code == 403
