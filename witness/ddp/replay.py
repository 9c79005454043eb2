"""What does this rank compute from another rank's micro-batch?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from witness.ddp.buffers import StepBuffers, Values
from witness.ddp.collectives import collectives_issued
from witness.ddp.fingerprints import fingerprints
from witness.ddp.gradients import VERSION
from witness.ddp.randomness import seed_all, untouched

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class ReplayError(RuntimeError):
    """A step could not be computed again, on the ranks that the message names."""


class CollectiveInReplayError(ReplayError):
    """Forward or backward exchanges data between ranks, so that no rank can compute it alone."""


@dataclass(slots=True)
class Work:
    """How to compute a step again.

    `module` is the model without its DDP wrapper: a replay must not start a collective.
    `compute_loss(module, batch)` gives what `backward` is called on, before any scaling, autocast
    included; its random numbers must depend on the batch alone, or `seed` be given. `rebuild(step,
    rank)` gives exactly the micro-batch that the rank of this global number trained on, or a
    sequence of `micro_batches` of them where that is more than 1. `scale` is what the loss goes
    through before `backward`, None for nothing. `group` is the DDP model's process group, None for
    all ranks. `seed` not None seeds all generators of a step from it, the step and the rank.
    `by_backward` is set where the autograd graph only allows that (reentrant checkpoints).
    """

    module: nn.Module
    params: list[nn.Parameter]
    compute_loss: Callable[[Any, Any], Tensor]
    rebuild: Callable[[int, int], Any]
    micro_batches: int = 1
    scale: Callable[[Tensor], Tensor] | None = None
    group: dist.ProcessGroup | None = None
    seed: int | None = None
    by_backward: bool = False
    buffers: StepBuffers = field(init=False)

    def __post_init__(self) -> None:
        """Watch the module for the beginning of a step."""
        self.buffers = StepBuffers(self.module)

    def remember_buffers(self) -> None:
        """Have the buffers kept as they are when the coming forward begins, for its replay."""
        self.buffers.remember()

    def begin(self, step: int, rank: int) -> None:
        """Prepare this rank's own forward of a step: buffers, and generators where seeded."""
        self.remember_buffers()
        if self.seed is not None:
            seed_all(self.seed, step, rank)

    def refuse_losses(self, losses: Sequence[Tensor]) -> None:
        """Raise ValueError unless there is one scalar loss a micro-batch."""
        if len(losses) != self.micro_batches or any(loss.numel() != 1 for loss in losses):
            raise ValueError(
                f"update() takes the scalar loss of each of the step's {self.micro_batches} "
                f"micro-batches, and got {[tuple(loss.shape) for loss in losses]}"
            )

    def names(self) -> list[str]:
        """Name the trained parameters in the order of `params`."""
        named = {id(param): name for name, param in self.module.named_parameters()}
        return [named.get(id(param), f"parameter {row}") for row, param in enumerate(self.params)]


def no_batch(step: int, rank: int) -> Any:
    """Stand for `rebuild` where nobody can: raise LookupError."""
    raise LookupError(f"nobody said how to rebuild step {step} of rank {rank}")


def refuse_exchange(module: nn.Module) -> None:
    """Raise `CollectiveInReplayError` for layers that are known to exchange data between ranks."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.SyncBatchNorm):
            raise CollectiveInReplayError(
                f"{name or 'the model'} is a SyncBatchNorm, whose result depends on every rank's "
                "batch: a step cannot be replayed. Use BatchNorm, or switch audits off "
                "(audit_every=0)."
            )


def loss_words(losses: Sequence[Tensor]) -> Tensor:
    """Give the raw bits of scalar losses, one int64 each, on their device."""
    bits = [loss.detach().reshape(1).view(_BITS[loss.element_size()]) for loss in losses]
    return torch.cat([one.to(torch.int64) for one in bits])


def own_words(losses: Sequence[Tensor], table: Tensor | None) -> Tensor:
    """Put a rank's own result into the form of a replay: loss bits, then gradient fingerprints."""
    words = loss_words(losses)
    return words if table is None else torch.cat([words, table.flatten().to(words.device)])


