"""How does a whole training loop run with the checks in their order?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from witness.ddp.guard import Alarm, Guard
from witness.ddp.schedule import Schedule

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

EXIT_CODE = 3
"""What a job exits with after an alarm, so that launchers and operators can tell it apart."""


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
    guard: Guard | None = None,
    **options: Any,
) -> Alarm | None:
    """Train until the batches end or a check fires; give the alarm, None where none came.

    `batches` yields this rank's micro-batches from `start_step` on. A checkpoint is saved only
    after a step on which nothing fired. `options` go to the `Guard`.
    """
    guard = guard or Guard(
        model, optimizer, schedule, compute_loss, rebuild_batch, start_step=start_step, **options
    )
    for step, batch in enumerate(batches, start_step):
        with guard.forward(step):
            loss = compute_loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
        alarm = guard.update(loss)
        if alarm is not None:
            return alarm
        if schedule.is_checkpoint(step):
            save_checkpoint(step, guard.tags())
    return None
