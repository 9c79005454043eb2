"""Where one audit shows several faults of a ring, which further audits tell them apart at once?

After an alarm the step is not applied, so all ranks still hold the state they held. A comparison at
another peer offset costs one replay and joins other ranks: with five nodes or more two faulty GPUs
of one ring, which the first audit leaves open, come out exactly.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import torch.distributed as dist
from torch import Tensor

from witness.ddp.replay import Work
from witness.ddp.ring_audit import RingResult, ring_audit
from witness.rules.ring import Audit, Pair, decisive_audit, explain

LIMIT = 2
"""Further audits of one alarm: after two there is hardly ever anything left to decide."""


def further_audits(
    work: Work,
    own: Tensor,
    ring: RingResult,
    step: int,
    base_offset: int,
    with_grads: bool,
    group: dist.ProcessGroup | None = None,
) -> list[dict[str, Any]]:
    """Audit again at other multiples of `base_offset`, as the alarm carries it; often nothing.

    Every rank must call it with the same arguments but for `own`, and before any update. Empty
    where the first audit shows one fault a ring, where no other offset keeps replayer, target and
    third on three nodes, and in a group whose ranks are not 0, 1, 2, ….
    """
    size = dist.get_world_size(group)
    audits = [Audit(ring.offset, tuple(ring.pairs))]
    if ring.ranks != list(range(size)) or not several_faults(ring.pairs, ring.offset, size):
        return []
    while len(audits) <= LIMIT:
        offset = next_offset(audits, base_offset, size)
        if offset is None:
            break
        again = ring_audit(work, own, step, offset, with_grads, group, name_tensors=False)
        audits.append(Audit(offset, tuple(again.pairs)))
    return [
        {"peer_offset": one.offset, "mismatched_pairs": [list(pair) for pair in one.pairs]}
        for one in audits[1:]
    ]


def several_faults(pairs: list[Pair], offset: int, size: int) -> bool:
    """Tell whether a ring has other mismatches than one pair, or two pairs that share a rank."""
    rings: dict[int, list[Pair]] = {}
    for pair in pairs:
        rings.setdefault(pair[0] % gcd(offset, size), []).append(pair)
    return any(
        len(found) > 2 or (len(found) == 2 and set(found[0]).isdisjoint(found[1]))
        for found in rings.values()
    )


def next_offset(audits: list[Audit], base_offset: int, size: int) -> int | None:
    """Give the offset whose audit tells most of what is still open; None where none does."""
    used = [one.offset for one in audits if one.offset is not None]
    explained = explain(audits, size)
    # Where the offset turns, the alarm's audit was not always that of the base.
    if base_offset not in used and any(len(one.sets) > 1 for one in explained):
        return base_offset
    decisions = [decisive_audit(one, size, base_offset, used) for one in explained]
    open_still = [one for one in decisions if one is not None]
    open_still.sort(key=lambda one: (not one.decides, one.offset))
    return open_still[0].offset if open_still else None
