"""Do accumulation, a scaler, the placement, a broken reporter and a dying rank do what is said?"""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from tests.witness_loop.jobs import Broken, Job, loss_of, rebuild
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.alarms import SilentCorruption
from witness.ddp.placement import PlacementError
from witness.ddp.schedule import Schedule
from witness.inject import Fault
from witness.simulate import fleet

EVERY = Schedule(audit_every=1, check_every=1, peer_offset=1)
LAYER = Fault.on(1, "0").multiply(1000.0)


def parts(step: int, rank: int) -> list[Tensor]:
    return [rebuild(10 * step + part, rank) for part in range(3)]


def third_of_loss(model: Any, batch: Tensor) -> Tensor:
    return loss_of(model, batch) / 3


def half_loss_of(model: Any, batch: Tensor) -> Tensor:
    loss: Tensor = model(batch).half().float().square().mean()
    return loss


def accumulate(*faults: Fault) -> dict[str, Any]:
    job = Job(
        *faults, schedule=EVERY, micro_batches=3, rebuild_batch=parts, compute_loss=third_of_loss
    )
    losses: list[Tensor] = []
    for step in range(1, 6):
        job.injector.begin(step)
        losses.clear()
        with job.guard.forward(step):
            for place, batch in enumerate(parts(step, job.rank)):
                with job.model.no_sync() if place < 2 else nullcontext():
                    losses.append(third_of_loss(job.model, batch))
                    losses[-1].backward()
        alarm = job.guard.update(*losses)
        if alarm is not None:
            return alarm
    with job.guard.forward(6):
        third_of_loss(job.model, parts(6, job.rank)[0]).backward()
    with pytest.raises(ValueError, match="each of the step's 3 micro-batches"):
        job.guard.update(losses[0])
    return {}


