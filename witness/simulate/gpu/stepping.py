"""What do the checks add to a training step, and which attention may an audit use?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.attention import SDPBackend
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.determinism import deterministic
from witness.ddp.fingerprints import fingerprints, fold
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule
from witness.simulate.gpu.measuring import Bench
from witness.simulate.model import Batch, Job, Shape

LARGE = Shape(width=2048, blocks=16, heads=16, vocabulary=32000, length=2048, batch=2)
MIDDLE = Shape(width=1024, blocks=8, heads=8, vocabulary=32000, length=1024, batch=4)
TINY = Shape(width=64, blocks=2, heads=2, vocabulary=128, length=32, batch=2)


def check_1(bench: Bench) -> Iterator[dict[str, Any]]:
    """Measure a step of DDP in a group of one with and without the checks of every step."""
    with tempfile.TemporaryDirectory() as folder:
        # Where a machine has several cards, NCCL must not guess which one is ours.
        os.environ.setdefault("LOCAL_RANK", "0")
        dist.init_process_group(
            "nccl" if bench.device.type == "cuda" else "gloo",
            init_method=f"file://{Path(folder) / 'store'}", rank=0, world_size=1,
        )  # fmt: skip
        try:
            yield from _every_step(bench)
        finally:
            dist.destroy_process_group()


def _every_step(bench: Bench) -> Iterator[dict[str, Any]]:
    job = Job(TINY if bench.small else MIDDLE)
    batch = _moved(job.batch(1, 0), bench.device)
    floor = bench.milliseconds(_plain_step(job, bench, batch))
    yield {"what": "step of plain DDP", "ms": floor}
    for fused in (False, True):
        took = bench.milliseconds(_guarded_step(job, bench, batch, fused))
        name = "fused AdamW" if fused else "AdamW"
        yield {"what": f"step with checks, no audit, {name}", "ms": took, "to_floor": took / floor}


def _ddp(job: Job, bench: Bench, fused: bool) -> tuple[DistributedDataParallel, Any]:
    model = DistributedDataParallel(job.model().to(bench.device))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)


def _plain_step(job: Job, bench: Bench, batch: Batch) -> Callable[[], None]:
    model, optimizer = _ddp(job, bench, fused=False)

    def step() -> None:
        job.loss(model, batch).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _guarded_step(job: Job, bench: Bench, batch: Batch, fused: bool) -> Callable[[], None]:
    model, optimizer = _ddp(job, bench, fused)
    schedule = Schedule(audit_every=0, check_every=0, peer_offset=1)
    guard = Guard(model, optimizer, schedule, job.loss, None)
    steps = iter(range(1, 10_000))

    def step() -> None:
        with guard.forward(next(steps)):
            loss = job.loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
        alarm = guard.update(loss)
        if alarm is not None:
            raise RuntimeError(f"an alarm without a fault: {alarm}")

    return step


def audits(bench: Bench) -> Iterator[dict[str, Any]]:
    """Measure forward and backward under each attention, and whether the same bits come again."""
    job = Job(TINY if bench.small else LARGE)
    model = job.model().to(bench.device)
    batch = _moved(job.batch(1, 0), bench.device)
    kernels: dict[str, Callable[[], Any]] = {
        "default kernels": nullcontext,
        "deterministic, flash first": deterministic,
        "deterministic, math only": partial(deterministic, [SDPBackend.MATH]),
    }
    floor: float | None = None
    for name, kernel in kernels.items():
        compute = partial(_gradients, job, model, batch, kernel)
        took = bench.milliseconds(compute, rounds=5)
        floor = floor or took
        words = [int(fold(fingerprints(compute()))) for _ in range(3)]
        row = {"what": f"forward and backward, {name}", "ms": took, "to_floor": took / floor}
        yield row | {"same_bits": len(set(words)) == 1, "peak_gib": bench.peak_gib(compute)}


def _gradients(job: Job, model: nn.Module, batch: Batch, kernel: Callable[[], Any]) -> list[Tensor]:
    with kernel():
        loss = job.loss(model, batch)
        return [*torch.autograd.grad(loss, list(model.parameters())), loss.detach()]


def _moved(batch: Batch, device: torch.device) -> Batch:
    return Batch(batch.tokens.to(device), batch.seed)
