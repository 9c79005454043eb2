"""What does this rank compute from another rank's micro-batch?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from witness.ddp.fingerprints import fingerprints

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(slots=True)
class Work:
    """How to compute a step again.

    `module` is the model without its DDP wrapper: a replay must not start a collective.
    `compute_loss(module, batch)` gives what `backward` is called on, before any scaling; its random
    numbers must depend on step and rank alone. `rebuild(step, rank)` gives exactly the micro-batch
    that rank trained on, or a sequence of `micro_batches` of them where that is more than 1.
    `scale` is what the loss goes through before `backward`, None for nothing.
    """

    module: nn.Module
    params: list[nn.Parameter]
    compute_loss: Callable[[Any, Any], Tensor]
    rebuild: Callable[[int, int], Any]
    micro_batches: int = 1
    scale: Callable[[Tensor], Tensor] | None = None
    buffers: dict[str, Tensor] = field(default_factory=dict)

    def remember_buffers(self) -> None:
        """Keep the buffers as they are before a step's forward, so that a replay starts there."""
        self.buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}


def loss_words(losses: Sequence[Tensor]) -> Tensor:
    """Give the raw bits of scalar losses, one int64 each."""
    bits = [loss.detach().reshape(1).view(_BITS[loss.element_size()]) for loss in losses]
    return torch.cat([one.to(torch.int64) for one in bits])


def own_words(losses: Sequence[Tensor], table: Tensor | None) -> Tensor:
    """Put a rank's own result into the form of a replay: loss bits, then gradient fingerprints."""
    words = loss_words(losses)
    return words if table is None else torch.cat([words, table.flatten()])


def replay(work: Work, step: int, rank: int, with_grads: bool) -> Tensor:
    """Compute the micro-batches of `rank` again: loss bits, then gradient fingerprints if asked.

    `torch.autograd.grad` leaves `.grad` and DDP's hooks alone. Buffers and random states come back
    as they were. Needs memory for one more set of gradients.
    """
    batches = work.rebuild(step, rank)
    losses: list[Tensor] = []
    sums: list[Tensor | None] = []
    with _unchanged(work):
        for batch in batches if work.micro_batches > 1 else [batches]:
            with torch.set_grad_enabled(with_grads):
                loss = work.compute_loss(work.module, batch)
            losses.append(loss.detach())
            if with_grads:
                sums = _add(sums, _gradients(work, loss))
    return own_words(losses, fingerprints(sums) if with_grads else None)


def _gradients(work: Work, loss: Tensor) -> tuple[Tensor | None, ...]:
    scaled = loss if work.scale is None else work.scale(loss)
    return torch.autograd.grad(scaled, work.params, allow_unused=True)


def _add(sums: list[Tensor | None], more: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Accumulate in the order of the micro-batches, as `.grad` does."""
    if not sums:
        return list(more)
    both = zip(sums, more, strict=True)
    return [new if old is None else old if new is None else old.add_(new) for old, new in both]


@contextmanager
def _unchanged(work: Work) -> Iterator[None]:
    """Start from the step's own buffers; put buffers and random states back afterwards."""
    after = {name: buffer.clone() for name, buffer in work.module.named_buffers()}
    devices = sorted({param.device.index for param in work.params if param.device.type == "cuda"})
    with torch.random.fork_rng(devices=devices):
        try:
            _set_buffers(work.module, work.buffers)
            yield
        finally:
            _set_buffers(work.module, after)


@torch.no_grad()
def _set_buffers(module: nn.Module, values: dict[str, Tensor]) -> None:
    for name, buffer in module.named_buffers():
        if name in values:
            buffer.copy_(values[name])
