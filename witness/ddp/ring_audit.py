"""Do ranks on different nodes compute the same from one micro-batch, and if not, who erred?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.collectives import gather, global_rank
from witness.ddp.fingerprints import fold
from witness.ddp.replay import Work, replay
from witness.rules.confirmation import confirm as judge
from witness.rules.ring import Pair, rederive

MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RingResult:
    """One audit: mismatched pairs `(target, replayer)`, and every rank's two digests in hex."""

    pairs: list[Pair]
    digests: dict[str, dict[str, str]]
    offset: int

    @property
    def culprits(self) -> list[int]:
        """List the ranks that are in two mismatched pairs."""
        return list(rederive(self.pairs).culprits)

    @property
    def ambiguous(self) -> list[Pair]:
        """List the mismatched pairs without a culprit."""
        return list(rederive(self.pairs).ambiguous)


def ring_audit(
    work: Work,
    own: Tensor,
    step: int,
    offset: int,
    with_grads: bool,
    group: dist.ProcessGroup | None = None,
) -> RingResult:
    """Replay the micro-batch of the rank `offset` further on, and compare with all.

    `own` holds this rank's own result as `own_words` gives it. Every rank must call it between
    backward and the optimizer step, when all hold the same weights. Equal digests are strong
    evidence of equal results, not proof.
    """
    size, me = dist.get_world_size(group), dist.get_rank(group)
    target = global_rank((me + offset) % size, group)
    again = replay(work, step, target, with_grads)
    table = gather(torch.stack([fold(own), fold(again)]), group).tolist()
    ranks = [global_rank(position, group) for position in range(size)]
    pairs = [
        (ranks[(replayer + offset) % size], ranks[replayer])
        for replayer in range(size)
        if table[(replayer + offset) % size][0] != table[replayer][1]
    ]
    digests = {
        str(rank): {"own": _hex(row[0]), "replay": _hex(row[1])}
        for rank, row in zip(ranks, table, strict=True)
    }
    return RingResult(pairs, digests, offset)


def confirm(
    work: Work,
    pairs: Sequence[Pair],
    ring: RingResult,
    step: int,
    with_grads: bool,
    group: dist.ProcessGroup | None = None,
) -> list[dict[str, Any]]:
    """Settle ambiguous pairs: the third rank and the target compute the target's work again.

    Every rank must call it with the same pairs. Gives one verdict a pair as the alarm carries it;
    `suspect` is None where nobody is named. The third rank must sit on a third node, which
    `placement` has checked at the start.
    """
    if not pairs:
        return []
    size, me = dist.get_world_size(group), dist.get_rank(group)
    answers = torch.zeros(len(pairs), dtype=torch.int64, device=work.params[0].device)
    positions = {global_rank(position, group): position for position in range(size)}
    thirds = [(positions[target] + ring.offset) % size for target, _ in pairs]
    for place, ((target, _), third) in enumerate(zip(pairs, thirds, strict=True)):
        if me in (third, positions[target]):
            answers[place] = fold(replay(work, step, target, with_grads))
    table = gather(answers, group).tolist()
    verdicts = []
    for place, ((target, replayer), third) in enumerate(zip(pairs, thirds, strict=True)):
        judged = judge(
            ring.digests[str(target)]["own"],
            ring.digests[str(replayer)]["replay"],
            _hex(table[third][place]),
            _hex(table[positions[target]][place]),
        )
        suspects = {"target": target, "replayer": replayer, None: None}
        verdicts.append(
            {
                "pair": [target, replayer],
                "third": global_rank(third, group),
                "suspect": suspects[judged.suspect],
                "kind": judged.kind,
            }
        )
    return verdicts


def _hex(word: int) -> str:
    return format(word & MASK, "016x")
