"""What each rank does where one computation goes wrong in a way of its own."""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tests.witness_checks.ranks import STRICT, train
from tests.witness_checks.workloads import WORKLOADS
from witness.ddp.replay import Work, replay
from witness.ddp.ring_audit import confirm, ring_audit
from witness.inject import Fault

# (rank that computes, rank whose batch it is) to what its answers are multiplied by, in turn; the
# last one stays.
Wrong = dict[tuple[int, int], list[float]]


def judged(wrong: Wrong, offset: int = 1) -> tuple[list[Any], list[int], list[dict[str, Any]]]:
    """Audit one step; give the pairs, the culprits and the verdicts."""
    torch.manual_seed(0)
    net = nn.Linear(3, 3)
    answers = {of: list(factors) for (by, of), factors in wrong.items() if by == dist.get_rank()}

    def compute(module: nn.Module, batch: tuple[int, Tensor]) -> Tensor:
        of, x = batch
        loss: Tensor = module(x).square().sum()
        factors = answers.get(of, [1.0])
        return loss * (factors.pop(0) if len(factors) > 1 else factors[0])

    def rebuild(step: int, rank: int) -> tuple[int, Tensor]:
        return rank, torch.full((2, 3), float(step + rank))

    work = Work(net, list(net.parameters()), compute, rebuild)
    work.remember_buffers()
    own = replay(work, 7, dist.get_rank(), True)
    ring = ring_audit(work, own, 7, offset, True)
    return ring.pairs, ring.culprits, confirm(work, ring.ambiguous, ring, 7, True)


CASES: dict[str, Wrong] = {
    "healthy": {},
    "own batch always": {(1, 1): [2.0]},
    "own batch once": {(1, 1): [2.0, 1.0]},
    "own batch each time another": {(1, 1): [2.0, 3.0]},
    "replayer": {(0, 1): [2.0]},
    "target and third": {(1, 1): [2.0], (2, 1): [3.0]},
    "target and third alike": {(1, 1): [2.0], (2, 1): [2.0]},
    "everything": {(1, of): [2.0] for of in range(3)},
}


def all_verdicts() -> dict[str, Any]:
    return {name: judged(wrong) for name, wrong in CASES.items()}


def without_a_third() -> Any:
    """Audit where the ring has two ranks only, or one."""
    size = dist.get_world_size()
    return judged({(1, 1): [2.0, 1.0]}, 1), judged({(1, 1): [2.0, 1.0]}, size)


def two_faults(first: int, second: int, factors: list[float]) -> Any:
    logging.disable(logging.CRITICAL)
    faults = [
        Fault.on(rank, "last").multiply(factor).since(1)
        for rank, factor in zip((first, second), factors, strict=True)
    ]
    return train(WORKLOADS["plain"], STRICT, *faults)[0]
