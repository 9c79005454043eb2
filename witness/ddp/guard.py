"""May this step be applied, and if not, what is the alarm?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp import start
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.alarms import Alarm
from witness.ddp.announcing import Announcer
from witness.ddp.applying import Update
from witness.ddp.call_order import CallOrder
from witness.ddp.deferred import DeferredFlag, Pending
from witness.ddp.determinism import advice, deterministic
from witness.ddp.gradients import LocalGradients
from witness.ddp.inspecting import Inspection, Norms
from witness.ddp.replay import Work, no_batch, refuse_exchange
from witness.ddp.schedule import Schedule
from witness.ddp.stopping import Stopping

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

_log = logging.getLogger(__name__)


class Guard:
    """Stands between backward and the optimizer: checks first, then lets the update happen.

    Every rank must build it and call it alike. The loop changes two lines: forward and backward
    run inside `forward(step)`, and `update(loss)` takes the place of `optimizer.step()`. After an
    alarm it refuses further steps until `go_on`.
    """

    def __init__(
        self,
        model: DistributedDataParallel,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        compute_loss: Callable[[Any, Any], Tensor],
        rebuild_batch: Callable[[int, int], Any] | None,
        *,
        start_step: int = 0,
        micro_batches: int = 1,
        group: dist.ProcessGroup | None = None,
        reporter: Any = None,
        scaler: Any = None,
        checkpoints: Any = None,
        independent_nodes: bool = True,
        seed: int | None = None,
        deferred: bool = False,
        after_alarm: AfterAlarm | None = None,
    ) -> None:
        """Attach to the model and check the placement of the ranks; a collective call.

        `compute_loss(module, batch)` gives what backward is called on, before a scaler;
        `rebuild_batch(step, rank)` exactly what that rank trains on at that step, a sequence of
        `micro_batches` where that is more than 1; None where nobody can, and then nothing is
        replayed and the schedule must have no audits. `reporter` None tells nobody. `checkpoints`
        is the folder where an alarm leaves its hold marker. `independent_nodes` False lets audits
        run where ranks share nodes, for trials. `group` None is the model's own. `seed` seeds all
        generators of every step from it, the step and the rank, so that dropout is replayed without
        being asked for. `deferred` lets the device skip a bad step by itself, and the host learn of
        it a step later, so that no step waits for the host; for optimizers made with `fused=True`,
        without a scaler.
        """
        if rebuild_batch is None and schedule.audit_every:
            raise ValueError("audits need rebuild_batch: give it, or Schedule(audit_every=0)")
        if group is None and model.process_group is not dist.group.WORLD:
            group = model.process_group
        self.group, self.optimizer = group, optimizer
        self._announcer = Announcer(reporter)
        device = next(model.parameters()).device
        self.rank_map, schedule = start.begin(
            schedule, self._announcer, group, independent_nodes, device, start_step
        )
        self.schedule = schedule
        self.gradients = LocalGradients.attach(model, group)
        self._update = Update(optimizer, self.gradients.params, schedule.max_grad_norm, scaler)
        self.work = Work(
            model.module,
            self.gradients.params,
            compute_loss,
            rebuild_batch or no_batch,
            micro_batches,
            self._update.scale,
            group,
            seed,
        )
        if schedule.audit_every:
            refuse_exchange(model.module)
            start.advise(
                advice(self.gradients.params[0].device, schedule.deterministic_audits), group
            )
        replays = rebuild_batch is not None
        self._inspection = Inspection(
            schedule, self.work, self.gradients, self._announcer, group, replays
        )
        self._inspection.begin(start_step)
        self._stopping = Stopping(
            self.work,
            self._announcer,
            self.rank_map,
            group,
            checkpoints,
            after_alarm if replays else replace(after_alarm or AfterAlarm(), replays=0),
        )
        self.settle: Callable[[Alarm], Alarm] | None = None  # asked before an alarm is told
        self._order = CallOrder(start_step)
        self._deferred = self._update.deferred() if deferred else None
        self._unread: int | None = None
        self._norms: Norms | None = None

    @property
    def step(self) -> int:
        """Give the step under way, or the last one."""
        return self._order.step

    @property
    def last_update(self) -> int | None:
        """Give the last step that was applied; None before the first."""
        return self._order.applied

    @property
    def start_step(self) -> int:
        """Give the step at which the job, or its newest resumption, began."""
        return self._inspection.start_step

    @contextmanager
    def forward(self, step: int) -> Iterator[None]:
        """Run one step's forward and backward, with deterministic kernels where it is audited.

        All micro-batches of the step run inside; all but the last under the model's `no_sync()`.
        """
        with self._order.forward(step):
            self._announcer.step_began()
            exact = self._inspection.is_deterministic(step)
            self.gradients.reset(record=exact)
            self.work.begin(step, dist.get_rank())
            with deterministic() if exact else nullcontext():
                yield

    def update(self, *losses: Tensor) -> Alarm | None:
        """Check the step and apply it; give the alarm that stopped it, None where it went well.

        After an alarm the gradients are dropped and, but for a weights alarm, the step is not
        applied. `losses` are the step's losses, one a micro-batch in their order, not scaled.
        Where the guard defers, the alarm may be that of the step before, which was not applied.
        """
        if self._deferred is not None and not self._waits(self.step):
            return self._update_first(self._deferred, losses)
        alarm = self.inspect(*losses)
        if alarm is None:
            assert self._norms is not None
            self._update.apply(self._norms.reduced)
            alarm = self.after_update()
        return alarm

    def inspect(self, *losses: Tensor) -> Alarm | None:
        """Check the step without applying it, where a framework steps the optimizer itself."""
        self.work.refuse_losses(losses)
        self._order.inspected()
        alarm = self._late()
        if alarm is not None:
            return alarm
        self._norms = self._inspection.norms()
        scaled = self._update.scaled
        return self.stop(self._inspection.check_gradients(self.step, self._norms, losses, scaled))

    def after_update(self) -> Alarm | None:
        """Compare the replicas if they are due, after the step that was inspected is applied."""
        self._order.updated()
        return self._compare() if self.schedule.is_check(self.step) else None

    def check_loaded(self) -> Alarm | None:
        """Compare the replicas right after a checkpoint was loaded, before the first step."""
        self._order.between_steps("check_loaded()")
        return self._compare()

    def check_weights(self) -> Alarm | None:
        """Compare the replicas now, unless this step's weights passed already.

        Every rank must call it; for checkpoints that are saved outside the schedule.
        """
        self._order.between_steps("check_weights()")
        alarm = self._late()
        if alarm is not None or self._inspection.last_weights == self._order.done:
            return alarm
        return self._compare()

    def finish(self) -> Alarm | None:
        """Learn of the last step what the host has not read yet; after the loop, on every rank.

        Needed where the guard defers; else there is nothing to learn.
        """
        self._order.between_steps("finish()")
        return self._late()

    def tags(self) -> dict[str, int | None]:
        """Give the tags of a checkpoint saved now: the steps of the last passes."""
        return self._inspection.tags()

    def saved(self, step: int, uri: object) -> None:
        """Report a checkpoint that was saved after a step, with its tags; for savings of one's own.

        Not needed where `Checkpoints` has the reporter: it reports what it saves.
        """
        self._announcer.tell("checkpoint", step, str(uri), self.tags())

    def stop(self, alarm: Alarm | None) -> Alarm | None:
        """Stop for an alarm, of a check beside the guard's as well; None goes through."""
        if alarm is None:
            return None
        try:
            alarm = alarm if self.settle is None else self.settle(alarm)
        except Exception:
            _log.exception("the alarm could not be settled, and is told as it is")
        self._order.stop(f"{alarm['check']}, step {alarm['step']}")
        self._update.drop()
        exact = self._inspection.is_deterministic(alarm["step"])
        return self._stopping.stop(alarm, exact)

    def go_on(self, step: int) -> None:
        """Take steps again after an alarm, from `step` on, once a state from before it is restored.

        Passes up to then are forgotten: they belong to the state that was left behind.
        """
        self._order.go_on(step)
        if self._deferred is not None:
            self._deferred.read()
        self._unread = None
        self._inspection.begin(step)
        self._update.drop()

    def _waits(self, step: int) -> bool:
        """Tell whether the host has to know at once: something is compared or saved after it."""
        on = self.schedule
        return on.is_audit(step) or on.is_check(step) or on.is_checkpoint(step)

    def _compare(self) -> Alarm | None:
        return self.stop(self._inspection.compare(self._order.done))

    def _update_first(self, deferred: DeferredFlag, losses: tuple[Tensor, ...]) -> Alarm | None:
        """Queue check and update for the device; learn only what became of the step before."""
        self.work.refuse_losses(losses)
        self._order.inspected()
        alarm = self._late()
        if alarm is not None:
            return alarm
        norms = self._inspection.norms()
        kept = tuple(loss.detach() for loss in losses)
        pending = Pending(self.step, norms.own, norms.reduced, kept, self.work.buffers.values())
        self._update.clip(norms.reduced)
        deferred.step(norms.flag, pending)
        self._update.drop()
        self._unread = self.step
        self._order.updated()
        return None

    def _late(self) -> Alarm | None:
        """Read what the device decided about the step before, where that was left for later."""
        if self._deferred is None or self._unread is None:
            return None
        pending, step = self._deferred.read(), self._unread
        self._unread = None
        if pending is None:
            self._inspection.passed("nonfinite", step)
            return None
        self.work.buffers.go_back(pending.buffers)
        flag = torch.ones(1, dtype=torch.int32, device=pending.own.device)
        norms = Norms(pending.own, pending.reduced, flag)
        return self.stop(self._inspection.check_gradients(step, norms, pending.losses, False))
