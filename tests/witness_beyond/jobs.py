"""What small job do the proofs of the further checks run on every rank?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule

RANKS = 3
OFF = Schedule(audit_every=0, check_every=0, peer_offset=1)


def model(norm: bool = False) -> nn.Module:
    torch.manual_seed(7)
    middle = nn.BatchNorm1d(16) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(8, 16), middle, nn.GELU(), nn.Linear(16, 16), nn.Linear(16, 4))


def batch(step: int, rank: int) -> Tensor:
    return torch.randn(5, 8, generator=torch.Generator().manual_seed(1000 * step + rank))


def loss_of(module: Any, inputs: Tensor) -> Tensor:
    dtype = next(module.parameters()).dtype
    loss: Tensor = module(inputs.to(dtype)).square().mean()
    return loss


def guarded(
    schedule: Schedule = OFF,
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer] | None = None,
    group: dist.ProcessGroup | None = None,
    dtype: torch.dtype = torch.float32,
    norm: bool = False,
    scaler: Any = None,
) -> Guard:
    """Build the model, its DDP wrapper, its optimizer and a guard around them."""
    # Buckets of a few hundred bytes: several a step.
    ddp = DistributedDataParallel(model(norm).to(dtype), process_group=group, bucket_cap_mb=0.0005)
    params = list(ddp.module.parameters())
    optimizer = make(params) if make else torch.optim.AdamW(params, lr=0.01)
    guard = Guard(
        ddp,
        optimizer,
        schedule,
        loss_of,
        batch,
        group=group,
        independent_nodes=False,
        scaler=scaler,
    )
    guard.ddp = ddp  # type: ignore[attr-defined]
    return guard


def backward(guard: Guard, step: int) -> Tensor:
    with guard.forward(step):
        loss = loss_of(guard.ddp, batch(step, dist.get_rank()))  # type: ignore[attr-defined]
        (loss if guard.work.scale is None else guard.work.scale(loss)).backward()
    return loss.detach()


@contextmanager
def wrong_gradient(module: nn.Module, factor: float) -> Iterator[None]:
    """Have this rank compute one element of a gradient wrong, before any reduction."""
    weight = next(module.parameters())

    def hook(grad: Tensor) -> Tensor:
        grad = grad.clone()
        grad[0, 0] *= factor
        return grad

    handle = weight.register_hook(hook)
    try:
        yield
    finally:
        handle.remove()
