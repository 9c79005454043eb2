"""Is an error of the library's all-reduce seen, and is rounding never taken for one?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from tests.witness_beyond.jobs import RANKS, backward, guarded
from witness.ddp.beyond.rounding import RoundingBound, beyond_rounding
from witness.inject import Fault, Injector
from witness.simulate import fleet


def faulty(bit: int) -> Callable[..., Any]:
    """Make a library whose sum is wrong on all ranks alike, in the middle of each bucket."""

    def reduce(group: Any, bucket: Any) -> Any:
        def spoil(done: Any) -> Tensor:
            total: Tensor = done.value()
            total[total.numel() // 2].view(torch.int32).bitwise_xor_(1 << bit)
            return total

        return allreduce_hook(group, bucket).then(spoil)

    return reduce


def injected(fault: Fault) -> Any:
    """Let a fault of the product's own injector act inside the library's all-reduce."""
    guard = guarded()
    bound = RoundingBound(guard.gradients, slices=1)
    with Injector(guard.work.module, dist.get_rank()).arm(fault) as injector:
        for step in range(4):
            injector.begin(step)
            bound.before(step)
            loss = backward(guard, step)
            alarm = guard.stop(bound.after()) or guard.update(loss)
            if alarm is not None:
                return alarm
    return None


def alarm_of(bit: int | None, slices: int, dtype: torch.dtype = torch.float32) -> Any:
    guard = guarded(dtype=dtype)
    if bit is not None:
        guard.gradients.reduce = faulty(bit)
    bound = RoundingBound(guard.gradients, slices=slices, passes=guard.tags)
    for step in range(6):
        bound.before(step)
        loss = backward(guard, step)
        alarm = guard.stop(bound.after()) or guard.update(loss)
        if alarm is not None:
            return alarm
    return None


def everything() -> dict[str, Any]:
    return {
        "clean": alarm_of(None, 1),
        "clean bf16": alarm_of(None, 2, torch.bfloat16),
        "large": alarm_of(22, 1),
        "in its turn": alarm_of(22, 3),
        "one rounding": alarm_of(0, 1),
        "reducer": injected(Fault.on(rank=1).multiply(1.5).in_reduced().since(2)),
        "contribution": injected(Fault.on(rank=1).multiply(1000).in_contribution().since(2)),
    }


def test_a_wrong_sum_is_seen_though_nobody_can_be_named() -> None:
    results = fleet.run(RANKS, 1, everything)
    assert results[0] == results[1] == results[2]
    found = results[0]
    assert found["clean"] is found["clean bf16"] is found["one rounding"] is None
    large = found["large"]
    assert (large["check"], large["step"], large["suspects"]) == ("reduction", 0, None)
    assert {one["kind"] for one in large["reductions"]} == {"beyond rounding"}
    assert all(one["elements"] == 1 for one in large["reductions"])
    for name in ("reducer", "contribution"):
        assert (found[name]["check"], found[name]["step"]) == ("reduction", 2)
        assert found[name]["suspects"] is None
    # The middle of a bucket lies in the second of three slices, which comes at step 1.
    assert found["in its turn"]["step"] == 1
    assert found["in its turn"]["suspect_window"] == [0, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("ranks", [2, 3, 8, 32])
def test_no_order_of_additions_is_taken_for_an_error(dtype: torch.dtype, ranks: int) -> None:
    draw = torch.Generator().manual_seed(ranks)
    # Sizes over many magnitudes, half of them cancelling: where rounding is worst.
    sizes = 10 ** (torch.rand(ranks, 4000, generator=draw) * 8 - 5)
    values = (sizes * torch.randn(ranks, 4000, generator=draw)).to(dtype)
    values[ranks // 2 :, ::2] = -values[: ranks - ranks // 2, ::2].flip(0) * 1.01
    for divide_first in (True, False):
        parts = values / ranks if divide_first else values
        total = torch.zeros_like(parts[0])
        for row in torch.randperm(ranks, generator=draw).tolist():
            total = total + parts[row]
        mean = total if divide_first else total / ranks
        tree = parts.clone()
        while tree.shape[0] > 1:
            half = tree.shape[0] // 2
            tree = torch.cat([tree[:half] + tree[half : 2 * half], tree[2 * half :]])
        other = tree[0] if divide_first else tree[0] / ranks
        for one in (mean, other):
            assert not beyond_rounding(values.double(), one).any()


def test_an_error_of_a_few_roundings_more_is_seen_and_what_is_not_finite_is_not() -> None:
    inputs = torch.ones(4, 3, dtype=torch.float64)
    off = 1 + 8 * torch.finfo(torch.float32).eps
    assert beyond_rounding(inputs, torch.tensor([1.0, off, float("nan")])).tolist() == [
        False,
        True,
        False,
    ]
    assert not beyond_rounding(inputs, torch.full((3,), torch.inf)).any()
    many = torch.ones(256, 1, dtype=torch.float64)
    assert not beyond_rounding(many, torch.tensor([100.0], dtype=torch.bfloat16)).any()
