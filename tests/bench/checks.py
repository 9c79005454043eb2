"""What does each part of the checks add to a DDP step?

Every variant has a model of its own with the same weights. They take turns, step by step, so that
what else the machine does hits all alike; a figure is the median over rounds of the ratio to the
plain step of the same round. The ratio is that of processor time, which other programs disturb
least; the ratio of wall time, which also counts waiting for other ranks, stands beside it.
"""

# No postponed annotations here: DDP reads those of the hooks.
import logging
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn import functional as nnf
from torch.nn.parallel import DistributedDataParallel

from tests.bench.report import Report
from witness.ddp import Guard, Schedule
from witness.ddp.collectives import gather
from witness.ddp.gradients import LocalGradients
from witness.ddp.weights import find_divergent
from witness.simulate import fleet
from witness.simulate.model import Batch, Job, Shape

FLOOR = "plain DDP step"
# Ranks, model, rounds, rounds of a quick run.
SETTINGS = (
    (2, Shape(width=256, blocks=6, heads=4, vocabulary=512, length=64, batch=4), 30, 3),
    (2, Shape(width=192, blocks=4, heads=4, vocabulary=256, length=32, batch=2), 40, 15),
    (8, Shape(width=64, blocks=2, heads=2, vocabulary=64, length=16, batch=2), 40, 10),
)
WARM = 3
CLIP = 1.0
AIM = 1.02

Step = Callable[[int], None]


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Report each variant's step as a ratio to the plain one, on 2 and on 8 ranks."""
    for ranks, shape, rounds, few in SETTINGS:
        job = Job(shape)
        size = sum(param.numel() for param in job.model().parameters())
        report.say(f"checks: {ranks} ranks, {size / 1e6:.2f} M parameters")
        taken = fleet.run(ranks, 1, rank_times, job, few if quick else rounds, timeout_s=900)[0]
        for name, (seconds, wall, ratio) in taken.items():
            judged = name in AIMED
            report.add(
                "checks",
                f"{ranks} ranks, {size / 1e6:.2f} M: {name}",
                f"{seconds * 1000:.1f} ms, wall x {wall:.2f}",
                FLOOR,
                ratio,
                f"<= {AIM}" if judged else "",
                ratio <= AIM if judged else None,
            )


