"""Where may a job resume: in the answer of its alarm, and when it asks while restarting?"""

from __future__ import annotations

from typing import Any

from app.actions.adjudicate import adjudicate
from app.actions.decide import Decider
from app.store import ids
from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import House


def _floor(house: House, job: str = "train") -> dict[str, Any]:
    query = f"cluster=alpine&namespace=research&job={job}"
    floor: dict[str, Any] = house.get(f"/api/v1/resume-floor?{query}").json()
    return floor


def _saved(step: int, **more: Any) -> dict[str, Any]:
    return {"step": step, "uri": f"s3://states/{step}", "committed": True, "tags": None, **more}


def test_the_three_choices(house: House) -> None:
    house.post(d.rank_map(shift=500, attempt=1, clock="13:00:00"))
    house.post(d.passes("ring", 0, 9, 10, attempt=1, clock="13:10:00"))
    house.post(d.rank_map(attempt=2, clock="14:00:00"))
    house.post(d.passes("ring", 10, 20, 2, attempt=2))
    house.post(d.checkpoints(0, 5, 10, 20, attempt=2))
    read = house.read(house.post(d.alarm(d.CULPRIT, attempt=2)))
    assert [(one["choice"], one["step"]) for one in read["resume"]] == [
        ("before_window", 20),
        ("before_credible_window", 5),
        ("before_joining", 5),
    ]
    first = read["resume"][0]
    assert first["lost_steps"] == 10
    assert first["tags"] == "Passed checks up to 20; this is a record, not a proof."
    assert read["resume_reason"] is None


def test_replays_say_how_often_the_fault_shows(house: House) -> None:
    house.post(d.rank_map())
    said = {**d.verdict("transient", 13), "schedule": {"audit_every": 10, "start_step": 0}}
    house.post(d.checkpoints(0, 20, 200, 220))
    said |= {"step": 230, "suspect_window": [221, 230], "last_audit_pass": 220}
    alarm_id = house.post(d.alarm(said))
    before = house.read(alarm_id)
    # 0 of 1: 509 audits back, further than the job is long.
    assert [one["choice"] for one in before["resume"]] == ["before_window"]
    told = {one["choice"]: one["why"] for one in before["resume_missing"]}
    assert "past the first step" in told["before_credible_window"]
    house.post(
        {**d.envelope(), "rank": 13, "step": 230, "witnesses": [5, 21], "replays": 20, "wrong": 10}
    )
    after = house.read(alarm_id)
    # 10 of 20: 5 audits back, so from step 181 on.
    assert [(one["choice"], one["step"]) for one in after["resume"]] == [
        ("before_window", 220),
        ("before_credible_window", 20),
    ]
    assert "10 of 20 replays of step 230 were wrong" in house.text(alarm_id)


def test_unfinished_and_later_states_are_not_offered(house: House) -> None:
    house.post(d.rank_map())
    states = [_saved(0), _saved(100, committed=False), _saved(221), _saved(300, committed=False)]
    house.post({**d.envelope(), "checkpoints": states})
    said = d.compute(
        step=230, suspect_window=[221, 230], mismatched_pairs=[[13, 5], [21, 13]], culprits=[13]
    )
    alarm_id = house.post(d.alarm(said))
    read = house.read(alarm_id)
    assert [one["step"] for one in read["resume"]] == [0]
    assert read["resume"][0]["tags"].startswith("No tags")
    assert "1 checkpoint that must not be used" in house.text(alarm_id)


def test_no_state_at_all_is_said_with_its_reason(house: House) -> None:
    house.post(d.rank_map())
    read = house.read(house.post(d.alarm(d.CULPRIT)))
    assert read["resume"] == []
    assert read["resume_reason"] == "No checkpoint of this job is known."


def test_a_state_in_another_alarms_window_is_left_out(house: House) -> None:
    house.post(d.rank_map())
    house.post(d.checkpoints(10, 25))
    house.post(d.alarm(d.CULPRIT))  # holds 21 to 30
    later = {**d.CULPRIT, "step": 50, "suspect_window": [41, 50]}
    read = house.read(house.post(d.alarm(later, clock="14:30:00")))
    assert [one["step"] for one in read["resume"]] == [10]


