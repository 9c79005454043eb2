"""Does a job hear that it should audit a machine closely, and is what it then does counted?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.actions import adjudicate, looking, probation, undo, writing
from app.actions.casework import Policy, judge_cases
from app.actions.decide import Decider
from app.actions.orders.auditing import Audit
from app.store import proposals, targeted_audits
from app.store.ids import read
from app.store.proposals import Proposal
from tests.actions.fleet import LAST_GPU_OF_SUSPECT, SUSPECT, alarm, envelope, rank_map, transient
from tests.actions.service import ADMIN_TOKEN, BEARER, Service, until
from tests.doubles.kubernetes.double import KubernetesDouble
from witness.report import Reporter
from witness.wire import Envelope

BOTH = {
    "test_audits_that_pass_are_counted_from_the_attempt_that_took_it",
    "test_an_alarm_in_it_settles_it_as_such",
    "test_a_release_begins_a_probation_and_a_job_hears_of_it",
}
INSTANCE = SUSPECT.removeprefix("hyperpod-")


def at(minutes: float) -> str:
    """Say a time so many minutes from now."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def asked(service: Service, **more: str) -> list[dict[str, Any]]:
    """Ask as a job does when it starts."""
    names = {"cluster": "alpine", "namespace": "research", "job": "llama-953m", **more}
    found: list[dict[str, Any]] = service.read("/audit-requests", **names)["requests"]
    return found


def audits(count: int, minutes: float, job: str = "llama-953m", **more: Any) -> dict[str, Any]:
    """Report that so many ring audits passed."""
    return envelope(
        "passes", job, at(minutes), check="ring", first_step=100, last_step=100 + 10 * count,
        count=count, gpus=32, mode="deterministic", peer_offset=8, step_time_s=1.0, **more,
    )  # fmt: skip


def begun(service: Service) -> dict[str, Any]:
    """Raise a transient alarm and approve the targeted audit that is proposed for it."""
    service.post(rank_map(), transient("llama-953m", "2026-03-02T10:15:00Z", 30, [13, 5], 21))
    proposal = service.proposal("targeted_audit")
    assert proposal["blocked"] is None
    address = f"/proposals/{proposal['id']}"
    given = {"evidence_version": proposal["evidence_version"]}
    answer = httpx2.post(f"{service.url}/api/v1{address}/approve", json=given, headers=BEARER)
    assert answer.status_code == 200, answer.text
    until(lambda: service.read(address)["status"] not in ("approved", "executing"), "it is sent")
    assert service.read(address)["status"] in ("accepted", "waiting")
    return proposal


def looked(service: Service, proposal: dict[str, Any]) -> Proposal:
    """Have the order looked at now."""
    looking.look_again(service.context, read(proposal["id"]))
    with service.context.store.reading() as connection:
        found = proposals.get(connection, read(proposal["id"]))
    assert found is not None
    return found


def again(service: Service, minutes: float, **more: Any) -> None:
    """Start the job once more on the same machines."""
    service.post({**rank_map(time=at(minutes)), "attempt": 2, **more})


def test_audits_that_pass_are_counted_from_the_attempt_that_took_it(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster, targeted_audit_passes=5)
    proposal = begun(service)
    (request,) = asked(service)
    assert (request["node"], request["instance_id"]) == (SUSPECT, INSTANCE)
    assert request["gpu_uuid"] == LAST_GPU_OF_SUSPECT
    assert (request["audit_every"], request["passes"], request["probation"]) == (10, 5, False)
    assert asked(service, node=SUSPECT) == [request]
    assert asked(service, node="another") == []
    assert asked(service, instance="i-0c0ffee0000000001") == []
    assert asked(service, cluster="another") == []

    service.post({**audits(9, -1), "attempt": 1})  # of the attempt that ran before
    assert "No attempt has taken it yet" in looked(service, proposal).details["standing"]
    again(service, 1, audit_requests=[request["id"], "none of ours"])
    service.post(audits(4, 2, attempt=2))
    assert (
        "4 of 5 audits passed; taken by llama-953m" in looked(service, proposal).details["standing"]
    )
    assert asked(service) == [request], "a next attempt goes on with it"

    service.post(audits(1, 3, attempt=2, audit_requests=[request["id"]]))
    done = looked(service, proposal)
    assert done.status == "verified"
    assert "5 of 5 audits passed" in str(done.outcome)
    assert asked(service) == []
    (case,) = service.read("/cases")["items"]
    assert case["headline"].startswith("Release, or test it")
    page = service.person().get(f"/cases/{case['id']}")
    assert "Targeted audit passed" in page
    assert "clears nothing" in page
    assert service.proposals("uncordon") == []
    assert cluster.calls == []


def test_an_alarm_in_it_settles_it_as_such(make_service: Callable[..., Service]) -> None:
    service = make_service()
    proposal = begun(service)
    (request,) = asked(service)
    again(service, 1, audit_requests=[request["id"]])
    service.post({**alarm(time=at(2), step=130, suspect_window=[121, 130]), "attempt": 2})
    done = looked(service, proposal)
    assert (done.status, done.result) == ("failed", "alarmed")
    assert asked(service) == []
    (case,) = service.read("/cases")["items"]
    assert "An alarm came in the targeted audit" in service.read(f"/cases/{case['id']}")["advice"]


def test_what_nobody_takes_ends_and_teaches_nothing(make_service: Callable[..., Service]) -> None:
    service = make_service(targeted_audit_days=0.000001)
    proposal = begun(service)
    assert asked(service) == []
    done = looked(service, proposal)
    assert (done.status, done.result) == ("failed", "not_taken")
    (case,) = service.read("/cases")["items"]
    assert case["headline"].startswith("Cordon, audit or test it")


