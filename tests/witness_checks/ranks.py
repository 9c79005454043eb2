"""What each rank of a test does: train a workload with and without audits, then with a fault."""

from __future__ import annotations

import hashlib
import logging
import pickle
import random
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.witness_checks.workloads import WORKLOADS, Workload, batch, loss_of
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule
from witness.inject import Fault, Injector

STEPS = 4
FAULTY = 1
QUIET = AfterAlarm(replays=0)
NO_AUDITS = Schedule(audit_every=0, check_every=0, peer_offset=1)
STRICT = Schedule(audit_every=1, check_every=2, peer_offset=1)
DEFAULT = Schedule(audit_every=1, check_every=2, peer_offset=1, deterministic_audits=False)


def train(
    workload: Workload, schedule: Schedule, *faults: Fault, steps: int = STEPS, **options: Any
) -> tuple[dict[str, Any] | None, str]:
    """Train a fresh model; give the alarm and a digest of everything a run leaves behind."""
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    inner = workload.build()
    if workload.dtype != torch.float32:
        inner = inner.to(workload.dtype)
    with warnings.catch_warnings():
        # Newer versions call it forward_sync_buffers.
        warnings.filterwarnings("ignore", ".*broadcast_buffers", FutureWarning)
        model = DistributedDataParallel(inner, **workload.ddp)
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10) if workload.scaler else None
    compute = loss_of(workload)
    guard = Guard(
        model,
        optimizer,
        schedule,
        compute,
        lambda step, rank: batch(workload, step, rank),
        micro_batches=workload.micro_batches,
        scaler=scaler,
        seed=workload.seed,
        after_alarm=QUIET,
        **options,
    )
    alarm = None
    with Injector(inner, dist.get_rank(), optimizer).arm(*faults) as injector:
        for step in range(steps):
            injector.begin(step)
            alarm = one_step(guard, model, workload, step)
            if alarm is not None:
                break
    return alarm, left_behind(inner, optimizer)


def one_step(
    guard: Guard, model: DistributedDataParallel, workload: Workload, step: int
) -> dict[str, Any] | None:
    given = batch(workload, step, dist.get_rank())
    parts = given if workload.micro_batches > 1 else [given]
    losses = []
    with guard.forward(step):
        for place, part in enumerate(parts, 1):
            with model.no_sync() if place < len(parts) else nullcontext():
                loss = guard.work.compute_loss(model, part)
                scaled = loss if guard.work.scale is None else guard.work.scale(loss)
                scaled.backward()
            losses.append(loss)
    return guard.update(*losses)


def left_behind(inner: torch.nn.Module, optimizer: torch.optim.Optimizer) -> str:
    """Digest weights, buffers, optimizer state and random generators, bit for bit."""
    found = hashlib.sha256()
    state = [
        (f"momentum {place}", held["momentum_buffer"])
        for place, held in enumerate(optimizer.state.values())
    ]
    for name, tensor in [*inner.named_parameters(), *inner.named_buffers(), *state]:
        found.update(name.encode())
        found.update(tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    for value in (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        np.random.get_state(),
    ):
        found.update(pickle.dumps(value))
    return found.hexdigest()


def all_workloads(names: list[str]) -> dict[str, dict[str, Any]]:
    """Give for each workload what healthy runs leave, and what an alarm says of a faulty one."""
    logging.disable(logging.CRITICAL)
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        workload = WORKLOADS[name]
        plain = train(workload, NO_AUDITS)
        strict, default = train(workload, STRICT), train(workload, DEFAULT)
        fault = Fault.on(FAULTY, workload.layer).multiply(1000.0).since(2)
        backward = Fault.on(FAULTY, workload.layer).multiply(1000.0).in_weight_gradient().since(2)
        results[name] = {
            "alarms": [plain[0], strict[0], default[0]],
            "left": [plain[1], strict[1], default[1]],
            "forward": train(workload, STRICT, fault)[0],
            "default": train(workload, DEFAULT, fault)[0],
            "backward": train(workload, STRICT, backward)[0],
        }
    return results
