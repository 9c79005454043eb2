"""Does the page of an alarm say who, since when, how sure, what to do and what waiting costs?"""

from __future__ import annotations

import json
import re

import pytest

from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import House, words_of


def _whole(house: House) -> str:
    """Post a whole run that ends in a culprit; give the alarm's id."""
    house.post(d.rank_map())
    house.post(d.passes("nonfinite", 0, 29, 30))
    house.post(d.passes("ring", 0, 20, 3))
    house.post(d.passes("weights", 0, 20, 3))
    house.post(d.checkpoints(0, 20))
    return house.post(d.alarm(d.CULPRIT))


def test_five_answers_of_a_culprit(house: House) -> None:
    text = house.text(_whole(house))
    assert f"GPU 5 of {d.node(13)} computed wrong, on its own work and on a peer’s" in text
    assert "Who GPU 5, rank 13" in text
    assert "Since when Step 21 to 30 ring last passed at step 20" in text
    assert "How sure Likely, P 0.82" in text
    assert "What to do Cordon now" in text
    assert "Resume from step 20 on other nodes" in text
    assert "What waiting costs 0.533 GPU-hours a minute 32 GPUs idle" in text
    assert "a step takes 0.25 s" in text


def test_the_button_leads_to_the_preview_of_the_proposal(quick: House) -> None:
    page = quick.page(_whole(quick))
    address = re.search(r'<a class="btn do" href="(/proposals/[0-9a-z]{13})">Preview cordon', page)
    assert address
    proposals = quick.get("/api/v1/proposals").json()["items"]
    cordon = [one["id"] for one in proposals if one["action"] == "cordon"]
    assert address.group(1) == f"/proposals/{cordon[0]}"


def test_machine_and_rows_and_document(house: House) -> None:
    alarm_id = _whole(house)
    page, text = house.page(alarm_id), house.text(alarm_id)
    machine = f"Rank 13 of 32 Pod train-worker-1 Node {d.node(13)} Instance"
    assert machine in text
    assert d.gpu(13) in text
    assert len(re.findall(r'<tr role="row" class="lit">', page)) == 1
    assert len(re.findall(r'<tr role="row" class="dim">', page)) == 8
    assert "R1 matches" in text
    assert "true: culprits is not empty: 13" in text
    assert "false: a verdict is persistent: no verdicts" in text
    assert "One code digest behind several devices: not sent" in text
    assert '"mismatched_pairs": [[13, 5], [21, 13]],' in text
    assert "DCGM not collected" in text


def test_resume_choices_with_what_they_cost(quick: House) -> None:
    text = quick.text(_whole(quick))
    assert "Step 20 default before the window s3://states/20" in text
    assert "Passed checks up to 20; this is a record, not a proof." in text
    assert "2 of 2 comparisons were wrong: that means 3 audits back" in text
    assert "The suspect's machine was in the job from its first known start" in text
    # 10 steps of 0.25 s on 32 GPUs.
    assert "10 0.0222" in text


def test_no_page_calls_anything_healthy_but_in_doubt(quick: House) -> None:
    text = quick.text(_whole(quick)).lower()
    for word in ("is healthy", "innocent", "all clear", " clean ", " ok "):
        assert word not in text


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (d.verdict("persistent", 13), "computed wrong, and wrong again on the same work"),
        (d.verdict("transient", 13), "computed wrong once, and was right when it repeated"),
        (d.verdict("replayer computed wrong", 5), "computed wrong when it replayed a peer"),
        (d.verdict("unclear", 13), "and did not repeat its own answer"),
        (d.verdict("unattributable", None), "Three GPUs computed the same work and do not agree"),
        (d.compute(nonfinite=[13]), "made NaN or Inf in its own gradient"),
        (d.weights(suspects=[7]), "holds other weights than the strict majority"),
        (d.weights(suspects=None), "no strict majority says which is wrong"),
        (d.weights(suspects=[]), "names nobody"),
        (d.weights(), "incomplete"),
        (
            {"check": "reduced gradient", "step": 30, "suspect_window": [30, 30]},
            "NaN or Inf after the all-reduce; no rank is named",
        ),
        ({"check": "optimizer state", "step": 30}, "is not known here"),
    ],
)
def test_every_verdict_has_its_title(quick: House, said: dict[str, object], title: str) -> None:
    quick.post(d.rank_map())
    page = quick.page(quick.post(d.alarm(said)))
    heading = re.search(r"<h1>.*?</h1>", page, re.DOTALL)
    assert heading
    assert title in words_of(heading.group())


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("persistent", "sided with rank 5, and rank 13 gave its own wrong answer again"),
        ("transient", "sided with rank 5; computing again, rank 13 got their answer as well"),
        ("replayer computed wrong", "sided with rank 13: it was rank 5, replaying"),
        ("unattributable", "agreed with neither: nobody can be named"),
    ],
)
def test_what_the_third_rank_said(quick: House, kind: str, says: str) -> None:
    suspect = {"replayer computed wrong": 5, "unattributable": None}.get(kind, 13)
    quick.post(d.rank_map())
    text = quick.text(quick.post(d.alarm(d.verdict(kind, suspect))))
    assert f"3: rank 21 replayed the work of rank 13 as a third and {says}" in text


