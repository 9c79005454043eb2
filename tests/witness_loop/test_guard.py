"""Does the guard check each step in order, stop at the first alarm and leave the state alone?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.witness_loop.jobs import Job
from witness.inject import Fault
from witness.simulate import fleet

LAYER = Fault.on(1, "0").multiply(1000.0)


def told(job: Job, alarm: dict[str, Any] | None) -> dict[str, Any]:
    """Sum up what one rank saw."""
    return {
        "alarm": alarm,
        "passed": {
            check: [args[1] for args, _ in job.reporter.told("passed") if args[0] == check]
            for check in ("nonfinite", "ring", "weights")
        },
        "replays": [args for args, _ in job.reporter.told("replays")],
        "alarms": [args[0] for args, _ in job.reporter.told("alarm")],
        "grads": job.grads(),
        "tags": job.guard.tags(),
    }


def scenarios() -> dict[str, Any]:
    found: dict[str, Any] = {}
    faults = {
        "none": [],
        "persistent": [LAYER.since(7)],
        "one shot": [LAYER.once(10)],
        "backward": [LAYER.in_weight_gradient().since(7)],
        "nan": [Fault.on(2, "3").nan().once(7)],
        "nan in backward": [Fault.on(2, "3").nan().in_weight_gradient().once(7)],
        "reduced": [Fault.on(1).nan().in_reduced().once(8)],
        "weights": [Fault.on(0, "3").flip(22).in_weights().once(10)],
    }
    for name, armed in faults.items():
        job = Job(*armed)
        found[name] = told(job, job.run())
        job.injector.disarm()
    return found


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    return fleet.run(3, 1, scenarios)


def seen(ranks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Give a scenario as rank 0 saw it; every rank must have seen the same alarm."""
    assert all(one[name]["alarm"] == ranks[0][name]["alarm"] for one in ranks)
    assert all(one[name]["tags"] == ranks[0][name]["tags"] for one in ranks)
    return ranks[0][name]


def test_a_clean_run_has_no_alarm_and_counts_every_pass(ranks: list[dict[str, Any]]) -> None:
    clean = seen(ranks, "none")
    assert clean["alarm"] is None
    assert clean["passed"] == {
        "nonfinite": list(range(1, 21)),
        "ring": [5, 10, 15, 20],
        "weights": [5, 10, 15, 20],
    }
    assert clean["tags"] == {"last_audit_pass": 20, "last_weight_check_pass": 20}
    assert clean["alarms"] == []


def test_a_persistent_fault_is_named_at_the_next_audit(ranks: list[dict[str, Any]]) -> None:
    alarm = seen(ranks, "persistent")["alarm"]
    assert alarm["check"] == "compute"
    assert alarm["step"] == 10
    assert alarm["mismatched_pairs"] == [[1, 0], [2, 1]]
    assert alarm["culprits"] == [1]
    assert alarm["verdicts"] == []
    assert alarm["suspect_window"] == [6, 10]
    assert alarm["last_audit_pass"] == 5
    assert alarm["update_applied"] is False
    assert alarm["world_size"] == 3
    assert alarm["kernel_mode"] == "deterministic"
    assert alarm["schedule"] == {
        "audit_every": 5, "check_every": 5, "ckpt_every": 10, "start_step": 0
    }  # fmt: skip
    assert seen(ranks, "backward")["alarm"]["culprits"] == [1]


def test_a_one_shot_fault_gets_a_verdict_in_place(ranks: list[dict[str, Any]]) -> None:
    alarm = seen(ranks, "one shot")["alarm"]
    assert alarm["verdicts"] == [{"pair": [1, 0], "third": 2, "suspect": 1, "kind": "transient"}]
    assert alarm["suspect_window"] == [6, 10]


def test_a_nan_is_named_on_its_own_step(ranks: list[dict[str, Any]]) -> None:
    alarm = seen(ranks, "nan")["alarm"]
    assert (alarm["step"], alarm["nonfinite"]) == (7, [2])
    assert alarm["verdicts"] == [{"pair": [2, 1], "third": 0, "suspect": 2, "kind": "transient"}]
    assert alarm["kernel_mode"] == "default"
    alone = seen(ranks, "nan in backward")["alarm"]
    assert (alone["nonfinite"], alone["mismatched_pairs"]) == ([2], [])
    assert alone["suspect_window"] == [6, 7]
    assert seen(ranks, "nan")["passed"]["nonfinite"] == [1, 2, 3, 4, 5, 6]


def test_a_nan_in_the_reduction_names_nobody(ranks: list[dict[str, Any]]) -> None:
    alarm = seen(ranks, "reduced")["alarm"]
    assert (alarm["check"], alarm["step"]) == ("reduced gradient", 8)
    assert alarm["suspect_window"] == [8, 8]
    assert "suspects" not in alarm
    assert seen(ranks, "reduced")["replays"] == []


def test_a_drifted_replica_is_named_after_the_update(ranks: list[dict[str, Any]]) -> None:
    alarm = seen(ranks, "weights")["alarm"]
    assert (alarm["check"], alarm["step"], alarm["suspects"]) == ("weights", 10, [0])
    assert alarm["suspect_window"] == [6, 10]
    assert alarm["update_applied"] is True


def test_every_alarm_drops_the_gradients_and_is_told_once(ranks: list[dict[str, Any]]) -> None:
    for name in set(ranks[0]) - {"none"}:
        for one in ranks:
            assert one[name]["grads"] == 0, name
            assert one[name]["alarms"] == [one[name]["alarm"]], name


def test_replays_count_how_often_the_suspect_is_wrong(ranks: list[dict[str, Any]]) -> None:
    assert seen(ranks, "persistent")["replays"] == [(10, 1, [2, 0], 4, 4)]
    assert seen(ranks, "one shot")["replays"] == [(10, 1, [2, 0], 4, 0)]
    assert seen(ranks, "nan in backward")["replays"] == [(7, 2, [0, 1], 4, 0)]


def stopped() -> dict[str, Any]:
    """Compare the state at an alarm with the state before that step, then try to go on."""
    job = Job(LAYER.since(7))
    job.run(range(1, 10))
    before = job.bits()
    alarm = job.step(10)
    untouched = before == job.bits()
    refused = ""
    try:
        job.step(11)
    except RuntimeError as error:
        refused = str(error)
    job.injector.disarm()
    job.guard.go_on(6)
    alarm_after = job.run(range(6, 12))
    return {
        "alarm": alarm,
        "untouched": untouched,
        "refused": refused,
        "after": alarm_after,
        "tags": job.guard.tags(),
    }


def test_after_an_alarm_the_state_is_untouched_and_steps_are_refused() -> None:
    for one in fleet.run(3, 1, stopped):
        assert one["alarm"]["culprits"] == [1]
        assert one["untouched"]
        assert "no further step is taken" in one["refused"]
        assert one["after"] is None
        assert one["tags"] == {"last_audit_pass": 10, "last_weight_check_pass": 10}
