"""Does the page of a job show its attempts, maps, coverage and checkpoints as they are?"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from tests.cases.conftest import documents
from tests.pages_alarm.documents import alarm, checkpoints, envelope, passes, rank_map
from tests.pages_offenders.house import House

RING = {
    "check": "compute",
    "step": 30,
    "mismatched_pairs": [[13, 5], [21, 13]],
    "culprits": [13],
    "suspect_window": [21, 30],
    "last_audit_pass": 20,
    "last_weight_check_pass": 20,
}


def text_of(page: str) -> str:
    """Strip the markup of a page, so that a sentence can be looked for."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def page_of(house: House, job: str, query: str = "") -> str:
    """Open a job's page as somebody who may only look."""
    answer = house.sign_in("viewer").get(f"/jobs/{house.job_id(job)}{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_job_without_numbers_shows_its_starts_apart(house: House) -> None:
    house.post(*documents("20", "events.ndjson"))
    page = text_of(page_of(house, "llama-953m"))
    assert "no number, start 1" in page
    assert "no number, start 2" in page
    assert "overlaps" not in page
    read = house.read(f"jobs/{house.job_id('llama-953m')}")
    newest, oldest = read["attempts"]
    assert (newest["start"], newest["world_size"], newest["stopped_at"]) == (
        2,
        24,
        "2026-03-02T12:10:00Z",
    )
    assert (oldest["start"], oldest["started_at"]) == (1, "2026-03-02T10:00:00Z")
    assert [one["step"] for one in read["recent_alarms"]] == [10, 30]


def test_two_starts_at_once_are_shown_as_overlapping(house: House) -> None:
    house.post(rank_map(attempt=1, clock="14:00:00"), passes("ring", 0, 9, 2, clock="14:10:00"))
    house.post(rank_map(attempt=2, clock="14:05:00", shift=9))
    house.post(passes("ring", 0, 9, 2, attempt=2, clock="14:12:00"))
    page = text_of(page_of(house, "train"))
    assert page.count("overlaps") == 2
    read = house.read(f"jobs/{house.job_id('train')}")["attempts"]
    assert [one["overlaps"] for one in read] == [[read[1]["id"]], [read[0]["id"]]]


def test_contradictory_maps_are_both_shown(house: House) -> None:
    house.post(rank_map(clock="14:00:00"), rank_map(clock="14:00:01", shift=40))
    page = page_of(house, "train")
    assert "This attempt posted another map that differs for 32 ranks" in text_of(page)
    assert "hyperpod-i-00000000000000000" in page
    assert "hyperpod-i-00000000000000028" in page
    (one,) = house.read(f"jobs/{house.job_id('train')}")["attempts"]
    assert one["rank_maps_contradict"] is True


def test_ranks_without_a_node_are_counted_and_not_made_a_machine(house: House) -> None:
    house.post(*documents("24", "rankmap.json", "alarm.json"))
    page = text_of(page_of(house, "llama-953m"))
    assert "24 of 32 ranks have no node" in page
    assert "no machine named" in page
    ranks = page_of(house, "llama-953m", "?map=ranks&find=13")
    assert "GPU-a0000002-1111-4222-8333-000000000005" in ranks
    assert ">None<" not in ranks


def big_map(ranks: int = 16_384) -> dict[str, Any]:
    """Place 16,384 ranks on 2,048 nodes."""
    rows = [
        {
            "rank": rank,
            "node": f"hyperpod-i-{rank // 8:017x}",
            "instance_id": f"i-{rank // 8:017x}",
            "gpu_uuid": f"GPU-{rank:08x}-0000-4000-8000-{rank:012x}",
        }
        for rank in range(ranks)
    ]
    return {**envelope("big-16k"), "world_size": ranks, "ranks": rows}


def test_a_map_of_16384_ranks_is_counted_searched_and_paged(one_house: House) -> None:
    one_house.post(big_map())
    page = page_of(one_house, "big-16k")
    assert len(page) < 120_000
    assert "16,384 ranks on 2,048 known nodes" in text_of(page)
    assert "2,048 machines, page 1 of 41" in text_of(page)
    assert page.count('href="/nodes/') == 50
    last = text_of(page_of(one_house, "big-16k", "?map=ranks&page=328"))
    assert "page 328 of 328" in last
    assert "rank 16383" in last
    found = page_of(one_house, "big-16k", "?map=ranks&find=16383")
    assert "GPU-00003fff-0000-4000-8000-000000003fff" in found
    assert "1 rank with a rank that fits" not in text_of(found)
    assert "1 rank that fits, page 1 of 1" in text_of(found)
    by_gpu = page_of(one_house, "big-16k", "?find=GPU-00003ff8")
    assert "hyperpod-i-000000000000007ff" in by_gpu
    assert "1 machine" in text_of(by_gpu)
    assert "Nothing in this map fits" in page_of(one_house, "big-16k", "?find=elsewhere")
    began = time.perf_counter()
    page_of(one_house, "big-16k", "?map=ranks&page=300")
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "query",
    [
        "?page=0",
        "?page=x",
        "?map=pods",
        "?attempts=-1",
        "?attempt=nonsense",
        "?attempt=0000000000000",
    ],
)
def test_wrong_addresses_are_refused(one_house: House, query: str) -> None:
    one_house.post(rank_map())
    answer = one_house.sign_in("viewer").get(f"/jobs/{one_house.job_id('train')}{query}")
    assert answer.status_code in (400, 404, 422)