def test_a_window_that_is_not_said_is_worked_out(house: House) -> None:
    house.post(d.rank_map())
    said = {**d.CULPRIT}
    del said["suspect_window"]
    alarm_id = house.post(d.alarm(said))
    read = house.read(alarm_id)
    assert (read["suspect_window"], read["suspect_window_derived"]) == ([21, 30], True)
    assert "worked out here, the alarm gives no window" in house.text(alarm_id)


def test_the_floor_of_an_unknown_job(house: House) -> None:
    answer = _floor(house, "nobody-knows-it")
    assert answer["highest_step"] is None
    assert answer["alarm"] is None
    assert answer["checkpoints"] == []


def test_the_floor_lies_before_the_open_window(house: House) -> None:
    house.post(d.rank_map())
    house.post(d.checkpoints(0, 20, 25))
    alarm_id = house.post(d.alarm(d.CULPRIT))
    answer = _floor(house)
    assert answer["highest_step"] == 20
    assert answer["window"] == [21, 30]
    assert answer["alarm"]["id"] == alarm_id
    assert answer["checkpoint"] == {"step": 20, "uri": "s3://states/20"}
    against = {one["step"]: one["against"] for one in answer["checkpoints"]}
    assert against[20] is None
    assert "inside the suspect window 21 to 30" in against[25]


def test_the_floor_is_left_behind_by_a_run_that_went_back(house: House) -> None:
    house.post(d.rank_map())
    house.post(d.checkpoints(0, 20, 25))
    house.post(d.alarm(d.CULPRIT))
    about: dict[str, Any] = {"attempt": 2, "clock": "15:00:00"}
    house.post(d.rank_map(shift=50, **about))
    house.post(d.passes("ring", 21, 40, 2, **about))
    assert _floor(house)["highest_step"] == 20  # nothing beyond the window is saved yet
    beyond = {**d.envelope(**about), "checkpoints": [_saved(40, uri="s3://second/40")]}
    house.post(beyond)
    answer = _floor(house)
    assert answer["highest_step"] is None
    assert answer["windows_left_behind"] == 1
    assert answer["checkpoint"]["uri"] == "s3://second/40"
    against = {one["uri"]: one["against"] for one in answer["checkpoints"]}
    assert against["s3://states/25"] is not None


def test_a_run_from_a_tainted_state_leaves_nothing_behind(house: House) -> None:
    house.post(d.rank_map())
    house.post(d.checkpoints(0, 20, 25))
    house.post(d.alarm(d.CULPRIT))
    about: dict[str, Any] = {"attempt": 2, "clock": "15:00:00"}
    house.post(d.rank_map(shift=50, **about))
    house.post(d.passes("ring", 26, 40, 2, **about))
    house.post({**d.envelope(**about), "checkpoints": [_saved(40, uri="s3://second/40")]})
    assert _floor(house)["highest_step"] == 20


WRONG = (
    ("cluster=alpine&namespace=research", "job"),
    ("cluster=alpine&job=train", "namespace"),
    ("cluster=alpine&namespace=research&job=", "job"),
    ("cluster=alpine&namespace=research&job=a%00", "job"),
    ("cluster=alpine&namespace=research&job=a&job=b", "job"),
    ("cluster=alpine&namespace=research&job=a&step=3", "step"),
)


def test_the_floor_names_what_is_wrong(quick: House) -> None:
    for query, field in WRONG:
        answer = quick.program.get(f"/api/v1/resume-floor?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"]["field"] == field


def test_a_case_judged_as_software_lifts_the_limit(house: House) -> None:
    house.post(d.rank_map())
    house.post(d.checkpoints(0, 20, 25))
    alarm_id = house.post(d.alarm(d.CULPRIT))
    case_id = ids.read(house.read(alarm_id)["findings"][0]["case"])
    judge = Decider("T. Reyes", "operator")
    adjudicate(house.context, case_id, judge, "open", "hardware confirmed", "it failed a test")
    assert _floor(house)["highest_step"] == 20  # the states stay wrong, whatever was at fault
    adjudicate(house.context, case_id, judge, "hardware confirmed", "software", "it was the build")
    assert _floor(house)["highest_step"] is None
