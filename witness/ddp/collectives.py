"""How do ranks exchange a few numbers, whatever torch calls it in this version?"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def gather(words: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Collect one tensor of equal shape from every rank of the group: shape [ranks, *shape]."""
    size = dist.get_world_size(group)
    out = words.new_empty((size, *words.shape))
    _gather(out.view(size * max(words.numel(), 1)), words.contiguous().view(-1), group=group)
    return out


def any_rank(flag: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Tell every rank whether the boolean scalar is set on any: one collective, no host sync."""
    agreed = flag.to(torch.int32).reshape(1)
    dist.all_reduce(agreed, op=dist.ReduceOp.MAX, group=group)
    return agreed


def global_rank(position: int, group: dist.ProcessGroup | None = None) -> int:
    """Give the global rank at a position of the group."""
    return position if group is None else dist.get_global_rank(group, position)
