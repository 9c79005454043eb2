"""Is a checkpoint saved whole or not at all, and does every rank resume from the same safe one?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.witness_loop.jobs import SCHEDULE, Job, loss_of, rebuild
from witness.ddp.checkpoints import CheckpointError, Checkpoints
from witness.ddp.loop import train
from witness.inject import Fault
from witness.report.hold import read_holds
from witness.report.resume_floor import ResumeFloor
from witness.simulate import fleet

LAYER = Fault.on(1, "0").multiply(1000.0)


def attempt(folder: Path, *faults: Fault, steps: int = 31) -> tuple[dict[str, Any] | None, int]:
    """Run a whole job the way a launcher starts it; give the alarm and where it began."""
    job = Job(*faults, checkpoints=folder)
    kept = Checkpoints(folder, reporter=job.reporter)
    path = kept.latest_safe()
    begin = 1
    if path is not None:
        saved = kept.load(path)
        job.model.module.load_state_dict(saved.state["model"])
        job.optimizer.load_state_dict(saved.state["optimizer"])
        begin = saved.step + 1
        job.guard.go_on(begin)

    def save(step: int, tags: dict[str, int | None]) -> None:
        state = {"model": job.model.module.state_dict(), "optimizer": job.optimizer.state_dict()}
        kept.save(step, state, tags)

    batches = (rebuild(step, job.rank) for step in range(begin, steps))
    alarm = train(
        job.model,
        job.optimizer,
        job.injector.over(batches, begin),
        loss_of,
        rebuild,
        save,
        SCHEDULE,
        start_step=begin,
        guard=job.guard,
    )
    job.injector.disarm()
    return alarm, begin


def attempts(folder: Path) -> list[Any]:
    """Run the job until it has left an alarm's window behind, and once more."""
    first = attempt(folder, LAYER.since(12))
    dist.barrier()
    held = [(one.first, one.last) for one in read_holds(folder)]
    dist.barrier()
    second = attempt(folder, LAYER.since(23), steps=31)
    third = attempt(folder, steps=31)
    dist.barrier()
    fourth = attempt(folder, steps=41)
    return [first, held, second, third, fourth, sorted(Checkpoints(folder).steps())]


def test_restarts_resume_before_every_window_until_one_is_left_behind(tmp_path: Path) -> None:
    ranks = fleet.run(3, 1, attempts, tmp_path)
    assert ranks[0] == ranks[1] == ranks[2]
    (alarm, begin), held, second, third, fourth, steps = ranks[0]
    assert begin == 1
    assert (alarm["step"], alarm["suspect_window"]) == (15, [11, 15])
    assert held == [(11, 15)]
    # The second goes back before the window, gets beyond it, and finds a fault of its own.
    assert second[1] == 11
    assert second[0]["suspect_window"] == [21, 25]
    assert third == (None, 21)
    assert fourth == (None, 31)
    assert steps == [10, 20, 30, 40]


def save_and_load(folder: Path) -> dict[str, Any]:
    kept = Checkpoints(folder)
    nothing = kept.latest_safe()
    state = {"weights": torch.arange(3.0), "nested": {"list": [1, "two"]}}
    path = kept.save(7, state, {"last_audit_pass": 5, "last_weight_check_pass": None})
    saved = kept.load(path)
    same = torch.equal(saved.state["weights"], state["weights"])  # type: ignore[arg-type]
    before = path.read_bytes()
    with pytest.raises(CheckpointError) as failed:
        kept.save(7, {"bad": _Unsaved()}, {})
    untouched = path.read_bytes() == before
    dist.barrier()
    if dist.get_rank() == 0:
        (folder / "SDC_HOLD.d").mkdir()
        (folder / "SDC_HOLD.d" / "hold-0.json").write_text("{")
    dist.barrier()
    with pytest.raises(CheckpointError) as unreadable:
        kept.latest_safe()
    return {
        "nothing": nothing,
        "saved": (saved.step, saved.tags, saved.state["nested"], same),
        "failed": str(failed.value),
        "untouched": untouched,
        "unreadable": str(unreadable.value),
        "names": sorted(one.name for one in folder.iterdir()),
    }


class _Unsaved:
    def __reduce__(self) -> Any:
        raise ValueError("this cannot be saved")


def test_a_failed_save_fails_on_every_rank_and_leaves_the_old_file(tmp_path: Path) -> None:
    for one in fleet.run(3, 1, save_and_load, tmp_path):
        assert one["nothing"] is None
        tags = {"last_audit_pass": 5, "last_weight_check_pass": None}
        assert one["saved"] == (7, tags, {"list": [1, "two"]}, True)
        assert "this cannot be saved" in one["failed"]
        assert one["untouched"]
        assert "cannot be read" in one["unreadable"]
        assert one["names"] == ["SDC_HOLD.d", "step-00000007.pt"]


class _Service:
    """A reporter whose service forbids what lies above step 12, or cannot be asked."""

    envelope = None

    def __init__(self, known: bool) -> None:
        self.known = known

    def resume_floor(self) -> ResumeFloor:
        return ResumeFloor(self.known, 12 if self.known else None, "said so")


def ask_the_service(folder: Path) -> list[str]:
    kept = Checkpoints(folder)
    for step in (10, 20):
        kept.save(step, {}, {})
    asked = [Checkpoints(folder, reporter=_Service(known)) for known in (True, False)]
    chosen = [kept.latest_safe(), *(one.latest_safe() for one in asked)]
    return [path.name for path in chosen if path is not None]


def test_the_floor_of_the_service_counts_where_it_is_known(tmp_path: Path) -> None:
    for names in fleet.run(3, 1, ask_the_service, tmp_path):
        assert names == [f"step-{step:08d}.pt" for step in (20, 10, 20)]


def alarm_without_a_place_to_hold(folder: Path) -> dict[str, Any] | None:
    blocked = folder / "a file"
    blocked.touch()
    return Job(LAYER.since(3), checkpoints=blocked).run()


def test_a_marker_that_cannot_be_left_costs_no_alarm(tmp_path: Path) -> None:
    for alarm in fleet.run(3, 1, alarm_without_a_place_to_hold, tmp_path):
        assert alarm["culprits"] == [1]
