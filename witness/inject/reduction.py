"""How does a finite error arise inside the all-reduce, where no rank's own gradient shows it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.inject.fault import Fault
from witness.inject.modes import corrupted


class _Done:
    """A collective that is over: what a communication hook asks of one."""

    def __init__(self, tensor: Tensor) -> None:
        self._future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        self._future.set_result([tensor])

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def get_future(self) -> torch.futures.Future[list[Tensor]]:
        return self._future


@contextmanager
def faulty_reduction(fault: Fault, rank: int, fires: Callable[[], bool]) -> Iterator[None]:
    """Let the all-reduce of gradients go wrong: in one rank's contribution, or in its result.

    Only reductions that Python starts are reached (DDP with a communication hook, as the checks
    register one), and of those only the floating ones of more than one element. A `reduced` fault
    hits the share of the buffer that `fault.rank` would reduce in a reduce-scatter, alike on every
    rank, since every rank takes the reducer's result; a `contribution` only on its own rank.
    """
    right: Callable[..., Any] = dist.all_reduce

    def all_reduce(
        tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        gradients = tensor.is_floating_point() and tensor.numel() > 1
        if fault.place == "contribution":
            if gradients and rank == fault.rank and fires():
                tensor.copy_(corrupted(tensor, fault).view_as(tensor))
            return right(tensor, op, group, async_op)
        if not gradients or not fires():
            return right(tensor, op, group, async_op)
        right(tensor, op, group)
        share = _share(tensor, fault.rank, dist.get_world_size(group))
        share.copy_(corrupted(share, fault))
        return _Done(tensor) if async_op else None

    dist.all_reduce = all_reduce
    try:
        yield
    finally:
        dist.all_reduce = right


def _share(tensor: Tensor, rank: int, ranks: int) -> Tensor:
    """Give the part of a flat buffer that one rank reduces; the whole where it is too short."""
    flat = tensor.view(-1)
    each = -(-flat.numel() // ranks)
    part = flat[rank * each : (rank + 1) * each]
    return part if part.numel() else flat
