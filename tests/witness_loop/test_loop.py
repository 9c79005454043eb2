"""Does the whole loop keep the order of the checks, and end the way a launcher understands?"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.witness_loop.jobs import SCHEDULE, Job, loss_of, rebuild
from witness.ddp import EXIT_CODE, SilentCorruption, exit_on_alarm
from witness.ddp.alarms import in_words, named
from witness.ddp.loop import train
from witness.inject import Fault
from witness.simulate import fleet

ALARM = {
    "check": "compute",
    "step": 30,
    "nonfinite": [],
    "mismatched_pairs": [[13, 5]],
    "culprits": [],
    "verdicts": [{"pair": [13, 5], "third": 21, "suspect": 13, "kind": "transient"}],
    "suspect_window": [21, 30],
    "update_applied": False,
}


def loop(*faults: Fault, start_step: int = 1, steps: int = 11) -> tuple[Any, list[Any]]:
    """Train, and note everything that happens in its order."""
    job = Job(*faults, start_step=start_step)
    events: list[Any] = []

    def tell(name: str, args: tuple[Any, ...]) -> None:
        if name == "passed":
            events.append((args[1], args[0]))
        elif name in ("alarm", "checkpoint"):
            events.append((args[0]["step"] if name == "alarm" else args[0], name))

    job.reporter.calls = _Told(tell)
    job.optimizer.register_step_pre_hook(lambda *_: events.append((job.guard.step, "optimizer")))

    def save(step: int, tags: dict[str, int | None]) -> str:
        events.append((step, "save", tags["last_audit_pass"], tags["last_weight_check_pass"]))
        return f"file:///step-{step}"

    def after(step: int, loss: torch.Tensor) -> None:
        assert not loss.requires_grad
        events.append((step, "on_step"))

    batches = (rebuild(step, job.rank) for step in range(start_step, steps))
    alarm = train(
        job.model,
        job.optimizer,
        job.injector.over(batches, start_step),
        loss_of,
        rebuild,
        save,
        SCHEDULE,
        start_step=start_step,
        guard=job.guard,
        on_step=after,
    )
    job.injector.disarm()
    return alarm, events


class _Told(list[Any]):
    """Hands on what a recorder would keep."""

    def __init__(self, tell: Any) -> None:
        super().__init__()
        self._tell = tell

    def append(self, call: Any) -> None:
        super().append(call)
        self._tell(call[0], call[1])


def everything() -> dict[str, Any]:
    return {
        "clean": loop(),
        "ring": loop(Fault.on(1, "0").multiply(1000.0).once(10)),
        "weights": loop(Fault.on(1, "0").flip(22).in_weights().once(10)),
        "resumed": loop(start_step=9, steps=10),
    }


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    ranks = fleet.run(3, 1, everything)
    assert ranks[0] == ranks[1] == ranks[2]
    return ranks[0]


def of(seen: dict[str, Any], name: str, step: int) -> list[Any]:
    return [rest for at, *rest in seen[name][1] if at == step]


def test_everything_on_one_step_comes_in_its_order(seen: dict[str, Any]) -> None:
    assert seen["clean"][0] is None
    assert of(seen, "clean", 9) == [["nonfinite"], ["optimizer"], ["on_step"]]
    assert of(seen, "clean", 10) == [
        ["nonfinite"],
        ["ring"],
        ["optimizer"],
        ["weights"],
        ["on_step"],
        ["save", 10, 10],
        ["checkpoint"],
    ]


def test_an_alarm_before_the_update_leaves_out_all_that_follows(seen: dict[str, Any]) -> None:
    assert seen["ring"][0]["check"] == "compute"
    assert of(seen, "ring", 10) == [["nonfinite"], ["alarm"]]


def test_an_alarm_of_the_weights_leaves_out_the_checkpoint(seen: dict[str, Any]) -> None:
    assert seen["weights"][0]["suspects"] == [1]
    assert of(seen, "weights", 10) == [["nonfinite"], ["ring"], ["optimizer"], ["alarm"]]


def test_a_resumed_loop_compares_the_replicas_first(seen: dict[str, Any]) -> None:
    assert seen["resumed"][1][0] == (9, "weights")


def test_an_alarm_that_is_raised_ends_the_process_with_its_own_code() -> None:
    with pytest.raises(SystemExit) as left, exit_on_alarm():
        raise SilentCorruption(ALARM)
    assert left.value.code == EXIT_CODE == 3
    with pytest.raises(ValueError, match="another"), exit_on_alarm():
        raise ValueError("another error")


def test_an_alarm_reads_as_sentences() -> None:
    assert named(ALARM) == [13]
    assert in_words(ALARM) == (
        "Silent data corruption: the check of each rank's computation fired at step 30 and names "
        "rank 13. The step was not applied. Suspect: steps 21–30; resume from a checkpoint saved "
        "before step 21."
    )
    weights = {"check": "weights", "step": 8, "suspects": None, "suspect_window": [8, 8]}
    assert "names nobody. The step was already applied" in in_words(
        {**weights, "update_applied": True}
    )
