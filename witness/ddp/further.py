"""Which further comparison tells faulty GPUs apart, before the job stops?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch.distributed as dist
from torch import Tensor

from witness.ddp.replay import ReplayError, Work
from witness.ddp.ring_audit import RingResult, ring_audit
from witness.rules.ring import Audit, Pair, decisive_audit, explain

MOST = 2
"""Further audits of one step; a third one hardly ever tells more."""


def further_audits(
    work: Work,
    own: Tensor,
    step: int,
    ring: RingResult,
    allowed: Collection[int],
    with_grads: bool,
    group: dist.ProcessGroup | None = None,
) -> list[dict[str, Any]]:
    """Audit the step of an alarm again at other offsets, until one set of faulty ranks explains it.

    Two faulty GPUs on one ring can accuse a healthy one; at another offset they have other peers.
    `allowed` are the offsets at which replayer, target and third stay on three nodes. Every rank
    must call it with the same result. Gives what an alarm carries as `further_audits`: nothing
    where one smallest set remains, or no allowed offset would tell more.
    """
    audits = [Audit(ring.offset, _positions(ring.pairs, ring))]
    documents: list[dict[str, Any]] = []
    while len(documents) < MOST:
        offset = _telling(audits, len(ring.ranks), allowed)
        if offset is None:
            break
        try:
            more = ring_audit(work, own, step, offset, with_grads, group, name_tensors=False)
        except ReplayError:
            break
        audits.append(Audit(offset, _positions(more.pairs, ring)))
        documents.append(
            {
                "peer_offset": offset,
                "mismatched_pairs": [list(pair) for pair in more.pairs],
                "digests": more.digests,
            }
        )
    return documents


def _telling(audits: list[Audit], size: int, allowed: Collection[int]) -> int | None:
    used = [audit.offset for audit in audits if audit.offset is not None]
    base = min(allowed, default=0)
    for explanation in explain(audits, size):
        found = decisive_audit(explanation, size, base, used) if base else None
        if found is not None and found.offset in allowed:
            return found.offset
    return None


def _positions(pairs: list[Pair], ring: RingResult) -> tuple[Pair, ...]:
    place = {rank: position for position, rank in enumerate(ring.ranks)}
    return tuple((place[target], place[replayer]) for target, replayer in pairs)
