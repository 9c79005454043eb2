"""How do ranks exchange a few numbers, whatever torch calls it in this version?"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def gather(words: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Collect one tensor of equal shape from every rank of the group: shape [ranks, *shape].

    Every rank of the group must call it. The result lies on the tensor's device.
    """
    size = dist.get_world_size(group)
    out = words.new_empty((size, *words.shape))
    if words.numel():
        _gather(out.view(size * words.numel()), words.contiguous().view(-1), group=group)
    return out


def any_rank(flag: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """Tell every rank whether the boolean scalar is set on any: one collective, no host sync."""
    agreed = flag.to(torch.int32).reshape(1)
    dist.all_reduce(agreed, op=dist.ReduceOp.MAX, group=group)
    return agreed


def global_rank(position: int, group: dist.ProcessGroup | None = None) -> int:
    """Give the global rank at a position of the group."""
    return position if group is None else dist.get_global_rank(group, position)


def global_ranks(group: dist.ProcessGroup | None = None) -> list[int]:
    """List the global ranks of the group in the order of their positions."""
    if group is None:
        return list(range(dist.get_world_size()))
    # One by one torch looks through all of them each time, which large groups would feel.
    ranks: list[int] = dist.get_process_group_ranks(group)
    return ranks


def collectives_issued(*groups: dist.ProcessGroup | None) -> tuple[int, ...]:
    """Count the collectives that this rank began so far: on the whole job, then on each group.

    A backend that does not count gives zeros, so that a difference is a proof and equality is none.
    Collectives on other groups are not seen.
    """
    return tuple(_count(group) for group in (None, *groups))


def _count(group: dist.ProcessGroup | None) -> int:
    counted: Any = dist.group.WORLD if group is None else group
    try:
        return int(counted._get_sequence_number_for_group())
    except RuntimeError:
        return 0
