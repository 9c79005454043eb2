"""Do ranks on different nodes compute the same from one micro-batch, and if not, who erred?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.buffers import Values
from witness.ddp.collectives import gather, global_ranks
from witness.ddp.divergent import Differing, differing
from witness.ddp.fingerprints import fold
from witness.ddp.replay import CollectiveInReplayError, ReplayError, Work, replay
from witness.rules.confirmation import confirm as judge
from witness.rules.ring import Pair, rederive

MASK = 2**64 - 1
DONE, FAILED, EXCHANGED = 0, 1, 2
Digests = dict[str, dict[str, str]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RingResult:
    """One audit: mismatched pairs `(target, replayer)`, and every rank's two digests in hex.

    Ranks are global numbers; `offset` counts positions in the group. `failed` are ranks whose
    replay raised: their comparison was not made, and `replay` is missing in their digests; `cause`
    is what was raised on this one.
    `starts` tells which ranks began with the same buffers.
    """

    pairs: list[Pair]
    digests: Digests
    offset: int
    ranks: list[int]
    failed: list[int] = field(default_factory=list)
    starts: tuple[int, ...] = ()
    differing: Differing = field(default_factory=Differing)
    cause: Exception | None = None

    @property
    def culprits(self) -> list[int]:
        """List the ranks that are in two mismatched pairs."""
        return list(rederive(self.pairs).culprits)

    @property
    def ambiguous(self) -> list[Pair]:
        """List the mismatched pairs without a culprit."""
        return list(rederive(self.pairs).ambiguous)

    def third_of(self, target: int) -> int:
        """Give the rank that settles a comparison of this target."""
        return self.ranks[(self.ranks.index(target) + self.offset) % len(self.ranks)]

    def raise_failed(self) -> None:
        """Raise `ReplayError`, on every rank alike, where some rank could not replay.

        For an audit that found nothing else: it did not pass either.
        """
        if self.failed:
            raise ReplayError(
                f"the audit could not be made: the replay failed on ranks {self.failed}; what "
                "failed there stands in their logs"
            ) from self.cause


def ring_audit(
    work: Work,
    own: Tensor,
    step: int,
    offset: int,
    with_grads: bool,
    group: dist.ProcessGroup | None = None,
    *,
    name_tensors: bool = True,
) -> RingResult:
    """Replay the micro-batch of the rank `offset` further on, and compare with all.

    `own` holds this rank's own result as `own_words` gives it. Every rank must call it between
    backward and the optimizer step, when all hold the same weights. A rank whose replay raises
    still takes part, so that nobody waits for it: it is listed in `failed`. Raises
    `CollectiveInReplayError` on every rank where any started a collective. `name_tensors` asks
    which gradients differ where pairs do. Equal digests are strong evidence of equal results, not
    proof.
    """
    ranks = global_ranks(group)
    size, me = len(ranks), dist.get_rank(group)
    again, state, cause = _attempt(work, step, ranks[(me + offset) % size], with_grads)
    device = work.params[0].device
    own = own.to(device)
    row = torch.stack([
        fold(own),
        _word(again, device),
        work.buffers.digest(device),
        torch.tensor(state, dtype=torch.int64, device=device),
    ])  # fmt: skip
    table: list[list[int]] = gather(row, group).tolist()
    _refuse_exchange(table, ranks)
    if _begun_differently(table, offset):
        again = _from_targets_buffers(work, step, with_grads, group, table, offset, again)
        row = torch.stack([_word(again, device), torch.tensor(int(again is None), device=device)])
        for position, (word, failed) in enumerate(gather(row, group).tolist()):
            table[position][1], table[position][3] = word, failed
    compared = [position for position in range(size) if table[position][3] == DONE]
    pairs = [
        (ranks[(by + offset) % size], ranks[by])
        for by in compared
        if table[by][1] != table[(by + offset) % size][0]
    ]
    return RingResult(
        pairs,
        {str(rank): _entry(row) for rank, row in zip(ranks, table, strict=True)},
        offset,
        ranks,
        [ranks[position] for position in range(size) if position not in compared],
        tuple(row[2] for row in table),
        differing(pairs if name_tensors else [], own, again, work.micro_batches, group),
        cause,
    )


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
    `suspect` is None where nobody is named. A replay that raises is an answer that agrees with
    nobody. The third rank must sit on a third node, which `placement` has checked at the start;
    where the ring has no third rank, `third` is None and the pair stays unattributable.
    """
    if not pairs:
        return []
    me, device = dist.get_rank(), work.params[0].device
    answers = torch.zeros(len(pairs), 2, dtype=torch.int64, device=device)
    for place, (target, replayer) in enumerate(pairs):
        third = ring.third_of(target)
        if third in (target, replayer):
            continue
        values = _buffers_of(work, target, [third], ring, group)
        if me in (third, target):
            again, state, _ = _attempt(work, step, target, with_grads, values)
            answers[place, 0] = _word(again, device)
            answers[place, 1] = state
    table = gather(answers, group).tolist()
    return [_verdict(pair, place, ring, table) for place, pair in enumerate(pairs)]


