"""May this step be applied, and if not, what is the alarm?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp import nonfinite
from witness.ddp.determinism import deterministic
from witness.ddp.gradients import LocalGradients
from witness.ddp.replay import Work, own_words
from witness.ddp.ring_audit import RingResult, confirm, ring_audit
from witness.ddp.schedule import Schedule
from witness.ddp.weights import find_divergent
from witness.rules.suspect_window import reported_window

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

Alarm = dict[str, Any]


class Guard:
    """Stands between backward and the optimizer: checks first, then lets the update happen.

    Every rank must build it and call it alike. The loop changes two lines: forward and backward
    run inside `forward(step)`, and `update(loss)` takes the place of `optimizer.step()`.
    """

    def __init__(
        self,
        model: DistributedDataParallel,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        compute_loss: Callable[[Any, Any], Tensor],
        rebuild_batch: Callable[[int, int], Any],
        *,
        start_step: int = 0,
        micro_batches: int = 1,
        group: dist.ProcessGroup | None = None,
        reporter: Any = None,
    ) -> None:
        self.schedule, self.start_step = schedule, start_step
        self.optimizer, self.group, self.reporter = optimizer, group, reporter
        self.gradients = LocalGradients.attach(model, group)
        self.work = Work(
            model.module, self.gradients.params, compute_loss, rebuild_batch, micro_batches
        )
        self.last_audit: int | None = None
        self.last_weights: int | None = None
        self.step = start_step
        self._total = torch.zeros(())

    @contextmanager
    def forward(self, step: int) -> Iterator[None]:
        """Run one step's forward and backward, with deterministic kernels where it is audited."""
        self.step = step
        self.gradients.reset(record=self._deterministic)
        if self.schedule.is_audit(step):
            self.work.remember_buffers()
        with deterministic() if self._deterministic else nullcontext():
            yield

    def update(self, *losses: Tensor) -> Alarm | None:
        """Check the step and apply it; give the alarm that stopped it, None where it went well.

        After an alarm the gradients are dropped and, but for a weights alarm, the step is not
        applied. `losses` are the step's losses, one a micro-batch in their order.
        """
        alarm = self.inspect(*losses)
        if alarm is None:
            self._apply()
            alarm = self.after_update()
        return alarm

    def inspect(self, *losses: Tensor) -> Alarm | None:
        """Check the step without applying it, where a framework steps the optimizer itself."""
        grads = [p.grad for p in self.gradients.params if p.grad is not None]
        own, self._total = self.gradients.norm(), torch.nn.utils.get_total_norm(grads)
        flagged = bool(nonfinite.flag(own, self._total, self.group).item())
        named = nonfinite.nonfinite_ranks(own, self.group) if flagged else []
        alarm = self._ring(named, losses) if named or self.schedule.is_audit(self.step) else None
        if alarm is None and flagged:
            alarm = self._alarm("reduced gradient")
        if alarm is not None:
            self.optimizer.zero_grad(set_to_none=True)
        return alarm

    def after_update(self) -> Alarm | None:
        """Compare the replicas if they are due, after a framework has applied the step."""
        return self.check_weights() if self.schedule.is_check(self.step) else None

    def check_loaded(self) -> Alarm | None:
        """Compare the replicas right after a checkpoint was loaded, before the first step."""
        self.step = self.start_step
        return self.check_weights()

    def check_weights(self) -> Alarm | None:
        """Compare the replicas now; every rank must call it."""
        result = find_divergent(list(self.work.module.parameters()), self.group)
        if result.diverged:
            return self._alarm("weights", digests=result.digests, suspects=result.suspects)
        self.last_weights = self.step
        return None

    def tags(self) -> dict[str, int | None]:
        """Give the tags of a checkpoint saved now: the steps of the last passes."""
        return {"last_audit_pass": self.last_audit, "last_weight_check_pass": self.last_weights}

    @property
    def _deterministic(self) -> bool:
        return self.schedule.deterministic_audits and self.schedule.is_audit(self.step)

    def _ring(self, named: list[int], losses: tuple[Tensor, ...]) -> Alarm | None:
        with_grads = self._deterministic
        own = own_words(losses, self.gradients.fingerprints() if with_grads else None)
        offset = self.schedule.offset(self.step, dist.get_world_size(self.group))
        with deterministic() if with_grads else nullcontext():
            ring = ring_audit(self.work, own, self.step, offset, with_grads, self.group)
            if named or ring.pairs:
                return self._compute_alarm(named, ring, with_grads)
        if self.schedule.is_audit(self.step):
            self.last_audit = self.step
        return None

    def _compute_alarm(self, named: list[int], ring: RingResult, with_grads: bool) -> Alarm:
        verdicts = confirm(self.work, ring.ambiguous, ring, self.step, with_grads, self.group)
        return self._alarm(
            "compute",
            ring.digests,
            nonfinite=named,
            mismatched_pairs=[list(pair) for pair in ring.pairs],
            culprits=ring.culprits,
            verdicts=verdicts,
            peer_offset=ring.offset,
        )

    def _apply(self) -> None:
        if self.schedule.max_grad_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(
                self.gradients.params, self.schedule.max_grad_norm, self._total
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _alarm(self, check: str, digests: Any = None, **named: Any) -> Alarm:
        window = reported_window(
            check, self.step, self.start_step, self.last_audit, self.last_weights
        )
        alarm: Alarm = {
            "check": check,
            "step": self.step,
            **named,
            "suspect_window": list(window or (self.step, self.step)),
            **self.tags(),
            "world_size": dist.get_world_size(self.group),
            "kernel_mode": "deterministic" if self._deterministic else "default",
            "schedule": self.schedule.as_document(self.start_step),
        }
        alarm.setdefault("peer_offset", self.schedule.peer_offset)
        if digests:
            alarm["digests"] = digests
        return alarm
