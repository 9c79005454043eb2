"""Whose weights differ from those of a strict majority of replicas?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.collectives import gather, global_rank
from witness.ddp.fingerprints import fingerprints, fold
from witness.rules.majority import suspects_by_tensor


@dataclass(frozen=True, slots=True)
class WeightResult:
    """One comparison of all replicas.

    `suspects` is None where replicas disagree without a strict majority; `tensors` lists the rows
    that differ. `digests` holds every rank's digest where replicas differ, else nothing.
    """

    diverged: bool
    suspects: list[int] | None = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    digests: dict[str, dict[str, str]] = field(default_factory=dict)


@torch.no_grad()
def find_divergent(
    params: Sequence[Tensor], group: dist.ProcessGroup | None = None
) -> WeightResult:
    """Compare tensors that must be equal on every rank of the group; every rank must call it.

    One collective of two numbers settles the healthy case; the table is gathered only when they
    differ. Not proven by equality: that the common weights are right.
    """
    table = fingerprints(params)
    digest = fold(table)
    extremes = torch.stack([digest, ~digest])
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX, group=group)
    largest, not_smallest = extremes.tolist()
    if largest == ~not_smallest:
        return WeightResult(diverged=False)
    return _name(gather(table, group), group)


def _name(tables: Tensor, group: dist.ProcessGroup | None) -> WeightResult:
    ranks = [global_rank(position, group) for position in range(tables.shape[0])]
    differs = (tables != tables[0]).any(dim=2).any(dim=0)
    rows = differs.nonzero().flatten().tolist()
    copies = {
        rank: {str(row): tuple(tables[position, row].tolist()) for row in rows}
        for position, rank in enumerate(ranks)
    }
    counted = suspects_by_tensor(copies)
    # A tensor without a strict majority leaves it open who is right, whatever another one says.
    suspects = None if counted.undecided or counted.suspects is None else list(counted.suspects)
    digests = {
        str(rank): {"own": format(int(fold(tables[position])) & (2**64 - 1), "016x")}
        for position, rank in enumerate(ranks)
    }
    return WeightResult(True, suspects, rows, digests)
