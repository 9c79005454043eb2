"""Are suspects tried again beside honest witnesses, together, and within their time?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from tests.witness_loop.jobs import Job, rebuild
from witness.ddp.after_alarm import AfterAlarm, Trial, trials
from witness.inject import Fault
from witness.report.hold import read_holds
from witness.simulate import fleet

LAYER = Fault.on(1, "0").multiply(1000.0)


def rows(nodes: int, per_node: int) -> list[dict[str, Any]]:
    ranks = range(nodes * per_node)
    return [{"rank": rank, "node": f"node-{rank // per_node}"} for rank in ranks]


def alarm(culprits: Sequence[int] = (), verdicts: Sequence[Any] = ()) -> dict[str, Any]:
    return {"check": "compute", "culprits": culprits, "verdicts": verdicts, "peer_offset": 8}


def test_witnesses_are_the_next_ranks_along_the_ring() -> None:
    assert trials(alarm([13]), rows(4, 8), 4) == [Trial(13, 13, (21, 29))]
    assert trials(alarm([29]), rows(4, 8), 4) == [Trial(29, 29, (5, 13))]


def test_a_suspect_is_no_witness_and_witnesses_sit_on_nodes_of_their_own() -> None:
    assert trials(alarm([13, 21]), rows(4, 8), 4) == [
        Trial(13, 13, (29, 5)), Trial(21, 21, (29, 5))
    ]  # fmt: skip
    close = rows(4, 8)
    close[29]["node"] = "node-2"
    assert trials(alarm([13]), close, 4) == [Trial(13, 13, (21, 5))]


def test_a_replayer_is_tried_on_the_micro_batch_that_it_got_wrong() -> None:
    wrong = {"pair": [13, 5], "third": 21, "suspect": 5, "kind": "replayer computed wrong"}
    assert trials(alarm(verdicts=[wrong]), rows(3, 8), 4) == [Trial(5, 13, (13, 21))]


def test_without_two_witnesses_nobody_is_tried_and_more_suspects_than_asked_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert trials(alarm([0, 1]), rows(3, 1), 4) == []
    assert "rank 0 is not tried again" in caplog.text
    assert [one.suspect for one in trials(alarm([1, 2, 3]), rows(4, 8), 2)] == [1, 2]
    assert "3 suspects; only the first 2 are tried again" in caplog.text


def test_nobody_is_tried_where_the_work_is_not_what_went_wrong() -> None:
    unattributable = {"pair": [13, 5], "third": 21, "suspect": None, "kind": "unattributable"}
    assert trials(alarm(verdicts=[unattributable]), rows(4, 8), 4) == []
    assert trials({"check": "weights", "suspects": [3]}, rows(4, 8), 4) == []
    assert trials({"check": "reduced gradient"}, rows(4, 8), 4) == []


def counts(job: Job) -> list[tuple[int, int]]:
    job.run()
    job.injector.disarm()
    return [args[3:] for args, _ in job.reporter.told("replays")]


def buffers_of_ones_own(fault: Fault) -> list[tuple[int, int]]:
    """Let each rank begin with other buffers, on which its loss depends."""
    job = Job(fault)
    job.model.broadcast_buffers = False
    norm = job.model.module[1]
    norm.eval()
    norm.running_mean.fill_(float(job.rank))
    return counts(job)


def slow_on_one_rank() -> tuple[list[tuple[int, int]], float]:
    """Let one rank's replays take half a second, with room for about three of them."""
    job = Job(LAYER.since(7), after_alarm=AfterAlarm(replays=50, limit_s=2.0))
    job.run(range(1, 10))

    def slow(step: int, rank: int) -> Tensor:
        if job.rank == 2:
            time.sleep(0.5)
        return rebuild(step, rank)

    job.guard.work.rebuild = slow
    began = time.monotonic()
    found = counts_from(job, 10)
    return found, time.monotonic() - began


def counts_from(job: Job, step: int) -> list[tuple[int, int]]:
    job.step(step)
    job.injector.disarm()
    return [args[3:] for args, _ in job.reporter.told("replays")]


def failing_on_a_witness() -> list[tuple[int, int]]:
    """Let a witness fail from its third replay on: the rounds before it count."""
    job = Job(LAYER.since(7), after_alarm=AfterAlarm(replays=50))
    job.run(range(1, 10))
    asked = 0

    def failing(step: int, rank: int) -> Tensor:
        nonlocal asked
        asked += 1
        if job.rank == 2 and asked > 3:
            raise OSError("no data")
        return rebuild(step, rank)

    job.guard.work.rebuild = failing
    return counts_from(job, 10)


def contradicting() -> list[tuple[int, int]]:
    """Let a witness give another answer each time."""
    job = Job(LAYER.since(7))
    job.run(range(1, 10))
    asked = 0

    def differing(step: int, rank: int) -> Tensor:
        nonlocal asked
        asked += 1
        return rebuild(step, rank) + (asked if job.rank == 2 and asked > 1 else 0)

    job.guard.work.rebuild = differing
    return counts_from(job, 10)


def everything() -> dict[str, Any]:
    return {
        "half": counts(Job(LAYER.since(7).sometimes(0.5), after_alarm=AfterAlarm())),
        "own buffers": buffers_of_ones_own(LAYER.since(7)),
        "own buffers, once": buffers_of_ones_own(LAYER.once(10)),
        "slow": slow_on_one_rank(),
        "failing": failing_on_a_witness(),
        "contradicting": contradicting(),
    }


@pytest.fixture(scope="module")
def seen() -> list[dict[str, Any]]:
    return fleet.run(3, 1, everything)


def test_an_intermittent_fault_is_counted_as_often_as_it_shows(seen: list[dict[str, Any]]) -> None:
    ((replays, wrong),) = seen[0]["half"]
    assert replays == 20
    assert 3 <= wrong <= 17


def test_every_trial_begins_with_the_buffers_of_its_step(seen: list[dict[str, Any]]) -> None:
    for one in seen:
        assert one["own buffers"] == [(4, 4)]
        assert one["own buffers, once"] == [(4, 0)]


def test_all_ranks_stop_together_before_the_time_is_up(seen: list[dict[str, Any]]) -> None:
    assert len({str(one["slow"][0]) for one in seen}) == 1
    ((replays, wrong),), took = seen[0]["slow"]
    assert 1 <= replays <= 4
    assert wrong == replays
    assert took < 10


def test_a_witness_that_fails_ends_the_rounds_for_all(seen: list[dict[str, Any]]) -> None:
    assert [one["failing"] for one in seen] == [[(2, 2)]] * 3


def test_witnesses_that_contradict_each_other_count_for_nothing(seen: list[dict[str, Any]]) -> None:
    assert [one["contradicting"] for one in seen] == [[]] * 3


def test_a_group_without_a_nodes_first_rank_leaves_its_hold(tmp_path: Path) -> None:
    fleet.run(2, 2, stopped_in_a_group, tmp_path)
    (hold,) = read_holds(tmp_path)
    assert (hold.first, hold.last) == (3, 5)


def stopped_in_a_group(folder: Path) -> None:
    import torch.distributed as dist

    from witness.ddp.announcing import Announcer
    from witness.ddp.stopping import Stopping

    group: Any = dist.new_group([1])
    if dist.get_rank() == 1:
        alarm = {"check": "weights", "step": 5, "suspects": [1], "suspect_window": [3, 5]}
        work: Any = None
        Stopping(work, Announcer(None), [], group, folder, None).stop(alarm, False)