def scaled(*faults: Fault) -> dict[str, Any]:
    """Train with a scale under which the first gradients overflow half precision's range."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    job = Job(*faults, schedule=EVERY, scaler=scaler, compute_loss=half_loss_of)
    moved = []
    for step in range(1, 16):
        before = job.bits()
        job.injector.begin(step)
        with job.guard.forward(step):
            loss = half_loss_of(job.model, rebuild(step, job.rank))
            scaler.scale(loss).backward()
        alarm = job.guard.update(loss)
        if alarm is not None:
            return {"alarm": alarm}
        moved.append(before != job.bits())
    nonfinite = [args[1] for args, _ in job.reporter.told("passed") if args[0] == "nonfinite"]
    return {"alarm": None, "moved": moved, "passed": nonfinite}


def plain_and_guarded() -> bool:
    """Compare three guarded steps with the same steps without a guard, bit for bit.

    The guard's hook ends in DDP's own for the mean, which rounds unlike DDP without any hook.
    """
    job = Job(schedule=EVERY)
    torch.manual_seed(0)
    other = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 4))
    model = nn.parallel.DistributedDataParallel(other)
    model.register_comm_hook(None, allreduce_hook)
    optimizer = torch.optim.AdamW(other.parameters(), lr=1e-2)
    for step in range(1, 4):
        job.step(step)
        loss_of(model, rebuild(step, job.rank)).backward()
        nn.utils.clip_grad_norm_(other.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    mine, theirs = job.model.module.state_dict(), other.state_dict()
    return all(torch.equal(mine[name], theirs[name]) for name in theirs)


def raising() -> tuple[str, list[int]]:
    job = Job(LAYER.since(3), after_alarm=AfterAlarm(replays=0, raise_error=True))
    with pytest.raises(SilentCorruption) as raised:
        job.run()
    return str(raised.value), raised.value.alarm["culprits"]


def with_broken_reporter() -> dict[str, Any] | None:
    return Job(LAYER.since(3), reporter=Broken()).run()


def without_reporter() -> dict[str, Any] | None:
    return Job(LAYER.since(3), reporter=None).run()


def everything() -> dict[str, Any]:
    found = {
        "clean": accumulate(),
        "accumulated": accumulate(LAYER.once(3)),
        "scaled": scaled(),
        "scaled fault": scaled(LAYER.since(14)),
        "same": plain_and_guarded(),
        "raised": raising(),
        "broken": with_broken_reporter(),
        "none": without_reporter(),
    }
    with pytest.raises(TypeError, match="needs no closure"):
        Job().guard.__class__(
            nn.parallel.DistributedDataParallel(nn.Linear(2, 2)),
            torch.optim.LBFGS(nn.Linear(2, 2).parameters()),
            EVERY,
            loss_of,
            rebuild,
        )
    return found


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    ranks = fleet.run(3, 1, everything)
    assert ranks[0] == ranks[1] == ranks[2]
    return ranks[0]


def test_accumulated_micro_batches_are_replayed_as_one_step(seen: dict[str, Any]) -> None:
    assert seen["clean"] == {}
    assert seen["accumulated"]["verdicts"][0]["suspect"] == 1


def test_what_a_scaler_skips_is_no_alarm_and_no_pass(seen: dict[str, Any]) -> None:
    clean = seen["scaled"]
    assert clean["alarm"] is None
    assert not clean["moved"][0]
    assert clean["moved"][-1]
    assert clean["passed"] == [step for step, moved in enumerate(clean["moved"], 1) if moved]
    assert seen["scaled fault"]["alarm"]["culprits"] == [1]


def test_a_guarded_step_leaves_the_same_bits_as_a_plain_one(seen: dict[str, Any]) -> None:
    assert seen["same"]


def test_an_alarm_can_be_raised_instead(seen: dict[str, Any]) -> None:
    said, culprits = seen["raised"]
    assert culprits == [1]
    assert "fired at step 5 and names rank 1. The step was not applied." in said
    assert "Suspect: steps 0–5; resume from the very beginning." in said


def test_without_a_reporter_or_with_a_broken_one_the_checks_go_on(seen: dict[str, Any]) -> None:
    assert seen["broken"]["culprits"] == seen["none"]["culprits"] == [1]


def place(schedule: Schedule, independent: bool) -> tuple[str, list[dict[str, Any]]]:
    try:
        job = Job(schedule=schedule, independent_nodes=independent)
    except PlacementError as error:
        return str(error), []
    return "", [named | {"rows": args[0]} for args, named in job.reporter.told("rank_map")]


def placed(world_size: int, per_node: int, schedule: Schedule, independent: bool = True) -> Any:
    ranks = fleet.run(world_size, per_node, place, schedule, independent)
    assert all(one == ranks[0] for one in ranks)
    return ranks[0]


def test_ranks_that_share_a_node_are_refused_unless_audits_are_off() -> None:
    said, _ = placed(6, 2, Schedule(peer_offset=1))
    assert "peer_offset must be the number of ranks a node" in said
    assert placed(4, 2, Schedule(audit_every=0, peer_offset=1))[0] == ""
    assert placed(4, 2, Schedule(peer_offset=1), False)[0] == ""


def test_two_nodes_get_advice() -> None:
    said, _ = placed(2, 1, Schedule(peer_offset=1))
    assert "On two nodes a replay can show that one of two GPUs is wrong, not which" in said


def test_the_rank_map_is_reported_once() -> None:
    _, maps = placed(3, 1, Schedule(peer_offset=1))
    assert len(maps) == 1
    assert [row["node"] for row in maps[0]["rows"]] == ["node-0", "node-1", "node-2"]
    assert (maps[0]["gpus_per_node"], maps[0]["peer_offset"]) == (1, 1)


def die_while_confirming() -> None:
    """Kill rank 2, the third rank, when it replays for the second time in a step."""
    job = Job(LAYER.once(5))
    rebuilt = 0

    def rebuild_or_die(step: int, rank: int) -> Tensor:
        nonlocal rebuilt
        rebuilt += 1
        if rebuilt == 2 and dist.get_rank() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return rebuild(step, rank)

    job.guard.work.rebuild = rebuild_or_die
    job.run()


def test_a_rank_that_dies_while_confirming_ends_the_others_with_an_error() -> None:
    with pytest.raises(fleet.FleetError) as failed:
        fleet.run(3, 1, die_while_confirming, timeout_s=30.0, grace_s=10.0)
    reasons = {rank: one.reason for rank, one in failed.value.failures.items()}
    assert "SIGKILL" in reasons[2]
    assert reasons[0].startswith("raised")
    assert reasons[1].startswith("raised")
