"""Was a sum of the all-reduce wrong, and which rank added it up?

A library's all-reduce does not say who adds what, nor in which order. On watched steps this module
reduces the buckets itself, so that each sum has a known owner and a fixed order: every rank gets
one shard of everybody's bucket, adds it up and gives the sum to all. Two more ranks, each on a node
of its own, get the inputs of a slice of that shard as well and add it up in the same order, so that
bits must agree. The slices take turns: after `slices` watched steps every element was recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.beyond.document import Alarm, document, window_of_turn
from witness.ddp.beyond.reducers import judge
from witness.ddp.collectives import gather, global_rank
from witness.ddp.fingerprints import fingerprints, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch._C._distributed_c10d import GradBucket

    from witness.ddp.gradients import LocalGradients

OWNER, WITNESS, THIRD = range(3)


@dataclass(frozen=True, slots=True)
class _Slice:
    """What one rank keeps of a bucket until the step is judged; rows are ranks of the group."""

    given: Tensor  # its own share of every shard's slice
    inputs: Tensor  # everybody's share of the three slices that it adds up: [3, ranks, elements]
    sums: Tensor  # [3, elements]
    received: Tensor  # every shard's slice as its owner gave it out
    wrong: Tensor  # whether one of its two recomputations differs from what the owner gave out

    def rows(self) -> Tensor:
        """Fingerprint each row: given, three times inputs, sums, received."""
        parts = (self.given, *self.inputs, self.sums, self.received)
        return fingerprints([one_nan(row) for part in parts for row in part])


class WitnessedReduction:
    """Takes the place of DDP's all-reduce on every `every`-th step and has its sums recomputed.

    Every rank must build it alike, call `before(step)` before the forward pass and `after()`
    between backward and the update. `peer_offset` is the number of ranks a node: owner, witness and
    third must sit on three nodes, so ValueError where the group spans fewer. `passes` gives the
    tags for an alarm (`Guard.tags`).

    Sums are made in float32 (float64 for such buckets) and rounded once, so that a watched step may
    differ from an unwatched one in the last bits; all ranks get the same. Memory on watched steps:
    about three buckets for a moment, and (6 / `slices`) of the gradients until `after()`.

    Proven: a bucket's slice that the step looks at was added up as two other ranks add it up. Not
    proven: the other slices of that step, steps that are not watched, and the inputs: a wrong
    gradient is added up correctly, and is the business of the ring replay.
    """

    def __init__(
        self,
        gradients: LocalGradients,
        *,
        peer_offset: int,
        slices: int = 64,
        every: int = 1,
        start_step: int = 0,
        passes: Callable[[], Mapping[str, int | None]] | None = None,
    ) -> None:
        if slices < 1 or every < 1:
            raise ValueError(f"slices ({slices}) and every ({every}) must be at least 1")
        self.group = gradients.group
        self.size, self.me = dist.get_world_size(self.group), dist.get_rank(self.group)
        if not peer_offset % self.size or not 2 * peer_offset % self.size:
            raise ValueError(f"{self.size} ranks, {peer_offset} a node, are not three nodes")
        self.offset, self.slices, self.every = peer_offset, slices, every
        self.start_step, self.passes = start_step, passes
        self.step = start_step
        self._watching = False
        self._kept: list[_Slice] = []
        self._library = gradients.reduce
        gradients.reduce = self._reduce

    def before(self, step: int) -> None:
        """Decide whether this step is watched; called before its forward pass."""
        self.step = step
        self._watching = step % self.every == 0
        self._kept.clear()

    def after(self) -> Alarm | None:
        """Compare the recomputed sums; give an alarm of check `reduction`, None where all agree.

        One small collective on a watched step, none on others. The gradients stay: after an alarm
        the caller does not apply them.
        """
        kept, self._kept = self._kept, []
        if not kept or not self._differ(kept):
            return None
        found: list[dict[str, Any]] = []
        for bucket, one in enumerate(kept):
            table = gather(one.rows(), self.group).cpu()
            found += [{"bucket": bucket, **each} for each in judge(table, self.offset)]
        return self._alarm([self._by_rank(each) for each in found or self._unconfirmed(kept)])

    def sum_inputs(self, role: int, inputs: Tensor) -> Tensor:
        """Average the rows in a fixed order of pairs, which does not depend on their length.

        `role` is OWNER, WITNESS or THIRD; a drill overrides this method to add up wrongly.
        """
        wide = torch.float64 if inputs.dtype == torch.float64 else torch.float32
        given = inputs.to(wide)
        count = given.shape[0]
        half = count // 2
        rows = given.new_empty(count - half, given.shape[1])
        torch.add(given[:half], given[count - half :], out=rows[:half])
        rows[half:] = given[half : count - half]
        count -= half
        while count > 1:
            half = count // 2
            rows[:half] += rows[count - half : count]
            count -= half
        return (rows[0] / inputs.shape[0]).to(inputs.dtype)

    def _reduce(self, group: dist.ProcessGroup, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        if not self._watching:
            return self._library(group, bucket)
        buffer = bucket.buffer()
        buffer.copy_(self._exchange(buffer).view(-1)[: buffer.numel()])
        done: torch.futures.Future[Tensor] = torch.futures.Future(
            devices=[buffer.device] if buffer.is_cuda else None
        )
        done.set_result(buffer)
        return done

    @torch.no_grad()
    def _exchange(self, buffer: Tensor) -> Tensor:
        """Reduce one bucket; give every shard's sum, and keep the slice that is looked at."""
        length = -(-buffer.numel() // (self.size * self.slices))
        begin = self.step // self.every % self.slices * length
        width = length * self.slices
        # Row d goes to rank d: its own shard, then the slices of the two shards it recomputes.
        sent = buffer.new_empty(self.size, width + 2 * length)
        _lay_out(buffer, sent[:, :width])
        given = sent[:, begin : begin + length]
        sent[:, width : width + length] = given.roll(self.offset, 0)
        sent[:, width + length :] = given.roll(2 * self.offset, 0)
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent, group=self.group)
        whole, seconds, thirds = torch.split(got, [width, length, length], dim=1)
        total = self.sum_inputs(OWNER, whole)
        sums = torch.stack(
            [
                total[begin : begin + length],
                self.sum_inputs(WITNESS, seconds),
                self.sum_inputs(THIRD, thirds),
            ]
        )
        reduced = gather(total, self.group)
        received = reduced[:, begin : begin + length].clone()
        mine = [(self.me - turn * self.offset) % self.size for turn in (WITNESS, THIRD)]
        wrong = differ(sums[WITNESS:], received[mine])
        inputs = torch.stack([whole[:, begin : begin + length], seconds, thirds])
        self._kept.append(_Slice(given.clone(), inputs, sums, received, wrong))
        return reduced

    def _differ(self, kept: list[_Slice]) -> bool:
        """Agree whether a recomputation differs anywhere, or a rank received other sums."""
        wrong = torch.stack([one.wrong for one in kept]).any().long()
        digest = fold(fingerprints([one.received for one in kept]))
        extremes = torch.stack([wrong, digest, ~digest])
        dist.all_reduce(extremes, op=dist.ReduceOp.MAX, group=self.group)
        found, largest, not_smallest = extremes.tolist()
        return bool(found) or largest != ~not_smallest

    def _unconfirmed(self, kept: list[_Slice]) -> list[dict[str, Any]]:
        """Say whose comparison failed though all that was compared agrees: that rank erred now."""
        wrong = torch.stack([one.wrong for one in kept]).any().long().reshape(1)
        flags = gather(wrong, self.group).flatten().tolist()
        told = [rank for rank, flag in enumerate(flags) if flag]
        return [{"kind": "comparison", "witness": rank, "suspect": rank} for rank in told]

    def _by_rank(self, found: dict[str, Any]) -> dict[str, Any]:
        """Say global ranks where the judge said positions in the group."""
        return {
            key: global_rank(value, self.group)
            if key not in ("bucket", "kind") and value is not None
            else value
            for key, value in found.items()
        }

    def _alarm(self, found: list[dict[str, Any]]) -> Alarm:
        window = window_of_turn(self.step, self.start_step, self.slices * self.every)
        return document(
            "reduction",
            self.step,
            window,
            [one["suspect"] for one in found if one["suspect"] is not None],
            passes=self.passes() if self.passes else None,
            reductions=found,
            update_applied=False,
            world_size=self.size,
            peer_offset=self.offset,
        )


def _lay_out(buffer: Tensor, shards: Tensor) -> None:
    """Write a bucket into rows of equal length, the rest filled up with zeros."""
    size, width = shards.shape
    whole = buffer.numel() // width
    shards[:whole] = buffer[: whole * width].view(whole, width)
    if whole < size:
        rest = buffer[whole * width :]
        shards[whole:] = 0
        shards[whole, : rest.numel()] = rest


def one_nan(values: Tensor) -> Tensor:
    """Give every NaN the same bits: which NaN an addition makes is not fixed."""
    return torch.where(values.isnan(), torch.full_like(values, torch.nan), values)


def differ(one: Tensor, other: Tensor) -> Tensor:
    """Tell whether any bits differ, two NaNs counting as equal; no host sync."""
    as_integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    whole = as_integers[one.element_size()]
    bits = one_nan(one).contiguous().view(whole) != one_nan(other).contiguous().view(whole)
    return bits.any()