def _verdict(pair: Pair, place: int, ring: RingResult, table: list[Any]) -> dict[str, Any]:
    target, replayer = pair
    third = ring.third_of(target)

    def answer(rank: int) -> str | None:
        word, state = table[ring.ranks.index(rank)][place]
        return _hex(word) if state == DONE else None

    independent = third not in pair
    judged = judge(
        ring.digests[str(target)]["own"],
        ring.digests[str(replayer)]["replay"],
        answer(third) if independent else None,
        answer(target) if independent else None,
    )
    return {
        "pair": [target, replayer],
        "third": third if independent else None,
        "suspect": {"target": target, "replayer": replayer, None: None}[judged.suspect],
        "kind": judged.kind,
    }


def _attempt(
    work: Work, step: int, rank: int, with_grads: bool, buffers: Values | None = None
) -> tuple[Tensor | None, int, Exception | None]:
    """Replay, and carry an error as a mark: a rank that left here would keep the others waiting."""
    try:
        return replay(work, step, rank, with_grads, buffers=buffers), DONE, None
    except CollectiveInReplayError as error:
        return None, EXCHANGED, error
    except Exception as error:
        _log.exception("the replay of rank %d's step %d failed", rank, step)
        return None, FAILED, error


def _refuse_exchange(table: list[list[int]], ranks: list[int]) -> None:
    exchanged = [rank for rank, row in zip(ranks, table, strict=True) if row[3] == EXCHANGED]
    if exchanged:
        raise CollectiveInReplayError(
            f"ranks {exchanged} started a collective while they computed a step again: "
            "compute_loss must use the module that it is given, not the DDP model, and the "
            "model's forward must not exchange data between ranks"
        )


def _begun_differently(table: list[list[int]], offset: int) -> list[int]:
    """List replayers that differ from a target which began with other buffers than theirs."""
    size = len(table)
    targets = [table[(by + offset) % size] for by in range(size)]
    return [
        by
        for by, (mine, theirs) in enumerate(zip(table, targets, strict=True))
        if mine[3] == DONE and mine[1] != theirs[0] and mine[2] != theirs[2]
    ]


def _from_targets_buffers(
    work: Work,
    step: int,
    with_grads: bool,
    group: dist.ProcessGroup | None,
    table: list[list[int]],
    offset: int,
    again: Tensor | None,
) -> Tensor | None:
    """Replay once more where only the buffers may have made the difference; every rank takes part.

    Without `broadcast_buffers` each rank has buffers of its own, which forward may read.
    """
    ranks, me = global_ranks(group), dist.get_rank(group)
    mine: tuple[int, Values] | None = None
    for by in _begun_differently(table, offset):
        target = ranks[(by + offset) % len(ranks)]
        values = sent_buffers(work, target, group)
        if by == me:
            mine = target, values
    # All at once after the last exchange: one after the other would take a step a rank.
    if mine is not None:
        again, _, _ = _attempt(work, step, mine[0], with_grads, mine[1])
    return again


def _buffers_of(
    work: Work, target: int, users: list[int], ring: RingResult, group: dist.ProcessGroup | None
) -> Values | None:
    """Send a target's buffers to all where a user began with others; None where nobody did."""
    starts = dict(zip(ring.ranks, ring.starts, strict=True))
    if all(starts[user] == starts[target] for user in users):
        return None
    return sent_buffers(work, target, group)


def sent_buffers(work: Work, target: int, group: dist.ProcessGroup | None) -> Values:
    """Send the buffers that a target's step began with to every rank; all must call it."""
    mine = dist.get_rank() == target
    box: list[Any] = [None]
    if mine:
        box = [[None if one is None else one.cpu() for one in work.buffers.values()]]
    dist.broadcast_object_list(box, src=target, group=group)
    values: Values = box[0]
    return values


def _word(words: Tensor | None, device: torch.device) -> Tensor:
    if words is None:
        return torch.zeros((), dtype=torch.int64, device=device)
    return fold(words).to(device)


def _entry(row: list[int]) -> dict[str, str]:
    own = {"own": _hex(row[0])}
    return own if row[3] != DONE else {**own, "replay": _hex(row[1])}


def _hex(word: int) -> str:
    return format(word & MASK, "016x")
