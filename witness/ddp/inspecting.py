"""Which check fires on a step, what passed, and how does that read as an alarm?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import Tensor

from witness.ddp import alarms, nonfinite
from witness.ddp.alarms import Alarm
from witness.ddp.announcing import Announcer
from witness.ddp.collectives import global_ranks
from witness.ddp.determinism import deterministic
from witness.ddp.divergent import as_keys
from witness.ddp.further_audits import further_audits
from witness.ddp.gradients import LocalGradients
from witness.ddp.placement import in_job_numbers
from witness.ddp.replay import Work, own_words
from witness.ddp.ring_audit import RingResult, confirm, ring_audit
from witness.ddp.schedule import Schedule
from witness.ddp.weights import find_divergent


@dataclass(frozen=True, slots=True)
class Norms:
    """A step's gradient norms: this rank's own, the reduced one, and whether any is no number.

    `flag` is agreed, int32 [1] on the device and equal on every rank.
    """

    own: Tensor
    reduced: Tensor
    flag: Tensor


class Inspection:
    """The checks of one job, with the steps at which they last passed.

    All methods that compare are collective calls. `replays` False: nothing can be replayed.
    """

    def __init__(
        self,
        schedule: Schedule,
        work: Work,
        gradients: LocalGradients,
        announcer: Announcer,
        group: dist.ProcessGroup | None,
        replays: bool,
    ) -> None:
        self.schedule, self.work, self.gradients = schedule, work, gradients
        self._announcer, self._group, self._replays = announcer, group, replays
        self._skipped = nonfinite.SkippedSteps()
        self.begin(0)

    def begin(self, start_step: int) -> None:
        """Begin at a step, with nothing passed since."""
        self.start_step = start_step
        self.last_audit: int | None = None
        self.last_weights: int | None = None

    def tags(self) -> dict[str, int | None]:
        """Give the tags of a checkpoint saved now: the steps of the last passes."""
        return {"last_audit_pass": self.last_audit, "last_weight_check_pass": self.last_weights}

    def is_deterministic(self, step: int) -> bool:
        """Tell whether a step runs with deterministic kernels and compares gradients."""
        return self.schedule.deterministic_audits and self.schedule.is_audit(step)

    def norms(self) -> Norms:
        """Measure the gradients of the step just computed; the host waits for nothing here."""
        own = self.gradients.norm()
        reduced = nonfinite.reduced_norm(self.gradients.params)
        return Norms(own, reduced, nonfinite.flag(own, reduced, self._group))

    def check_gradients(
        self, step: int, norms: Norms, losses: tuple[Tensor, ...], scaled: bool
    ) -> Alarm | None:
        """Check for NaN and Inf, then replay where an audit is due or a rank's own gradient is bad.

        `scaled`: what overflows is skipped by the gradient scaler, and proves nothing, unless only
        some copies of one sum are bad: the scalers of these ranks alone would skip.
        """
        named = nonfinite.Named()
        if bool(norms.flag.item()):
            named = nonfinite.name_ranks(norms.own, norms.reduced, self._group)
        else:
            self.passed("nonfinite", step)
        if scaled:
            self._skipped.note(bool(named.reduced or named.own), named.own)
            some = 0 < len(named.reduced) < dist.get_world_size(self._group)
            named = nonfinite.Named(reduced=named.reduced if some else [])
        due = named.own or self.schedule.is_audit(step)
        alarm = self._ring(step, named.own, losses) if due else None
        if alarm is None and named.reduced:
            alarm = self._alarm("reduced gradient", step, reduced_nonfinite=named.reduced)
        return alarm

    def compare(self, done: int) -> Alarm | None:
        """Compare the replicas, whose last applied step is `done`, one before the start if none."""
        params = dict(self.work.module.named_parameters())
        result = find_divergent(list(params.values()), self._group)
        step = max(done, self.start_step)
        if result.diverged:
            return self._alarm(
                "weights",
                step,
                applied=done >= self.start_step,
                suspects=result.suspects,
                digests=result.digests,
                **as_keys(result.tensors, list(params)),
            )
        self.last_weights = done if done >= 0 else None
        self.passed("weights", step)
        return None

    def passed(self, check: str, step: int, **how: Any) -> None:
        """Report that a check passed at a step."""
        gpus, took = dist.get_world_size(self._group), self._announcer.step_time_s
        self._announcer.tell("passed", check, step, gpus=gpus, step_time_s=took, **how)

    def _ring(self, step: int, named: list[int], losses: tuple[Tensor, ...]) -> Alarm | None:
        if not self._replays:
            nothing: dict[str, Any] = {"mismatched_pairs": [], "culprits": [], "verdicts": []}
            return self._alarm("compute", step, nonfinite=named, **nothing)
        with_grads = self.is_deterministic(step)
        own = own_words(losses, self.gradients.fingerprints() if with_grads else None)
        offset = self.schedule.offset(step, dist.get_world_size(self._group))
        with deterministic() if with_grads else nullcontext():
            ring = ring_audit(self.work, own, step, offset, with_grads, self._group)
            if named or ring.pairs:
                return self._compute_alarm(step, named, ring, own, with_grads)
        ring.raise_failed()
        if self.schedule.is_audit(step):
            self.last_audit = step
            self.passed("ring", step, mode=self._kernel_mode(step), peer_offset=offset)
        return None

    def _compute_alarm(
        self, step: int, named: list[int], ring: RingResult, own: Tensor, with_grads: bool
    ) -> Alarm:
        verdicts = confirm(self.work, ring.ambiguous, ring, step, with_grads, self._group)
        base = self.schedule.peer_offset
        further = further_audits(self.work, own, ring, step, base, with_grads, self._group)
        more: dict[str, Any] = {"further_audits": further} if further else {}
        return self._alarm(
            "compute",
            step,
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

    def _alarm(self, check: str, step: int, applied: bool = False, **more: Any) -> Alarm:
        offset = more.pop("peer_offset", self.schedule.peer_offset)
        ranks = global_ranks(self._group)
        world_size, ahead = in_job_numbers(ranks, offset, dist.get_world_size())
        if ahead is None:
            more.pop("digests", None)
        return alarms.document(
            check,
            step,
            self.start_step,
            self.tags(),
            update_applied=applied,
            world_size=world_size,
            peer_offset=ahead,
            kernel_mode=self._kernel_mode(step),
            schedule=self.schedule.as_document(self.start_step),
            **more,
        )

    def _kernel_mode(self, step: int) -> str:
        return "deterministic" if self.is_deterministic(step) else "default"