def rank_times(job: Job, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Run all variants in turns on this rank.

    Give each one's median processor time, and its median ratios of wall and of processor time.
    """
    logging.disable(logging.CRITICAL)
    steps = {name: build(job) for name, build in VARIANTS.items()}
    walls: dict[str, list[float]] = {name: [] for name in steps}
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(WARM + rounds):
        # Another order each round: whoever comes first finds other caches.
        turn = number % len(steps)
        for name in [*list(steps)[turn:], *list(steps)[:turn]]:
            dist.barrier()
            began, busy = time.perf_counter(), time.process_time()
            steps[name](number)
            dist.barrier()
            if number >= WARM:
                walls[name].append(time.perf_counter() - began)
                taken[name].append(time.process_time() - busy)
    return {
        name: (
            statistics.median(taken[name]),
            _ratio(walls[name], walls[PLAIN]),
            _ratio(taken[name], taken[PLAIN]),
        )
        for name in steps
    }


def _ratio(times: list[float], floor: list[float]) -> float:
    return statistics.median(one / base for one, base in zip(times, floor, strict=True))


class _Trainer:
    """A model of its own, and its plain step."""

    def __init__(self, job: Job, hook: Any = None, state: Any = None) -> None:
        self.job = job
        self.module = job.model()
        self.model = DistributedDataParallel(self.module)
        if hook is not None:
            self.model.register_comm_hook(state, hook)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3, fused=True)

    def backward(self, step: int) -> Tensor:
        loss = _loss(self.model, self.job.batch(step, dist.get_rank()))
        loss.backward()
        return loss

    def apply(self) -> Tensor:
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def _loss(module: nn.Module, batch: Batch) -> Tensor:
    # In float32: products of bfloat16 are slow on a CPU, and would hide what is measured.
    logits: Tensor = module(batch.tokens[:, :-1])
    return nnf.cross_entropy(logits.flatten(0, 1), batch.tokens[:, 1:].flatten())


def _plain(job: Job) -> Step:
    trainer = _Trainer(job)

    def step(number: int) -> None:
        trainer.backward(number)
        trainer.apply()

    return step


def _hook(job: Job) -> Step:
    trainer = _Trainer(job, allreduce_hook, dist.group.WORLD)

    def step(number: int) -> None:
        trainer.backward(number)
        trainer.apply()

    return step


def _looks(record: bool) -> Callable[[Job], Step]:
    """Look at buckets: their norms and, where recorded, fingerprints."""

    def build(job: Job) -> Step:
        trainer = _Trainer(job)
        gradients = LocalGradients.attach(trainer.model)

        def step(number: int) -> None:
            gradients.reset(record)
            trainer.backward(number)
            gradients.norm()
            trainer.apply()

        return step

    return build


def _guarded(schedule: Schedule, **options: Any) -> Callable[[Job], Step]:
    def build(job: Job) -> Step:
        trainer = _Trainer(job)
        guard = Guard(
            trainer.model, trainer.optimizer, schedule, _loss, job.batch,
            independent_nodes=False, **options,
        )  # fmt: skip

        def step(number: int) -> None:
            with guard.forward(number):
                loss = trainer.backward(number)
            if guard.update(loss) is not None:
                raise RuntimeError("a check fired while its cost was measured")

        return step

    return build


def _compared(job: Job) -> Step:
    """Compare the weights after every step, and nothing else."""
    trainer = _Trainer(job)
    params = list(trainer.module.parameters())

    def step(number: int) -> None:
        trainer.backward(number)
        trainer.apply()
        if find_divergent(params).diverged:
            raise RuntimeError("a check fired while its cost was measured")

    return step


def _naive(job: Job) -> Step:
    """Square and add up each bucket, gather one number a rank, agree on the reduced norm."""
    sums: list[Tensor] = []

    def hook(state: Any, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        sums.append(bucket.buffer().float().pow(2).sum())
        return allreduce_hook(state, bucket)

    trainer = _Trainer(job, hook, dist.group.WORLD)

    def step(number: int) -> None:
        sums.clear()
        trainer.backward(number)
        own = torch.stack(sums).sum().sqrt()
        if not bool(torch.isfinite(gather(own.reshape(1))).all()):
            raise RuntimeError("a check fired while its cost was measured")
        norm = nn.utils.clip_grad_norm_(trainer.module.parameters(), CLIP)
        bad = (~torch.isfinite(norm)).to(torch.int32).reshape(1)
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bool(bad.item()):
            raise RuntimeError("a check fired while its cost was measured")
        trainer.optimizer.step()
        trainer.optimizer.zero_grad(set_to_none=True)

    return step


OFF = Schedule(audit_every=0, check_every=0, peer_offset=1, max_grad_norm=CLIP)
AUDITS = Schedule(audit_every=1, check_every=0, peer_offset=1, max_grad_norm=CLIP)
DEFAULT = Schedule(
    audit_every=1, check_every=0, peer_offset=1, max_grad_norm=CLIP, deterministic_audits=False
)
PLAIN = "plain step"
AIMED = ("non-finite check (every step)", "non-finite check, deferred")
VARIANTS: dict[str, Callable[[Job], Step]] = {
    PLAIN: _plain,
    "a communication hook that does nothing": _hook,
    "norms of the buckets": _looks(record=False),
    "non-finite check (every step)": _guarded(OFF),
    "non-finite check, deferred": _guarded(OFF, deferred=True),
    "naive non-finite check: squares, two collectives": _naive,
    "norms and gradient fingerprints (audit steps)": _looks(record=True),
    "audit step, default kernels": _guarded(DEFAULT),
    "audit step, deterministic": _guarded(AUDITS),
    "weight check (check steps)": _compared,
}
