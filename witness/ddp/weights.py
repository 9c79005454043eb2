"""Whose weights differ from those of a strict majority of replicas?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.collectives import gather, global_ranks
from witness.ddp.fingerprints import fingerprints, fold
from witness.rules.majority import suspects_by_majority, suspects_by_tensor

MASK = 2**64 - 1
VERSION = 2
"""Three sums a tensor, so that regular patterns of equal flips are seen too."""
DIGEST = "digest"
"""Stands for the digest itself, where a rank computed that one wrong from equal sums."""


@dataclass(frozen=True, slots=True)
class WeightResult:
    """One comparison of all replicas.

    `suspects` is None where replicas disagree without a strict majority; `tensors` lists the rows
    that differ, which is none where only a rank's digest was computed wrong. `digests` holds every
    rank's digest where replicas differ, else nothing: `own`, from which a majority over whole
    replicas gives the same suspects; `whole` where it does not, because several ranks differ in
    different tensors.
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

    One collective of two numbers settles the healthy case, with one wait for the device; the table
    is gathered only when they differ. Not proven by equality: that the common weights are right.
    Raises ValueError where the tensors lie on more than one device.
    """
    devices = {param.device for param in params}
    if len(devices) > 1:
        raise ValueError(f"weights of one rank lie on {sorted(map(str, devices))}: one is needed")
    table = fingerprints(params, version=VERSION)
    digest = fold(table)
    # The largest and, by its complement, the smallest digest of all in one go.
    extremes = torch.stack([digest, ~digest])
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX, group=group)
    largest, not_smallest = extremes.tolist()
    if largest == ~not_smallest:
        return WeightResult(diverged=False)
    words = gather(torch.cat([digest.reshape(1), table.flatten()]), group).cpu()
    return _name(words[:, 0].tolist(), words[:, 1:].reshape(-1, *table.shape), global_ranks(group))


def _name(digests: list[int], tables: Tensor, ranks: list[int]) -> WeightResult:
    differs = (tables != tables[0]).any(dim=2).any(dim=0)
    rows = differs.nonzero().flatten().tolist()
    copies = {
        rank: {str(row): tuple(tables[position, row].tolist()) for row in rows}
        or {DIGEST: (digests[position],)}
        for position, rank in enumerate(ranks)
    }
    counted = suspects_by_tensor(copies)
    # A tensor without a strict majority leaves it open who is right, whatever another one says.
    suspects = None if counted.undecided or counted.suspects is None else list(counted.suspects)
    whole = suspects_by_majority(dict(zip(ranks, digests, strict=True))).suspects
    same = suspects == (None if whole is None else list(whole))
    entries = {
        str(rank): {"own" if same else "whole": format(digest & MASK, "016x")}
        for rank, digest in zip(ranks, digests, strict=True)
    }
    return WeightResult(True, suspects, rows, entries)
