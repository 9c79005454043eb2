"""Did a gradient stop being a number, and on which rank did it begin?"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.collectives import any_rank, gather, global_rank


def flag(own_norm: Tensor, reduced_norm: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Agree by one collective whether any gradient norm, own or reduced, is NaN or Inf.

    A NaN or Inf of any rank reaches every reduced gradient, so that one flag stands for the check
    before the all-reduce and for the one after it. Every rank must call it on every step.
    """
    fine = torch.isfinite(own_norm) & torch.isfinite(reduced_norm)
    return any_rank(~fine, group)


def nonfinite_ranks(own_norm: Tensor, group: dist.ProcessGroup | None = None) -> list[int]:
    """List the global ranks whose own gradient norm is NaN or Inf; called by all after a flag.

    An empty list means that every rank's own gradient was finite: the fault arose in the reduction.
    """
    norms = gather(own_norm.reshape(1).float(), group).cpu()
    bad = (~torch.isfinite(norms)).flatten().nonzero().flatten().tolist()
    return [global_rank(position, group) for position in bad]
