"""How does Lightning's Trainer run with the checks between backward and its optimizer step?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins.io import CheckpointIO
except ImportError as missing:
    raise ImportError("witness.ddp.adapters.lightning needs lightning") from missing

from witness.ddp.adapters.framework import (
    Micro,
    as_ddp,
    leave_holds_behind,
    remove_tags,
    seeded,
    stop_on,
    write_tags,
)
from witness.ddp.adapters.lightning_data import SameDataset
from witness.ddp.alarms import SilentCorruption
from witness.ddp.announcing import Announcer
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule

KEY = "silent_witness"
"""Under this key a checkpoint holds its step and tags."""


class SilentWitness(Callback):
    """Checks each optimizer step of one `fit()`; raises `Stopped` where a check fires.

    For automatic optimization with one optimizer under `DDPStrategy`, which must have no
    communication hook of its own. Steps are counted as `trainer.global_step` after the step.
    `rebuild(step, rank)` gives what that rank trains on at that step, as the data loader gives it,
    a sequence where `accumulate_grad_batches` is more than 1 (`SameDataset()` for a map-style data
    set); without it only non-finite gradients and weights are checked. `reporter` and `options` go
    to the `Guard`.
    """

    def __init__(
        self,
        schedule: Schedule,
        rebuild: Callable[[int, int], Any] | None = None,
        *,
        reporter: Any = None,
        **options: Any,
    ) -> None:
        self.guard: Guard | None = None
        self._schedule, self._rebuild, self._options = schedule, rebuild, options
        self._reporter, self._announcer = reporter, Announcer(reporter)
        self._step, self._forward = ExitStack(), ExitStack()
        self._losses: list[Tensor] = []
        self._places: list[int] = []
        self._fetched = 0
        self._inspected = False
        self._ended_by: BaseException | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach to the model that the strategy has wrapped, and compare what was loaded."""
        if self.guard is not None:
            raise RuntimeError("one SilentWitness watches one fit(): make a new one")
        if not pl_module.automatic_optimization or len(trainer.optimizers) != 1:
            raise TypeError("the checks need automatic optimization with one optimizer")
        self._trainer = trainer
        if isinstance(self._rebuild, SameDataset):
            self._rebuild.follow(trainer, self._span)
        self._scaler = getattr(trainer.precision_plugin, "scaler", None)
        trainer.strategy.checkpoint_io = _Tagged(trainer.strategy.checkpoint_io, self._saved)
        self._options = {"checkpoints": trainer.default_root_dir, **self._options}
        self.guard = Guard(
            as_ddp(trainer.strategy.model),
            trainer.optimizers[0],
            self._schedule,
            self._compute_loss,
            None if self._rebuild is None else self._micro_batches,
            start_step=trainer.global_step + 1,
            micro_batches=trainer.accumulate_grad_batches,
            reporter=self._reporter,
            scaler=self._scaler,
            **self._options,
        )
        self.guard.work.scale = None  # Lightning shows the loss after scaling: so does our replay
        self._devices = {param.device for param in self.guard.work.params}
        stop_on(self.guard.check_loaded())

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count the batches of this epoch's data from the beginning."""
        self._fetched = 0

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Open a step at its first micro-batch; draw random numbers by step, rank, micro-batch."""
        assert self.guard is not None
        if batch_idx % trainer.accumulate_grad_batches == 0:
            self._losses.clear()
            self._places.clear()
            self._step.enter_context(self.guard.forward(trainer.global_step + 1))
        self._places.append(batch_idx)
        self._fetched += 1
        if self._rebuild is not None:
            place, rank = len(self._losses), trainer.global_rank
            mine = seeded(self._devices, self.guard.step, rank, place)
            self._forward.enter_context(mine)

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: Tensor
    ) -> None:
        """Note the loss that backward is called on."""
        self._forward.close()
        self._losses.append(loss.detach())

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Any
    ) -> None:
        """Check before clipping and the optimizer: where this raises, the weights are untouched."""
        assert self.guard is not None
        self._step.close()
        self.guard.work.micro_batches = len(self._losses)  # an epoch may end with fewer
        losses = list(self._losses)
        stop_on(self.guard.inspect(*losses))
        self._losses.clear()
        self._inspected = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Compare the replicas if due; checkpoint callbacks come after this one."""
        assert self.guard is not None
        if self._inspected:
            self._inspected = False
            stop_on(self.guard.after_update())

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Compare the replicas before anything is written, and put the tags in.

        Lightning does not ask where only weights are saved. No state is saved after an alarm.
        """
        if isinstance(self._ended_by, SilentCorruption):
            raise self._ended_by
        if self.guard is None:
            return
        between = self._ended_by is None and not self._losses
        if between and self._schedule.check_on_checkpoint:
            stop_on(self.guard.check_weights())
        checkpoint[KEY] = {"step": trainer.global_step, **self.guard.tags()}

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave what is open; from here on no check runs, as other ranks may be elsewhere."""
        self._ended_by = exception
        self._forward.close()
        self._step.close()

    def _saved(self, path: Path, step: int, tags: dict[str, Any]) -> None:
        assert self.guard is not None
        write_tags(path, step, tags)
        leave_holds_behind(Path(self._options["checkpoints"]), self.guard.start_step, tags)
        self._announcer.tell("checkpoint", step, str(path), tags)

    def _span(self) -> tuple[int, int]:
        return self._fetched - len(self._places), len(self._places)

    def _micro_batches(self, step: int, rank: int) -> Any:
        """Rebuild a rank's step; every rank takes its micro-batches under the same indices."""
        assert self._rebuild is not None
        batches = self._rebuild(step, rank)
        if len(self._losses) == 1 and self._trainer.accumulate_grad_batches == 1:
            return Micro(batches, step, rank, 0, self._places[0])
        found = [
            Micro(batch, step, rank, place, index)
            for place, (batch, index) in enumerate(zip(batches, self._places, strict=True))
        ]
        return found if len(found) > 1 else found[0]

    def _compute_loss(self, module: LightningModule, micro: Micro) -> Tensor:
        """Run the user's training step on another rank's micro-batch, as Lightning does."""
        trainer = self._trainer
        batch = trainer.precision_plugin.convert_input(micro.batch)
        batch = module._on_before_batch_transfer(batch, dataloader_idx=0)
        batch = trainer.strategy.batch_to_device(batch)
        takes_index = len(inspect.signature(module.training_step).parameters) > 1
        given = (batch, micro.extra) if takes_index else (batch,)
        with (
            micro.seeded(self._devices),
            _quiet(module),
            trainer.precision_plugin.train_step_context(),
        ):
            output = module.training_step(*given)
        loss: Any = output if isinstance(output, Tensor) else dict(output or {})["loss"]
        scaled: Tensor = loss / trainer.accumulate_grad_batches
        return scaled if self._scaler is None else self._scaler.scale(scaled)


@contextmanager
def _quiet(module: LightningModule) -> Iterator[None]:
    """Log nothing of a replay: it is another rank's work."""
    module.log = lambda *_, **__: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del module.log


class _Tagged(CheckpointIO):
    """Saves as before, and tells of each file with tags; the strategy calls it on rank 0 alone."""

    def __init__(
        self, inner: CheckpointIO, saved: Callable[[Path, int, dict[str, Any]], None]
    ) -> None:
        self._inner, self._saved = inner, saved

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, *args: Any, **kw: Any) -> None:
        self._inner.save_checkpoint(checkpoint, path, *args, **kw)
        said = dict(checkpoint.get(KEY) or {})
        if said:
            self._saved(Path(path), said.pop("step"), said)

    def load_checkpoint(self, *args: Any, **kw: Any) -> Any:
        return self._inner.load_checkpoint(*args, **kw)

    def remove_checkpoint(self, path: Any) -> None:
        self._inner.remove_checkpoint(path)
        remove_tags(Path(path))

    def teardown(self) -> None:
        self._inner.teardown()