def test_who_is_involved_where_nobody_is_named(quick: House) -> None:
    quick.post(d.rank_map())
    text = quick.text(quick.post(d.alarm(d.verdict("unattributable", None))))
    assert "involved: rank 13, rank 5, rank 21" in text
    assert "Involved in a comparison that names nobody" in text
    for rank in (5, 13, 21):
        assert f"{rank} {d.node(rank)}" in text
    every = quick.post(d.alarm({"check": "weights", "step": 31, "suspects": None}))
    text = quick.text(every)
    assert "Nobody is named, so every node of the job is involved: 4 known nodes." in text
    for rank in (0, 8, 16, 24):
        assert d.node(rank) in text
    rows = quick.person.get(f"/alarms/{every}/nodes.csv").text.splitlines()
    assert len(rows) == 5


def test_without_a_map_nothing_is_made_up(house: House) -> None:
    alarm_id = house.post(d.alarm(d.CULPRIT))
    page, text = house.page(alarm_id), house.text(alarm_id)
    assert "no rank map yet" in text
    assert "Node not known Instance not known GPU not known" in text
    assert "neither a rank map nor the alarm says how many GPUs the job has" in text
    assert "How sure Not scored" in text
    assert "No checkpoint of this job is known." in text
    assert 'class="btn' not in page.split("</dl>")[0].split('class="facts')[1]
    house.post(d.rank_map())
    later = house.text(alarm_id)
    assert f"GPU 5 of {d.node(13)}" in later
    assert "resolved later" in later


def test_two_maps_that_disagree_are_both_shown(quick: House) -> None:
    quick.post(d.rank_map())
    alarm_id = quick.post(d.alarm(d.CULPRIT))
    quick.post(d.rank_map(shift=100))
    text = quick.text(alarm_id)
    assert "two maps of attempt 1 disagree" in text
    assert d.node(13) in text
    assert d.node(13, shift=100) in text
    assert "Preview cordon" not in text


def test_an_alarm_without_attempt_is_placed_by_time(quick: House) -> None:
    quick.post(d.rank_map())
    text = quick.text(quick.post(d.alarm(d.CULPRIT, attempt=None)))
    assert "inferred by time" in text
    assert d.node(13) in text


def test_several_culprits_and_what_explains_them(quick: House) -> None:
    quick.post(d.rank_map(40))
    said = d.compute(mismatched_pairs=[[13, 5], [21, 13], [29, 21]], culprits=[13, 21])
    text = quick.text(quick.post(d.alarm(said)))
    assert "Ranks 13 and 21 computed wrong, each on its own work and on a peer’s" in text
    assert "More than one fault in this ring" in text
    for pair in ("5 and 21", "13 and 21", "13 and 29"):
        assert f"Ranks {pair} together" in text
    assert "An audit with peer offset" in text


def test_audits_that_the_job_made_at_once_settle_two_faults(quick: House) -> None:
    quick.post(d.rank_map(40))
    pairs = [[13, 5], [21, 13], [29, 21]]
    said = d.compute(mismatched_pairs=pairs, culprits=[13, 21], world_size=40, peer_offset=8)
    at_16 = {"peer_offset": 16, "mismatched_pairs": [[13, 37], [29, 13], [21, 5], [37, 21]]}
    shown = quick.post(d.alarm({**said, "further_audits": [at_16]}))
    explained = quick.get(f"/api/v1/alarms/{shown}").json()["explanations"]
    assert [one["faulty"] for group in explained for one in group["sets"]] == [[13, 21]]
    assert "Solved over 2 audits of this attempt." in quick.text(shown)


