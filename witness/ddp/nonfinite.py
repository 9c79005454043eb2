"""Did a gradient stop being a number, and on which rank did it begin?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn

from witness.ddp.collectives import any_rank, gather, global_ranks

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Named:
    """The global ranks whose own gradient, and whose copy of the reduced one, is NaN or Inf.

    `own` empty means that every rank's own gradient was finite: the fault arose in the reduction.
    `reduced` then says whether it reached all, or sits in the copies of some.
    """

    own: list[int] = field(default_factory=list)
    reduced: list[int] = field(default_factory=list)


def reduced_norm(params: Sequence[nn.Parameter]) -> Tensor:
    """Give the norm of the gradients as they are after the all-reduce; 0 where there are none.

    The one that `clip_grad_norm_` would use, but that float16 is added up in float32, whose range
    the norm of a scaled gradient needs.
    """
    grads = [param.grad for param in params if param.grad is not None]
    if not any(grad.dtype == torch.float16 for grad in grads):
        return nn.utils.get_total_norm(grads)
    norms = [torch.linalg.vector_norm(grad, dtype=_wide(grad)) for grad in grads]
    total: Tensor = torch.linalg.vector_norm(torch.stack(norms))
    return total


def flag(own_norm: Tensor, reduced_norm: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Agree by one collective whether any gradient norm, own or reduced, is NaN or Inf.

    A NaN or Inf of any rank reaches every reduced gradient, so that one flag stands for the check
    before the all-reduce and for the one after it. It is agreed, int32 [1] on the device and equal
    everywhere, so that a rank whose own copy alone went bad takes no step alone. Every rank must
    call it on every step. A finite gradient whose norm does not fit float32 counts as well.
    """
    fine = torch.isfinite(own_norm) & torch.isfinite(reduced_norm.to(own_norm.device))
    return any_rank(~fine, group)


def name_ranks(
    own_norm: Tensor, reduced_norm: Tensor, group: dist.ProcessGroup | None = None
) -> Named:
    """Say whose gradients are NaN or Inf; called by every rank after a flag."""
    both = torch.stack([own_norm, reduced_norm.to(own_norm.device)])
    bad = gather((~torch.isfinite(both)).to(torch.int32), group).tolist()
    ranks = global_ranks(group)
    own, reduced = ([ranks[at] for at, row in enumerate(bad) if row[side]] for side in (0, 1))
    return Named(own, reduced)


def nonfinite_ranks(own_norm: Tensor, group: dist.ProcessGroup | None = None) -> list[int]:
    """List the global ranks whose own gradient norm is NaN or Inf; called by all after a flag."""
    return name_ranks(own_norm, own_norm, group).own


class SkippedSteps:
    """Watches the steps that a gradient scaler skips, to notice a rank that overflows alone.

    Overflow is normal while the scaler looks for its scale, and then most ranks overflow together.
    One rank alone, step after step, may be a faulty GPU, or data that only this rank sees.
    """

    def __init__(self, limit: int = 8) -> None:
        self._limit = limit
        self._alone: int | None = None
        self._count = 0

    def note(self, skipped: bool, ranks: Sequence[int]) -> int | None:
        """Note a step and whose own gradients overflowed; the same on every rank.

        Gives, and logs as a warning, the rank that was alone in each of the last `limit` skipped
        steps, none applied between them; once. None otherwise.
        """
        alone = ranks[0] if skipped and len(ranks) == 1 else None
        self._count = self._count + 1 if alone is not None and alone == self._alone else 1
        self._alone = alone
        if alone is None or self._count != self._limit:
            return None
        _log.warning(
            "rank %d alone had gradients that are no numbers in %d skipped steps in a row: its GPU "
            "may be faulty, or its data unlike the others'",
            alone,
            self._count,
        )
        return alone


def _wide(grad: Tensor) -> torch.dtype:
    if grad.is_complex():
        return torch.complex128 if grad.dtype == torch.complex128 else torch.complex64
    return torch.float64 if grad.dtype == torch.float64 else torch.float32
