"""Did the library's own all-reduce err by more than rounding can explain?

Whatever the order and the tree in which a library adds n numbers, its error is at most about n
roundings of the sum of their magnitudes. So on watched steps the ranks exchange their inputs of a
slice, add them in float64, and compare. That needs no other reduction, and cannot give a false
alarm; but it cannot say who added up wrong, and a smaller error passes. `reduction` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.beyond.document import Alarm, document, window_of_turn
from witness.ddp.collectives import any_rank, gather, global_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch._C._distributed_c10d import GradBucket

    from witness.ddp.gradients import LocalGradients


class RoundingBound:
    """Holds the reduction that is in use (DDP's, as a rule) against a sum made in float64.

    Every rank must build it alike, call `before(step)` before the forward pass and `after()`
    between backward and the update. On every `every`-th step one slice of each bucket is compared;
    the `slices` take turns. The reduction must give the mean, and round to the bucket's dtype or
    finer: not for hooks that compress. `passes` gives the tags for an alarm (`Guard.tags`).

    Proven: no element of the slice is off by more than n roundings of the mean magnitude of its n
    inputs. That is loose for bf16 on many ranks, and void from 256 ranks on. Not proven: who erred,
    the other slices, and that the inputs were right.
    """

    def __init__(
        self,
        gradients: LocalGradients,
        *,
        slices: int = 64,
        every: int = 1,
        start_step: int = 0,
        passes: Callable[[], Mapping[str, int | None]] | None = None,
    ) -> None:
        if slices < 1 or every < 1:
            raise ValueError(f"slices ({slices}) and every ({every}) must be at least 1")
        self.group = gradients.group
        self.size, self.me = dist.get_world_size(self.group), dist.get_rank(self.group)
        self.slices, self.every, self.start_step, self.passes = slices, every, start_step, passes
        self.step = start_step
        self._watching = False
        self._kept: list[tuple[Tensor, Tensor]] = []
        self._library = gradients.reduce
        gradients.reduce = self._reduce

    def before(self, step: int) -> None:
        """Decide whether this step is watched; called before its forward pass."""
        self.step, self._watching = step, step % self.every == 0
        self._kept.clear()

    @torch.no_grad()
    def after(self) -> Alarm | None:
        """Compare the slices; give an alarm of check `reduction` that names nobody, or None.

        Two small collectives on a watched step, none on others.
        """
        kept, self._kept = self._kept, []
        if not kept:
            return None
        given = torch.cat([self._by_rank(one.double()) for one, _ in kept], dim=1)
        came = torch.empty_like(given)
        dist.all_to_all_single(came, given, group=self.group)
        widths = [-(-one.numel() // self.size) for one, _ in kept]
        wrong = torch.stack(
            [
                beyond_rounding(inputs, self._by_rank(self._slice(buffer))[self.me]).sum()
                for inputs, (_, buffer) in zip(torch.split(came, widths, dim=1), kept, strict=True)
            ]
        )
        if not any_rank(wrong.any(), self.group).item():
            return None
        return self._alarm(gather(wrong, self.group).tolist())

    def _reduce(self, group: dist.ProcessGroup, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        if self._watching:
            buffer = bucket.buffer()
            self._kept.append((self._slice(buffer).clone(), buffer))
        return self._library(group, bucket)

    def _slice(self, buffer: Tensor) -> Tensor:
        length = -(-buffer.numel() // self.slices)
        begin = self.step // self.every % self.slices * length
        return buffer[begin : begin + length]

    def _by_rank(self, part: Tensor) -> Tensor:
        """Lay a slice out in one row a rank, which compares it; filled up with zeros."""
        width = -(-part.numel() // self.size)
        rows = part.new_zeros(self.size, width)
        rows.view(-1)[: part.numel()] = part
        return rows

    def _alarm(self, table: list[list[int]]) -> Alarm:
        found: list[dict[str, Any]] = [
            {
                "bucket": bucket,
                "kind": "beyond rounding",
                "elements": count,
                "witness": global_rank(position, self.group),
                "suspect": None,
            }
            for position, row in enumerate(table)
            for bucket, count in enumerate(row)
            if count
        ]
        return document(
            "reduction",
            self.step,
            window_of_turn(self.step, self.start_step, self.slices * self.every),
            [],
            passes=self.passes() if self.passes else None,
            reductions=found,
            update_applied=False,
            world_size=self.size,
        )


def beyond_rounding(inputs: Tensor, mean: Tensor) -> Tensor:
    """Tell of each element whether a mean of float64 rows cannot have come about by rounding.

    `inputs` are [n, elements], exactly as they were in the dtype of `mean`. Any order of additions
    and one division before or after them err by at most n roundings; numbers too small to be
    normal may vanish. False wherever something is not finite, which other checks see.
    """
    count = inputs.shape[0]
    kind = torch.finfo(mean.dtype)
    # Our own sum in float64 errs as well.
    roundings = count * (kind.eps / 2 + torch.finfo(torch.float64).eps)
    if roundings >= 1:
        return torch.zeros(mean.shape, dtype=torch.bool, device=mean.device)
    magnitude = inputs.abs().sum(0) / count
    limit = magnitude * (roundings / (1 - roundings)) + 2 * count * kind.tiny
    error = (mean.double() - inputs.sum(0) / count).abs()
    return (error > limit) & mean.isfinite()