def test_unknown_jobs_are_404(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    for address in ("/jobs/0000000000000", "/jobs/x"):
        assert browser.get(address).status_code == 404
    assert one_house.ask("jobs/0000000000000").status_code == 404


def trust(house: House, job: str) -> dict[int, str]:
    """Read the trust of each checkpoint by its step."""
    read = house.read(f"jobs/{house.job_id(job)}")
    return {one["step"]: one["trust"] for one in read["checkpoints"]}


def test_checkpoints_carry_their_trust_and_the_floor(house: House) -> None:
    house.post(*documents("63", "rankmap.json", "alarm.json", "checkpoints.json"))
    states = trust(house, "llama-953m")
    assert states == {
        300: "candidate",
        221: "tainted",
        220: "candidate",
        200: "candidate",
        100: "candidate",
        0: "candidate",
    }
    read = house.read(f"jobs/{house.job_id('llama-953m')}")
    assert read["resume_floor"]["highest_step"] == 220
    assert read["resume_floor"]["checkpoint"]["step"] == 220
    page = page_of(house, "llama-953m")
    assert "step 220 or earlier" in text_of(page)
    row = re.search(r"<b>220</b>.*?</tr>", page, re.DOTALL)
    assert row
    assert "resume here" in row.group(0)
    assert "no, left unfinished" in text_of(page)
    assert "no tags" in text_of(page)
    for word in ("healthy", ">clean<", "innocent", ">OK<", ">safe<"):
        assert word not in page


def test_a_checkpoint_is_verified_once_both_checks_passed_later(house: House) -> None:
    house.post(rank_map(), checkpoints(20, 40))
    house.post(passes("ring", 0, 30, 4, clock="14:00:08"))
    assert trust(house, "train") == {20: "candidate", 40: "candidate"}
    house.post(passes("weights", 0, 30, 4, clock="14:00:09"))
    assert trust(house, "train") == {20: "verified", 40: "candidate"}
    house.post(alarm({**RING, "step": 20, "suspect_window": [11, 20], "last_audit_pass": 10}))
    assert trust(house, "train") == {20: "tainted", 40: "candidate"}


def test_coverage_says_what_the_passes_prove(house: House) -> None:
    house.post(rank_map(), passes("ring", 0, 90, 10, clock="14:10:00"))
    house.post(passes("nonfinite", 0, 99, 100, clock="14:10:00"))
    read = {one["check"]: one for one in house.read(f"jobs/{house.job_id('train')}")["coverage"]}
    assert (read["ring"]["count"], read["ring"]["gpu_audits"]) == (10, 320)
    assert read["ring"]["false_alarm_bound"] == pytest.approx(3 / 320)
    assert (read["nonfinite"]["first_step"], read["nonfinite"]["last_step"]) == (0, 99)
    page = text_of(page_of(house, "train"))
    assert f"at most {3 / 320:.3g} false accusations a GPU-audit" in page
    assert "weights: passes in 0 hours, work without one in 1" in page


def test_a_job_that_should_be_checked_and_is_silent_is_marked(house: House) -> None:
    now = house.context.now()
    at = {"time": now.strftime("%Y-%m-%dT10:00:00Z")}
    house.post({**rank_map(), **at}, {**passes("ring", 0, 9, 2), **at})
    assert "Silent: passes stopped" in text_of(page_of(house, "train"))
    (one,) = house.read("jobs?status=silent")["items"]
    assert (one["job"], one["silent"]) == ("train", True)
    house.post({**passes("ring", 10, 19, 2), "time": now.strftime("%Y-%m-%dT11:55:00Z")})
    assert house.read("jobs?status=silent")["items"] == []
    assert "Silent:" not in text_of(page_of(house, "train"))


def test_a_job_stopped_at_its_alarm_is_not_silent(house: House) -> None:
    now = house.context.now()
    at = {"time": now.strftime("%Y-%m-%dT10:00:00Z")}
    house.post({**rank_map(), **at}, {**alarm(RING), **at})
    assert house.read("jobs?status=silent")["items"] == []
    assert "Stopped at an alarm" in text_of(page_of(house, "train"))


def test_recorded_examples_are_marked(house: House) -> None:
    house.post({**rank_map(), "labels": {"example": "true"}})
    assert "recorded example" in page_of(house, "train")
    browser = house.sign_in("viewer")
    assert "recorded example" in browser.get("/jobs").text
    assert len(house.read("jobs?status=example")["items"]) == 1


def test_notes_are_kept_with_author_and_time(house: House) -> None:
    house.post(rank_map())
    job = house.job_id("train")
    browser = house.sign_in("operator", "Kim")
    answer = browser.post(f"/jobs/{job}/notes", {"text": "Moved to <b>other</b> racks."})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    page = browser.get(f"/jobs/{job}").text
    assert "Moved to &lt;b&gt;other&lt;/b&gt; racks." in page
    assert "Note added by Kim at 12:00 UTC" in page
    assert browser.post(f"/jobs/{job}/notes", {"text": "  "}).status_code == 422
    assert browser.post("/jobs/0000000000000/notes", {"text": "x"}).status_code == 404
    assert browser.get(f"/jobs/{job}/notes").status_code == 405
    viewer = house.sign_in("viewer")
    assert viewer.post(f"/jobs/{job}/notes", {"text": "x"}).status_code == 403
    assert "Add note" not in viewer.get(f"/jobs/{job}").text
    refused = browser.http.post(f"/jobs/{job}/notes", data={"text": "x"})
    assert refused.status_code == 403


def test_elastic_events_and_replays_are_listed(house: House) -> None:
    house.post(rank_map(), alarm(RING))
    house.post({**envelope(), "event": "slice_down", "slice": 2, "step": 40, "error": "<x>"})
    house.post(
        {**envelope(), "rank": 13, "step": 30, "witnesses": [21, 5], "replays": 20, "wrong": 7}
    )
    page = page_of(house, "train")
    assert "slice down" in page
    assert "7 of 20 wrong" in page
    assert "&lt;x&gt;" in page
    read = house.read(f"jobs/{house.job_id('train')}")
    assert json.dumps(read["replays"][0]["wrong"]) == "7"
    assert read["elastic_events"][0]["slice"] == 2
