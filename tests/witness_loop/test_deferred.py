"""Does a guard that lets the device decide name the same step, and leave the same state?"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.witness_loop.jobs import SCHEDULE, Job
from witness.ddp.deferred import CannotDeferError
from witness.inject import Fault
from witness.simulate import fleet

NAN = Fault.on(2, "3").nan()


def passed(job: Job, check: str) -> list[int]:
    return [args[1] for args, _ in job.reporter.told("passed") if args[0] == check]


def clean() -> dict[str, Any]:
    """Train with and without deferral from the same start."""
    job = Job(deferred=True)
    other = Job(deferred=True)
    other.guard._deferred = None
    alarms = [job.run(), other.run(), job.guard.finish(), other.guard.finish()]
    return {
        "alarms": alarms,
        "same": job.bits() == other.bits(),
        "passed": [passed(job, check) for check in ("nonfinite", "ring", "weights")],
        "tags": job.guard.tags(),
    }


def late(fault: Fault, steps: int) -> dict[str, Any]:
    """Find a NaN of step 7 at step 8, or at the end; give the state against that before step 7."""
    job = Job(fault, deferred=True)
    job.run(range(1, 7))
    before = job.bits()
    alarm = job.run(range(7, 7 + steps)) or job.guard.finish()
    untouched = before == job.bits()
    job.injector.disarm()
    job.guard.go_on(7)
    return {
        "alarm": alarm,
        "untouched": untouched,
        "grads": job.grads(),
        "replays": [args for args, _ in job.reporter.told("replays")],
        "passed": passed(job, "nonfinite"),
        "after": job.run(range(7, 12)),
    }


def refused() -> list[str]:
    said = []
    plain = Job()
    for optimizer, scaler in (
        (plain.optimizer, None),
        (Job(deferred=True).optimizer, torch.amp.GradScaler("cpu")),
    ):
        update = plain.guard._update.__class__(optimizer, [], None, scaler)
        with pytest.raises(CannotDeferError) as error:
            update.deferred()
        said.append(str(error.value))
    return said


def everything() -> dict[str, Any]:
    return {
        "clean": clean(),
        "forward": late(NAN.once(7), 5),
        "backward": late(NAN.in_weight_gradient().once(7), 1),
        "reduced": late(Fault.on(1).nan().in_reduced().once(7), 5),
        "refused": refused(),
    }


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    ranks = fleet.run(3, 1, everything)
    assert ranks[0] == ranks[1] == ranks[2]
    return ranks[0]


def test_a_clean_run_takes_the_same_steps_and_counts_the_same_passes(seen: dict[str, Any]) -> None:
    found = seen["clean"]
    assert found["alarms"] == [None] * 4
    assert found["same"]
    assert found["passed"] == [list(range(1, 21)), [5, 10, 15, 20], [5, 10, 15, 20]]
    assert found["tags"] == {"last_audit_pass": 20, "last_weight_check_pass": 20}


def test_a_nan_is_named_a_step_later_with_its_own_step(seen: dict[str, Any]) -> None:
    found = seen["forward"]
    assert (found["alarm"]["step"], found["alarm"]["nonfinite"]) == (7, [2])
    assert found["alarm"]["suspect_window"] == [6, 7]
    assert found["alarm"]["update_applied"] is False
    verdict = {"pair": [2, 1], "third": 0, "suspect": 2, "kind": "transient"}
    assert found["alarm"]["verdicts"] == [verdict]
    assert found["replays"] == [(7, 2, [0, 1], 4, 0)]
    reduced = seen["reduced"]["alarm"]
    assert (reduced["check"], reduced["step"]) == ("reduced gradient", 7)


def test_the_device_has_left_the_state_before_that_step_alone(seen: dict[str, Any]) -> None:
    for name in ("forward", "backward", "reduced"):
        assert seen[name]["untouched"], name
        assert seen[name]["grads"] == 0
        assert seen[name]["passed"] == [1, 2, 3, 4, 5, 6]
        assert seen[name]["after"] is None


def test_the_last_step_of_a_job_is_read_at_its_end(seen: dict[str, Any]) -> None:
    assert seen["backward"]["alarm"]["step"] == 7
    assert seen["backward"]["alarm"]["nonfinite"] == [2]


def test_what_cannot_skip_on_the_device_is_refused(seen: dict[str, Any]) -> None:
    assert "fused=True" in seen["refused"][0]
    assert "gradient scaler" in seen["refused"][1]
    assert SCHEDULE.audit_every
