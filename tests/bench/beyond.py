"""What does each of the further checks add to a step?

Three ranks, one a node, over gloo. The plain step is that of a guard without audits and weight
checks. Every variant runs a few steps in each round, so that whatever
else the machine does falls on all of them; a ratio is the median over the rounds of a variant's
mean step over that of its plain step in the same round. Processor time counts all threads of a
rank, and is what to trust on a busy machine; the wall's ratio also counts waiting for others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tests.bench.report import Report
from witness.ddp.beyond.link import groups
from witness.ddp.beyond.reduction import WitnessedReduction
from witness.ddp.beyond.replicas import Replicas
from witness.ddp.beyond.rounding import RoundingBound
from witness.ddp.beyond.sharded import ShardedState
from witness.ddp.beyond.standby import Standby
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule
from witness.simulate import fleet

RANKS, STANDBY = 3, 2
WIDTH, DEPTH, BATCH = 384, 6, 128
REPLICATED = Schedule(audit_every=0, check_every=0, peer_offset=1)
PAIR = Schedule(audit_every=0, check_every=10, peer_offset=1)
Step = Callable[[int], None]
# Variant: its plain step, and what makes the step.
VARIANTS = {
    "plain": "plain",
    "reduction, 1/64 of each bucket": "plain",
    "reduction, everything": "plain",
    "rounding bound, 1/64 of each bucket": "plain",
    "rounding bound, everything": "plain",
    "plain, ZeRO": "plain, ZeRO",
    "state at rest, all of it": "plain, ZeRO",
    "state at rest, 1/10": "plain, ZeRO",
    "update replayed every step": "plain, ZeRO",
    "update replayed every 10th step": "plain, ZeRO",
    "plain, two replicas": "plain, two replicas",
    "standby, weights compared every 10th step": "plain, two replicas",
}


def network() -> nn.Module:
    torch.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(DEPTH)]
    return nn.Sequential(*layers)


def batch(step: int, rank: int) -> Tensor:
    return torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(step * 100 + rank))


def loss_of(module: Any, inputs: Tensor) -> Tensor:
    loss: Tensor = module(inputs).square().mean()
    return loss


def adamw(params: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, lr=1e-3)


def zero(params: Any) -> torch.optim.Optimizer:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(params, optimizer_class=torch.optim.AdamW, lr=1e-3)


def guarded(make: Any, schedule: Schedule, group: Any = None) -> tuple[Guard, Any]:
    ddp = DistributedDataParallel(network(), process_group=group, bucket_cap_mb=4)
    optimizer = make(ddp.module.parameters())
    return Guard(ddp, optimizer, schedule, loss_of, batch, group=group), ddp


def step_of(
    guard: Guard, ddp: Any, before: Any = None, after: Any = None, last: Any = None
) -> Step:
    """Make one step with what a further check wants before it, after backward and at its end."""

    def step(number: int) -> None:
        if before is not None:
            before(number)
        with guard.forward(number):
            loss = loss_of(ddp, batch(number, dist.get_rank()))
            loss.backward()
        alarm = (after and after(number)) or guard.update(loss.detach()) or (last and last(number))
        if alarm:
            raise RuntimeError(f"a healthy job has an alarm: {alarm}")

    return step


def build(variant: str) -> Step:
    """Build the step of a variant that all three ranks train."""
    if variant.startswith(("plain, ZeRO", "state", "update")):
        guard, ddp = guarded(zero, REPLICATED)
        if variant == "plain, ZeRO":
            return step_of(guard, ddp)
        every = {"update replayed every step": 1, "update replayed every 10th step": 10}
        parts = {"state at rest, all of it": 1, "state at rest, 1/10": 10}
        watch = ShardedState(
            guard.optimizer, guard.gradients.params, peer_offset=1,
            every=every.get(variant, 0), parts=parts.get(variant, 0),
        )  # fmt: skip
        return step_of(guard, ddp, None, watch.before, lambda _: watch.after())
    guard, ddp = guarded(adamw, REPLICATED)
    if variant == "plain":
        return step_of(guard, ddp)
    slices = 1 if variant.endswith("everything") else 64
    check: Any = (
        WitnessedReduction(guard.gradients, peer_offset=1, slices=slices)
        if variant.startswith("reduction")
        else RoundingBound(guard.gradients, slices=slices)
    )
    return step_of(guard, ddp, check.before, lambda _: check.after())


def timed(step: Step, count: int) -> tuple[float, float]:
    """Give the mean wall and processor seconds of a step, after two that warm up."""
    for number in range(2):
        step(number)
    wall, processor = time.perf_counter(), time.process_time()
    for number in range(2, 2 + count):
        step(number)
    return (time.perf_counter() - wall) / count, (time.process_time() - processor) / count


def replicas_timed(variant: str, made: Any, count: int) -> tuple[float, float]:
    """Time two replicas, the third rank standing by or doing nothing."""
    training, link = made
    followed = variant.startswith("standby")
    if dist.get_rank() == STANDBY:
        if followed:
            module = network()
            Standby(module, adamw(module.parameters()), loss_of, batch, link).serve()
        return 0.0, 0.0
    guard, ddp = guarded(adamw, PAIR, training)
    if not followed:
        return timed(step_of(guard, ddp), count)
    replicas = Replicas(guard, STANDBY, link)
    times = timed(step_of(guard, ddp, last=replicas.passed), count)
    replicas.close()
    return times


def rounds(many: int, count: int) -> list[dict[str, tuple[float, float]]]:
    """Run every variant in every round; rank 0's times count."""
    # What the schedules of a bench give away need not be said sixty times.
    logging.getLogger("witness").setLevel(logging.ERROR)
    made = groups([0, 1], STANDBY)
    found = []
    for _ in range(many):
        times = {}
        for variant, plain in VARIANTS.items():
            dist.barrier()
            if plain == "plain, two replicas":
                times[variant] = replicas_timed(variant, made, count)
            else:
                times[variant] = timed(build(variant), count)
        found.append(times)
    return found


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Measure what each further check adds to a step."""
    many, count = (3, 10) if quick else (5, 20)
    params = DEPTH * (WIDTH * WIDTH + WIDTH)
    report.say(f"{RANKS} ranks, {params / 1e6:.1f} M parameters, {many} rounds of {count} steps")
    times = fleet.run(RANKS, 1, rounds, many, count, timeout_s=1800)[0]
    for variant, plain in VARIANTS.items():
        wall, processor = (
            median(one[variant][which] / one[plain][which] for one in times) for which in (0, 1)
        )
        milliseconds = median(one[variant][1] for one in times) * 1e3
        if variant == plain:
            report.add("beyond", variant, f"{milliseconds:.1f} ms of processor")
        else:
            value = f"{milliseconds:.1f} ms, wall {wall:.2f} x"
            report.add("beyond", variant, value, f"{plain}, processor", processor)
