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

from witness.ddp import alarms, nonfinite, start
from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.alarms import Alarm
from witness.ddp.announcing import Announcer
from witness.ddp.applying import Update
from witness.ddp.call_order import CallOrder
from witness.ddp.collectives import global_ranks
from witness.ddp.determinism import advice, deterministic
from witness.ddp.divergent import as_keys
from witness.ddp.further_audits import further_audits
from witness.ddp.gradients import LocalGradients
from witness.ddp.placement import in_job_numbers
from witness.ddp.replay import Work, no_batch, own_words, refuse_exchange
from witness.ddp.ring_audit import RingResult, confirm, ring_audit
from witness.ddp.schedule import Schedule
from witness.ddp.stopping import Stopping
from witness.ddp.weights import find_divergent

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
        after_alarm: AfterAlarm | None = None,
    ) -> None:
        """Attach to the model and check the placement of the ranks; a collective call.

        `compute_loss(module, batch)` gives what backward is called on, before a scaler;
        `rebuild_batch(step, rank)` exactly what that rank trains on at that step, a sequence of
        `micro_batches` where that is more than 1; None where nobody can, and then nothing is
        replayed and the schedule must have no audits. `reporter` None tells nobody. `checkpoints`
        is the folder where an alarm leaves its hold marker. `independent_nodes` False lets audits
        run where ranks share nodes, for trials. `seed` seeds all generators of every step from
        it, the step and the rank, so that dropout is replayed without being asked for.
        """
        if rebuild_batch is None and schedule.audit_every:
            raise ValueError("audits need rebuild_batch: give it, or Schedule(audit_every=0)")
        self.schedule, self.start_step, self.group = schedule, start_step, group
        self.optimizer, self._replays = optimizer, rebuild_batch is not None
        self._announcer = Announcer(reporter)
        self.rank_map = start.begin(schedule, self._announcer, group, independent_nodes)
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
            start.advise(advice(self._device, schedule.deterministic_audits), group)
        self._skipped = nonfinite.SkippedSteps()
        self._stopping = Stopping(
            self.work,
            self._announcer,
            self.rank_map,
            group,
            checkpoints,
            after_alarm if self._replays else replace(after_alarm or AfterAlarm(), replays=0),
        )
        self.settle: Callable[[Alarm], Alarm] | None = None  # asked before an alarm is told
        self._order = CallOrder(start_step)
        self.last_audit: int | None = None
        self.last_weights: int | None = None
        self._norm = torch.zeros(())

    @property
    def step(self) -> int:
        """Give the step under way, or the last one."""
        return self._order.step

    @property
    def last_update(self) -> int | None:
        """Give the last step that was applied; None before the first."""
        return self._order.applied

    @contextmanager
    def forward(self, step: int) -> Iterator[None]:
        """Run one step's forward and backward, with deterministic kernels where it is audited.

        All micro-batches of the step run inside; all but the last under the model's `no_sync()`.
        """
        with self._order.forward(step):
            self._announcer.step_began()
            self.gradients.reset(record=self._deterministic)
            self.work.begin(step, dist.get_rank())
            with deterministic() if self._deterministic else nullcontext():
                yield

    def update(self, *losses: Tensor) -> Alarm | None:
        """Check the step and apply it; give the alarm that stopped it, None where it went well.

        After an alarm the gradients are dropped and, but for a weights alarm, the step is not
        applied. `losses` are the step's losses, one a micro-batch in their order, not scaled.
        """
        alarm = self.inspect(*losses)
        if alarm is None:
            self._update.apply(self._norm)
            alarm = self.after_update()
        return alarm

    def inspect(self, *losses: Tensor) -> Alarm | None:
        """Check the step without applying it, where a framework steps the optimizer itself."""
        self.work.refuse_losses(losses)
        self._order.inspected()
        own = self.gradients.norm()
        self._norm = nonfinite.reduced_norm(self.gradients.params)
        flagged = bool(nonfinite.flag(own, self._norm, self.group).item())
        named = nonfinite.Named()
        if flagged:
            named = nonfinite.name_ranks(own, self._norm, self.group)
        else:
            self._passed("nonfinite")
        if self._update.scaled:
            # What overflows under a scaler is skipped by it, and proves nothing.
            self._skipped.note(flagged, named.own)
            named = nonfinite.Named()
        return self._judge(named, losses)

    def _judge(self, named: nonfinite.Named, losses: tuple[Tensor, ...]) -> Alarm | None:
        due = named.own or self.schedule.is_audit(self.step)
        alarm = self._ring(named.own, losses) if due else None
        if alarm is None and named.reduced:
            alarm = self._alarm("reduced gradient", reduced_nonfinite=named.reduced)
        return self.stop(alarm)

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
        return None if self.last_weights == self._order.done else self._compare()

    def tags(self) -> dict[str, int | None]:
        """Give the tags of a checkpoint saved now: the steps of the last passes."""
        return {"last_audit_pass": self.last_audit, "last_weight_check_pass": self.last_weights}

    def stop(self, alarm: Alarm | None) -> Alarm | None:
        """Stop for an alarm, of a check beside the guard's as well; None goes through."""
        if alarm is None:
            return None
        alarm = alarm if self.settle is None else self.settle(alarm)
        self._order.stop(f"{alarm['check']}, step {alarm['step']}")
        self._update.drop()
        return self._stopping.stop(alarm, self._deterministic)

    def go_on(self, step: int) -> None:
        """Take steps again after an alarm, from `step` on, once a state from before it is restored.

        Passes up to then are forgotten: they belong to the state that was left behind.
        """
        self._order.go_on(step)
        self.start_step, self.last_audit, self.last_weights = step, None, None
        self._update.drop()

    def _ring(self, named: list[int], losses: tuple[Tensor, ...]) -> Alarm | None:
        if not self._replays:
            return self._alarm(
                "compute", nonfinite=named, mismatched_pairs=[], culprits=[], verdicts=[]
            )
        with_grads = self._deterministic
        own = own_words(losses, self.gradients.fingerprints() if with_grads else None)
        offset = self.schedule.offset(self.step, dist.get_world_size(self.group))
        with deterministic() if with_grads else nullcontext():
            ring = ring_audit(self.work, own, self.step, offset, with_grads, self.group)
            if named or ring.pairs:
                return self._compute_alarm(named, ring, own, with_grads)
        ring.raise_failed()
        if self.schedule.is_audit(self.step):
            self.last_audit = self.step
            self._passed("ring", mode=self._kernel_mode, peer_offset=offset)
        return None

    def _compute_alarm(
        self, named: list[int], ring: RingResult, own: Tensor, with_grads: bool
    ) -> Alarm:
        verdicts = confirm(self.work, ring.ambiguous, ring, self.step, with_grads, self.group)
        base = self.schedule.peer_offset
        further = further_audits(self.work, own, ring, self.step, base, with_grads, self.group)
        more: dict[str, Any] = {"further_audits": further} if further else {}
        return self._alarm(
            "compute",
            nonfinite=named,
            mismatched_pairs=[list(pair) for pair in ring.pairs],
            culprits=ring.culprits,
            verdicts=verdicts,
            peer_offset=ring.offset,
            digests=ring.digests,
            replay_failed=ring.failed,
            **as_keys(ring.differing.rows, self.work.names()),
            **more,
        )

    def _compare(self) -> Alarm | None:
        params = dict(self.work.module.named_parameters())
        result = find_divergent(list(params.values()), self.group)
        done = self._order.done
        if result.diverged:
            applied = done >= self.start_step
            keys = as_keys(result.tensors, list(params))
            return self.stop(
                self._alarm(
                    "weights", applied, suspects=result.suspects, digests=result.digests, **keys
                )
            )
        self.last_weights = done if done >= 0 else None
        self._passed("weights")
        return None

    def _alarm(self, check: str, applied: bool = False, **more: Any) -> Alarm:
        offset = more.pop("peer_offset", self.schedule.peer_offset)
        ranks = global_ranks(self.group)
        world_size, ahead = in_job_numbers(ranks, offset, dist.get_world_size())
        if ahead is None:
            more.pop("digests", None)
        return alarms.document(
            check,
            self.step,
            self.start_step,
            self.tags(),
            update_applied=applied,
            world_size=world_size,
            peer_offset=ahead,
            kernel_mode=self._kernel_mode,
            schedule=self.schedule.as_document(self.start_step),
            **more,
        )

    @property
    def _device(self) -> torch.device:
        return self.gradients.params[0].device

    @property
    def _deterministic(self) -> bool:
        return self.schedule.deterministic_audits and self.schedule.is_audit(self.step)

    @property
    def _kernel_mode(self) -> str:
        return "deterministic" if self._deterministic else "default"

    def _passed(self, check: str, **how: Any) -> None:
        gpus, took = dist.get_world_size(self.group), self._announcer.step_time_s
        self._announcer.tell("passed", check, self.step, gpus=gpus, step_time_s=took, **how)
