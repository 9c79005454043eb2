"""Does a case say what speaks for it, how sure it is, how far it reaches and what was said?"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from tests.actions.fleet import LAST_GPU_OF_SUSPECT, SUSPECT, alarm, envelope, rank_map
from tests.actions.service import Person, Service

CHECKPOINTS = [
    {"step": step, "uri": f"s3://ckpt/{step}", "committed": True, "saved_at": None, "tags": None}
    for step in (0, 20, 25, 40)
]


def _page(service: Service, person: Person | None = None) -> tuple[str, str]:
    (case,) = service.read("/cases")["items"]
    person = person or service.person("operator", "alice")
    return f"/cases/{case['id']}", person.get(f"/cases/{case['id']}")


def test_evidence_stands_for_against_and_missing(service: Service) -> None:
    _, page = _page(service)
    assert "Ring, step 30 of llama-953m: 2 of 2 comparisons of rank 13 differ." in page
    assert "First incident of this device that is known here." in page
    assert "DCGM telemetry: not collected" in page
    assert "Code digest: not sent, so software is not ruled out." in page
    assert "Replay of step 30 against two witnesses: none reported." in page
    for label in (">OK<", "healthy<", ">clean<", ">safe<"):
        assert label not in page


def test_the_ladder_shows_each_term_and_has_its_table(service: Service) -> None:
    _, page = _page(service)
    assert "How sure: P 0.82" in page
    assert "New defects for each false accusation (culprit)" in page
    assert "× 13.3" in page
    assert "× 0.35" in page
    assert "If a deep health check of recall 0.70 passes: 0.58" in page
    assert "If 30 clean days of audits follow: 0.46" in page
    assert "fires again once in 48 hours of audited work" in page
    assert re.search(r'data-l="Factor">13\.3<', page)


def test_the_blast_radius_names_jobs_levels_and_where_to_resume(service: Service) -> None:
    service.post(
        rank_map("sft-8b", "2026-03-01T18:00:00Z"),
        envelope("passes", "sft-8b", "2026-03-01T20:00:00Z", check="ring", first_step=1,
                 last_step=21450, count=214, gpus=32),
        envelope("checkpoints", "llama-953m", "2026-03-02T10:14:00Z", checkpoints=CHECKPOINTS),
    )  # fmt: skip
    _, page = _page(service)
    assert "1 job tainted, 0 suspect, 1 exposed" in page
    assert "Resume from step 20, not later." in page
    assert "4, 1 inside" in page
    assert "1 to 21,450" in page
    whole = service.read(f"/cases/{service.read('/cases')['items'][0]['id']}")
    levels = {job["job"]: job["level"] for job in whole["blast_radius"]["jobs"]}
    assert levels == {"llama-953m": "tainted", "sft-8b": "exposed"}
    assert whole["gpu_uuid"] == LAST_GPU_OF_SUSPECT


def test_a_case_without_a_device_is_not_scored(make_service: Callable[..., Service]) -> None:
    service = make_service()
    service.post(
        alarm("moe-16b", check="reduced gradient", step=18412, suspect_window=[18412, 18412])
    )
    _, page = _page(service)
    assert "Not scored" in page
    assert "No GPU is named, so none can be scored." in page
    assert "Rank map of this attempt: not posted" in page
    assert "nobody is named" in page


def test_notes_are_kept_and_shown_as_they_were_written(service: Service) -> None:
    alice = service.person("operator", "alice")
    address, _ = _page(service, alice)
    said = alice.press(f"{address}/notes", address, text="<b>look</b> at the topology")
    assert "Note added by alice" in said
    assert "&lt;b&gt;look&lt;/b&gt; at the topology" in said
    empty = alice.send(f"{address}/notes", address, text="   ")
    assert empty.status_code == 422


def test_an_adjudication_closes_and_opens_the_case_again(service: Service) -> None:
    alice = service.person("operator", "alice")
    address, _ = _page(service, alice)
    closed = alice.press(
        f"{address}/adjudicate", address, before="open", after="software", ground="commit 9f31c2e"
    )
    assert "Case closed as software by alice." in closed
    assert service.read("/cases")["items"] == []
    (case,) = service.read("/cases", status="closed")["items"]
    assert case["adjudication"] == "software"
    assert {one["status"] for one in service.proposals()} == {"superseded"}
    entry = service.audit()["case.closed"]
    assert "commit 9f31c2e" in entry.summary
    stale = alice.press(
        f"{address}/adjudicate", address, before="open", after="not reproduced", ground=""
    )
    assert "Somebody judged this case meanwhile" in stale
    opened = alice.press(
        f"{address}/adjudicate", address, before="software", after="open", ground=""
    )
    assert "Case opened again by alice." in opened
    assert service.read("/cases")["items"][0]["status"] == "open"
    assert "proposed" in {one["status"] for one in service.proposals()}
    unknown = alice.send(
        f"{address}/adjudicate", address, before="open", after="innocent", ground=""
    )
    assert unknown.status_code == 422


def test_closing_keeps_a_cordon_and_says_so(service: Service) -> None:
    service.decide(service.proposal())
    alice = service.person("operator", "alice")
    address, _ = _page(service, alice)
    said = alice.press(
        f"{address}/adjudicate", address, before="open", after="hardware confirmed", ground="RMA-7"
    )
    assert f"Its node {SUSPECT} stays cordoned" in said
    assert "Preview uncordon" in said


def test_an_alarm_after_the_closing_opens_the_next_case(service: Service) -> None:
    alice = service.person("operator", "alice")
    address, _ = _page(service, alice)
    alice.press(f"{address}/adjudicate", address, before="open", after="not reproduced", ground="")
    now = datetime.now(UTC)
    service.post(rank_map("moe-7b", now.isoformat()), alarm("moe-7b", now.isoformat()))
    cases = service.read("/cases")["items"]
    page = alice.get(f"/cases/{cases[0]['id']}")
    assert "closed as not reproduced" in page
    reopened = alice.press(
        f"{address}/adjudicate", address, before="not reproduced", after="open", ground=""
    )
    assert "A newer case about the same device is open" in reopened


def test_a_viewer_reads_everything_and_gets_no_button(service: Service) -> None:
    viewer = service.person("viewer")
    _, page = _page(service, viewer)
    assert "/adjudicate" not in page
    assert "Add note" not in page
    preview = viewer.get(f"/proposals/{service.proposal()['id']}")
    assert "Deciding needs the role operator." in preview
    assert "<textarea" not in preview


def test_approvals_show_what_waits_what_is_blocked_and_what_came_of_it(service: Service) -> None:
    service.post(
        rank_map("moe-7b", "2026-03-11T09:50:00Z"), alarm("moe-7b", "2026-03-11T10:00:00Z")
    )
    alice = service.person("operator", "alice")
    waiting = alice.get("/approvals")
    assert "Cordon the node" in waiting
    assert "Replace the node" in waiting
    assert "cannot be undone" in waiting
    service.decide(service.proposal("replace"), "reject")
    service.decide(service.proposal())
    assert "Nothing waits for a decision." in alice.get("/approvals")
    done = alice.get("/approvals?show=done")
    assert "done, proven by reading" in done
    assert "administrator&#39;s token" in done
    assert alice.http.get("/approvals?show=all").status_code == 400
    assert alice.http.get("/approvals?cursor=zz").status_code == 400


def test_lists_for_programs_are_bound_and_paged(service: Service) -> None:
    items = service.read("/proposals", status="proposed", cluster="alpine")["items"]
    assert {one["action"] for one in items} == {"cordon"}
    assert service.read("/proposals", cluster="elsewhere")["items"] == []
    assert service.read("/cases", gpu=LAST_GPU_OF_SUSPECT)["items"]
    assert service.read("/cases", node="no-such-node")["items"] == []