def test_conflicting_alarms_lead_to_each_other(house: House) -> None:
    house.post(d.rank_map())
    one = house.post(d.alarm(d.CULPRIT))
    other = house.post(
        d.alarm(d.compute(mismatched_pairs=[[14, 6], [22, 14]], culprits=[14]), reporter=8)
    )
    assert f'href="/alarms/{other}"' in house.page(one)
    assert f'href="/alarms/{one}"' in house.page(other)
    assert "1 conflict" in house.text(one)


def test_reporters_are_counted_and_cut(house: House) -> None:
    house.post(d.rank_map(64))
    for rank in range(60):
        house.post(d.alarm(d.CULPRIT, reporter=rank))
    alarm_id = house.post(d.alarm(d.CULPRIT, reporter=3))
    text = house.text(alarm_id)
    assert "received 61 times from 60 ranks, one alarm" in text
    assert "And 10 more ranks." in text


def test_the_document_keeps_every_digit_and_nan(quick: House) -> None:
    body = json.dumps(d.alarm({**d.CULPRIT, "sums": [9007199254740993, 18446744073709551615]}))
    body = body.replace('"reporter_rank": 0', '"reporter_rank": 0, "loss": NaN, "x": 1.10')
    answer = quick.program.post("/api/v1/alarms", content=body)
    assert answer.status_code == 201
    alarm_id = answer.json()["id"]
    text = quick.text(alarm_id)
    for shown in ('"loss": NaN', '"x": 1.10', "[9007199254740993, 18446744073709551615]"):
        assert shown in text
    strict = quick.person.get(f"/alarms/{alarm_id}/document.json")
    read = json.loads(strict.text, parse_constant=pytest.fail)
    assert read["loss"] == "NaN"
    assert read["alarm"]["sums"] == ["9007199254740993", "18446744073709551615"]


def test_hundreds_of_named_ranks_are_cut_and_listed_whole(house: House) -> None:
    house.post(d.rank_map(1024))
    alarm_id = house.post(d.alarm(d.weights(suspects=list(range(100, 400)))))
    text = house.text(alarm_id)
    assert "300 ranks hold other weights than the strict majority" in text
    assert "And 275 more: all findings as CSV" in text
    rows = house.person.get(f"/alarms/{alarm_id}/findings.csv").text.splitlines()
    assert len(rows) == 301


def test_half_a_job_is_software_first(quick: House) -> None:
    quick.post(d.rank_map())
    text = quick.text(quick.post(d.alarm(d.weights(suspects=list(range(16))))))
    assert "16 ranks are named at once: look for a software cause first" in text
    assert "What to do Software first" in text


def test_two_nodes_cannot_tell(quick: House) -> None:
    quick.post(d.rank_map(16))
    said = d.compute(mismatched_pairs=[[13, 5], [5, 13]], culprits=[5, 13])
    text = quick.text(quick.post(d.alarm(said)))
    assert "this check cannot tell rank" in text
    assert "Preview replace" not in text


def test_an_example_is_called_one(quick: House) -> None:
    quick.post({**d.rank_map(), "labels": {"example": "true"}})
    alarm_id = quick.post({**d.alarm(d.CULPRIT), "labels": {"example": "true"}})
    assert "This is a recorded example" in quick.text(alarm_id)


def test_no_such_alarm(quick: House) -> None:
    for path in ("0000000000000", "nonsense", "../etc", "5gdswfhkghsx7/document.json"):
        assert quick.person.get(f"/alarms/{path}").status_code == 404


def test_a_stranger_is_sent_to_sign_in(quick: House) -> None:
    alarm_id = quick.post(d.alarm(d.CULPRIT))
    quick.person.http.cookies.clear()
    for path in ("", "/document.json", "/findings.csv"):
        answer = quick.person.get(f"/alarms/{alarm_id}{path}")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/sign-in")