def replay(
    work: Work, step: int, rank: int, with_grads: bool, *, buffers: Values | None = None
) -> Tensor:
    """Compute the micro-batches of `rank` again: loss bits, then gradient fingerprints if asked.

    Forward runs with gradients either way, so that it takes the kernels of the step. `.grad`, DDP's
    hooks, buffers and random generators are left as they were, also after an error. Needs memory
    for the activations and, if asked, one more set of gradients. `buffers` are those to start
    from where they are not this rank's own. Raises `CollectiveInReplayError` where a collective
    was started, and whatever `rebuild`, `compute_loss` and their operators raise.
    """
    before = collectives_issued(work.group)
    try:
        words = _replay_once(work, step, rank, with_grads, buffers)
    except RuntimeError as error:
        if work.by_backward or not _needs_backward(error):
            raise
        work.by_backward = True
        words = _replay_once(work, step, rank, with_grads, buffers)
    if collectives_issued(work.group) != before:
        raise CollectiveInReplayError(
            "a collective was started while a step was computed again: compute_loss must use the "
            "module that it is given, not the DDP model, and the model's forward must not exchange "
            "data between ranks"
        )
    return words


def _needs_backward(error: RuntimeError) -> bool:
    """Recognise what a reentrant checkpoint says to `torch.autograd.grad`, in any version."""
    text = str(error)
    return ".grad()" in text and "checkpoint" in text.lower()


def _replay_once(
    work: Work, step: int, rank: int, with_grads: bool, buffers: Values | None
) -> Tensor:
    devices = {param.device for param in work.params}
    with work.buffers.swapped(buffers), untouched(devices), torch.enable_grad():
        batches = work.rebuild(step, rank)
        if work.micro_batches == 1:
            batches = [batches]
        elif len(batches) != work.micro_batches:
            raise ReplayError(
                f"rebuild gave {len(batches)} micro-batches of step {step}, rank {rank}, "
                f"and {work.micro_batches} were trained on"
            )
        if work.seed is not None:
            seed_all(work.seed, step, rank)
        losses: list[Tensor] = []
        with _Gradients(work) as gradients:
            for batch in batches:
                loss = work.compute_loss(work.module, batch)
                losses.append(loss.detach())
                if with_grads:
                    gradients.add(loss if work.scale is None else work.scale(loss))
                del loss
            sums = gradients.sums()
        return own_words(losses, fingerprints(sums, version=VERSION) if with_grads else None)


class _Gradients:
    """Adds up gradients in the order of the micro-batches, as `.grad` does.

    Sums are made anew: one gradient may be another's memory, or a view that repeats elements.
    """

    def __init__(self, work: Work) -> None:
        self._params, self._by_backward = work.params, work.by_backward
        self._sums: list[Tensor | None] = [None] * len(work.params)
        self._aside: list[Tensor | None] = []

    def __enter__(self) -> _Gradients:
        if self._by_backward:
            hooked = [p for p in self._params if getattr(p, "_post_accumulate_grad_hooks", None)]
            if hooked:
                raise ReplayError(
                    "parameters have hooks that run after their gradient: a replay through "
                    "reentrant checkpoints would run them; use use_reentrant=False"
                )
            # DDP's own hooks only count between a forward of the wrapper and its backward.
            self._aside = [param.grad for param in self._params]
            self._set([None] * len(self._params))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._by_backward:
            self._set(self._aside)

    def add(self, loss: Tensor) -> None:
        if self._by_backward:
            loss.backward()  # type: ignore[no-untyped-call]
            return
        more: Sequence[Tensor | None] = torch.autograd.grad(loss, self._params, allow_unused=True)
        self._sums = [
            new if old is None else old if new is None else old + new
            for old, new in zip(self._sums, more, strict=True)
        ]

    def sums(self) -> list[Tensor | None]:
        if self._by_backward:
            return [param.grad for param in self._params]
        return self._sums

    def _set(self, grads: list[Tensor | None]) -> None:
        for param, grad in zip(self._params, grads, strict=True):
            param.grad = grad
