"""How does a whole training loop run with the checks in their order?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from torch import Tensor

from witness.ddp.alarms import Alarm
from witness.ddp.guard import Guard
from witness.ddp.leaving import EXIT_CODE
from witness.ddp.schedule import Schedule

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel

__all__ = ["EXIT_CODE", "train"]


def train(
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Any],
    compute_loss: Callable[[Any, Any], Tensor],
    rebuild_batch: Callable[[int, int], Any],
    save_checkpoint: Callable[[int, dict[str, int | None]], Any],
    schedule: Schedule,
    *,
    start_step: int = 0,
    reporter: Any = None,
    guard: Guard | None = None,
    on_step: Callable[[int, Tensor], Any] | None = None,
    **options: Any,
) -> Alarm | None:
    """Train until the batches end or a check fires; give the alarm, None where none came.

    Every rank must call it alike. `batches` gives this rank's micro-batch of each step from
    `start_step` on, or a sequence of them where `micro_batches` is more than 1; `compute_loss` then
    divides by their number. Where `start_step` is not 0 the replicas are compared before the first
    step. `save_checkpoint(step, tags)` is called on every rank, only after a step on which nothing
    fired; the path or address that it returns is reported. `on_step(step, loss)` is called after
    each applied step with the last micro-batch's loss: the place for a scheduler of the learning
    rate. `options` go to the `Guard`.
    """
    guard = guard or Guard(
        model,
        optimizer,
        schedule,
        compute_loss,
        rebuild_batch,
        start_step=start_step,
        reporter=reporter,
        **options,
    )
    alarm = guard.check_loaded() if start_step else None
    if alarm is not None:
        return alarm
    for step, batch in enumerate(batches, start_step):
        with guard.forward(step):
            losses = _backward(guard, model, batch)
        alarm = guard.update(*losses)
        if alarm is not None:
            return alarm
        if on_step is not None:
            on_step(step, losses[-1])
        if schedule.is_checkpoint(step):
            saved = save_checkpoint(step, guard.tags())
            if saved is not None:
                guard.saved(step, saved)
    return guard.finish()


def _backward(guard: Guard, model: DistributedDataParallel, batch: Any) -> list[Tensor]:
    """Run forward and backward of a step's micro-batches; only the last one is reduced."""
    work = guard.work
    parts: Sequence[Any] = batch if work.micro_batches > 1 else [batch]
    losses = []
    for place, part in enumerate(parts, 1):
        with model.no_sync() if place < len(parts) else nullcontext():
            loss = work.compute_loss(model, part)
            scaled = loss if work.scale is None else work.scale(loss)
            scaled.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
    return losses
