"""How does a Hugging Face Trainer run with the checks between backward and its optimizer step?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, SaveStrategy
except ImportError as missing:
    raise ImportError(
        "witness.ddp.adapters.huggingface needs transformers and accelerate"
    ) from missing

from witness.ddp.adapters.framework import (
    Micro,
    as_ddp,
    leave_holds_behind,
    seeded,
    stop_on,
    write_tags,
)
from witness.ddp.adapters.huggingface_data import SameDataset
from witness.ddp.announcing import Announcer
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule

Rebuild = Callable[[int, int], Sequence[Any]]


class SilentWitness(TrainerCallback):
    """Checks each optimizer step of one `train()`; raises `Stopped` where a check fires.

    Steps are counted as in the names of the Trainer's checkpoints: step 20 is the one that leads
    to `checkpoint-20`. `rebuild(step, rank)` gives the micro-batches that rank trains on at that
    step, as the data loader gives them (`SameDataset` for a map-style data set); without it only
    non-finite gradients and weights are checked. `reporter` and `options` go to the `Guard`.
    """

    def __init__(
        self,
        trainer: Trainer,
        schedule: Schedule,
        rebuild: Rebuild | None = None,
        *,
        reporter: Any = None,
        **options: Any,
    ) -> None:
        self.guard: Guard | None = None
        self._announcer = Announcer(reporter)
        self._trainer, self._schedule, self._rebuild = trainer, schedule, rebuild
        self._options = {"reporter": reporter, "checkpoints": trainer.args.output_dir, **options}
        self._step = ExitStack()
        self._losses: list[Tensor] = []
        self._items: Any = None
        self._captured: list[Tensor] | None = None
        self._training_step = trainer.training_step
        self._backward = trainer.accelerator.backward
        trainer.training_step = self._one_micro_batch  # type: ignore[method-assign,assignment]
        trainer.accelerator.backward = self._see_backward
        trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Attach to the model that the Trainer has wrapped, and compare what was loaded."""
        if self.guard is not None:
            raise RuntimeError("one SilentWitness watches one train(): make a new Trainer")
        if isinstance(self._rebuild, SameDataset):
            self._rebuild.shard()  # refuses at the start what it could not rebuild later
        schedule = self._schedule
        if args.save_strategy == SaveStrategy.STEPS:
            schedule = replace(schedule, ckpt_every=int(state.save_steps))
        assert self._trainer.optimizer is not None
        self.guard = Guard(
            as_ddp(self._trainer.model_wrapped),
            self._trainer.optimizer,
            schedule,
            self._compute_loss,
            None if self._rebuild is None else self._micro_batches,
            start_step=state.global_step + 1,
            micro_batches=args.gradient_accumulation_steps,
            scaler=self._trainer.accelerator.scaler,
            **self._options,
        )
        self._devices = {param.device for param in self.guard.work.params}
        stop_on(self.guard.check_loaded())

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open a step: all its micro-batches run inside."""
        assert self.guard is not None
        self._losses.clear()
        self._step.enter_context(self.guard.forward(state.global_step + 1))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check before the optimizer: where this raises, the weights are untouched."""
        assert self.guard is not None
        self._step.close()
        self.guard.work.micro_batches = len(self._losses)  # an epoch may end with fewer
        stop_on(self.guard.inspect(*self._losses))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compare the replicas if due, and always before a checkpoint may be saved."""
        assert self.guard is not None
        stop_on(self.guard.after_update())
        best = args.save_strategy == SaveStrategy.BEST and control.should_evaluate
        self._before_saving(control.should_save or best)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compare the replicas where a checkpoint is saved at the end of an epoch."""
        best = args.save_strategy == SaveStrategy.BEST and control.should_evaluate
        self._before_saving(control.should_save or best)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the tags beside what was saved."""
        assert self.guard is not None
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if args.should_save:
            write_tags(folder, state.global_step, self.guard.tags())
        if state.is_world_process_zero:
            held = Path(self._options["checkpoints"])
            leave_holds_behind(held, self.guard.start_step, self.guard.tags())
        self._announcer.tell("checkpoint", state.global_step, str(folder), self.guard.tags())

    def _before_saving(self, wanted: bool) -> None:
        assert self.guard is not None
        if wanted and self._schedule.check_on_checkpoint:
            stop_on(self.guard.check_weights())

    def _one_micro_batch(self, model: nn.Module, inputs: Any, items: Any = None) -> Tensor:
        """Stand in for `Trainer.training_step`: random numbers by step, rank and micro-batch."""
        assert self.guard is not None
        self._items = items
        if self._rebuild is None:
            return self._training_step(model, inputs, items)
        rank = self._trainer.accelerator.process_index
        with seeded(self._devices, self.guard.step, rank, len(self._losses)):
            return self._training_step(model, inputs, items)

    def _see_backward(self, loss: Tensor, **options: Any) -> None:
        """Stand in for `Accelerator.backward`: note the loss; in a replay, go no further."""
        if self._captured is not None:
            self._captured.append(loss)
            return
        self._losses.append(loss.detach())
        self._backward(loss, **options)

    def _compute_loss(self, module: nn.Module, micro: Micro) -> Tensor:
        """Run the Trainer's own training step on another rank's micro-batch, without backward."""
        with micro.seeded(self._devices), self._capturing() as captured:
            self._training_step(module, micro.batch, micro.extra)
        return captured[0]

    @contextmanager
    def _capturing(self) -> Iterator[list[Tensor]]:
        captured = self._captured = []
        try:
            yield captured
        finally:
            self._captured = None

    def _micro_batches(self, step: int, rank: int) -> Any:
        """Rebuild a rank's step, with the number of labels that its losses were divided by."""
        assert self._rebuild is not None
        batches, items = list(self._rebuild(step, rank)), self._items
        if not self._trainer.args.average_tokens_across_devices:
            device = self._trainer.args.device
            _, items = self._trainer.get_batch_samples(iter(batches), len(batches), device)
        found = [Micro(batch, step, rank, i, items) for i, batch in enumerate(batches)]
        return found if len(self._losses) > 1 else found[0]