def test_passes_elsewhere_and_of_other_gpus_do_not_count(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(targeted_audit_passes=5)
    proposal = begun(service)
    (request,) = asked(service)
    elsewhere = rank_map("moe-7b", at(1))
    elsewhere["ranks"] = [one for one in elsewhere["ranks"] if one["node"] != SUSPECT]
    half = rank_map("vit", at(1))
    half["ranks"] = [one for one in half["ranks"] if one["gpu_uuid"] != LAST_GPU_OF_SUSPECT]
    service.post(
        {**elsewhere, "audit_requests": [request["id"]]}, audits(9, 2, "moe-7b"),
        half, audits(9, 2, "vit"),
    )  # fmt: skip
    assert "0 of 5 audits passed" in looked(service, proposal).details["standing"]


def test_a_release_begins_a_probation_and_a_job_hears_of_it(
    make_service: Callable[..., Service], cluster: KubernetesDouble
) -> None:
    service = make_service(cluster, targeted_audit_passes=2)
    service.post(rank_map(), transient("llama-953m", "2026-03-02T10:15:00Z", 30, [13, 5], 21))
    cordon = service.proposal()
    service.decide(cordon)
    undo.undo(service.context, read(cordon["id"]), Decider("olga", "operator"), "tested")
    service.settled(service.proposal("uncordon"))
    (request,) = asked(service)
    assert request["probation"] is True
    (case,) = service.read("/cases")["items"]
    judged = partial(
        judge_cases, case_ids=[read(case["id"])], now=service.context.now(), policy=Policy()
    )
    writing.write(service.context, judged)
    assert [one["status"] for one in service.proposals()] == ["verified"], "it was released"
    again(service, 1, audit_requests=[request["id"]])
    service.post(audits(5, 2, attempt=2))
    assert probation.watch(service.context) == 0
    assert asked(service) == [request], "it stands until its end"
    assert "probation.began" in service.audit()

    service.post({**alarm(time=at(3), step=130, suspect_window=[121, 130]), "attempt": 2})
    assert "proposed" in [one["status"] for one in service.proposals()], "a new alarm asks again"
    assert probation.watch(service.context) == 1
    assert probation.watch(service.context) == 0
    assert asked(service) == []


def test_a_wrong_question_is_refused_by_name(make_service: Callable[..., Service]) -> None:
    service = make_service()
    address = f"{service.url}/api/v1/audit-requests"
    missing = httpx2.get(address, params={"cluster": "alpine"}, headers=BEARER)
    assert (missing.status_code, missing.json()["error"]["field"]) == (400, "namespace")
    unknown = httpx2.get(address, params={"colour": "red"}, headers=BEARER)
    assert unknown.json()["error"]["field"] == "colour"
    assert httpx2.get(address).status_code == 401
    wrong = {**rank_map(), "audit_requests": "all"}
    refused = httpx2.post(f"{service.url}/api/v1/rank-maps", json=wrong, headers=BEARER)
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "audit_requests")


def test_the_reporter_of_a_job_hears_of_it_and_says_that_it_takes_it(
    make_service: Callable[..., Service], tmp_path: Path
) -> None:
    service = make_service()
    begun(service)
    started = {**rank_map(), "attempt": 2}
    said = Envelope("alpine", "research", "llama-953m", 2)
    reporter = Reporter(said, url=service.url, token=ADMIN_TOKEN, spool=tmp_path / "spool")
    (request,) = reporter.audit_requests(started["ranks"])
    assert (request.audit_every, request.passes) == (10, 20)
    assert reporter.audit_requests(started["ranks"][:8]) == (), "another machine"
    reporter.takes_audits([request.id])
    reporter.rank_map(started["ranks"], 32, 8, 8)
    reporter.close(20)
    with service.context.store.reading() as connection:
        now = service.context.now()
        (audit,) = targeted_audits.asked_of(connection, "alpine", "research", "llama-953m", now)
    assert (audit.state, audit.taken_by["attempt"]) == ("taken", 2)


def test_closing_the_case_asks_for_nothing_any_more(make_service: Callable[..., Service]) -> None:
    service = make_service()
    proposal = begun(service)
    (case,) = service.read("/cases")["items"]
    olga = Decider("olga", "operator")
    adjudicate.adjudicate(service.context, read(case["id"]), olga, "open", "software", "commit")
    assert asked(service) == []
    done = looked(service, proposal)
    assert (done.status, done.result) == ("failed", "withdrawn")


@pytest.mark.parametrize("written", [True, False])
def test_a_crash_between_writing_and_recording_ends_in_the_truth(
    make_service: Callable[..., Service], written: bool
) -> None:
    service = make_service()
    service.post(rank_map(), transient("llama-953m", "2026-03-02T10:15:00Z", 30, [13, 5], 21))
    shown = service.proposal("targeted_audit")
    with service.context.store.reading() as connection:
        proposal = proposals.get(connection, read(shown["id"]))
    assert proposal is not None
    if written:
        for _ in range(2):  # a second one would find the first's row
            Audit().send(service.context, proposal)
    values = {"status": "unknown", "claimed_at": service.context.now()}
    service.context.store.write(
        lambda connection: proposals.move(connection, proposal.id, ("proposed",), values)
    )
    after = looked(service, shown)
    assert after.status == ("waiting" if written else "failed")
    assert len(asked(service)) == (1 if written else 0)
