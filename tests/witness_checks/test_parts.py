"""Do the small parts under a replay keep what they promise, without any other rank?"""

from __future__ import annotations

import copy
import io
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from witness.ddp.buffers import StepBuffers
from witness.ddp.divergent import MOST_NAMES, as_keys
from witness.ddp.nonfinite import SkippedSteps
from witness.ddp.randomness import seed_all, untouched
from witness.ddp.weights import _name

CPU = torch.device("cpu")


class Holder(nn.Module):
    constant: Tensor
    written: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("constant", torch.arange(3.0))
        self.register_buffer("written", torch.zeros(2))
        self.other = nn.Module()
        self.other.register_buffer("shared", self.written)

    def forward(self, x: Tensor) -> Tensor:
        self.written += 1
        return x * self.constant.sum()


def stepped(holder: Holder, buffers: StepBuffers) -> list[Tensor]:
    buffers.remember()
    holder(torch.ones(1))
    return [value for value in buffers.values() if value is not None]


def test_only_what_was_written_is_copied_again() -> None:
    holder = Holder()
    buffers = StepBuffers(holder)
    first, second = stepped(holder, buffers), stepped(holder, buffers)
    assert first[0] is second[0]
    assert (first[1].tolist(), second[1].tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_only_the_first_forward_of_a_step_counts() -> None:
    holder = Holder()
    buffers = StepBuffers(holder)
    stepped(holder, buffers)
    holder(torch.ones(1))
    assert [value.tolist() for value in buffers.values() if value is not None][1] == [0.0, 0.0]


def test_a_replay_works_on_copies_and_cannot_leave_anything() -> None:
    holder = Holder()
    buffers = StepBuffers(holder)
    stepped(holder, buffers)
    own, before = holder.written, buffers.digest(CPU)

    def replay() -> None:
        assert holder.written is not own
        assert holder.written is holder.other.shared
        assert holder.written.tolist() == [0.0, 0.0]
        holder(torch.ones(1))
        holder.register_buffer("late", torch.ones(1), persistent=False)
        holder.constant = torch.zeros(9)
        raise KeyError

    with pytest.raises(KeyError), buffers.swapped():
        replay()
    assert holder.written is own
    assert holder.written.tolist() == [1.0, 1.0]
    assert set(holder._buffers) == {"constant", "written"}
    assert holder._non_persistent_buffers_set == set()
    assert torch.equal(buffers.digest(CPU), before)


def test_a_replay_can_begin_with_another_ranks_buffers() -> None:
    holder = Holder()
    buffers = StepBuffers(holder)
    stepped(holder, buffers)
    theirs = [torch.full((3,), 2.0), torch.full((2,), 5.0), torch.full((2,), 5.0)]
    with buffers.swapped(theirs):
        assert holder(torch.ones(1)).item() == 6.0
        assert holder.other.shared.tolist() == [6.0, 6.0]  # type: ignore[operator]
    assert holder(torch.ones(1)).item() == 3.0


def test_a_copy_and_a_saved_module_go_their_own_way() -> None:
    holder = Holder()
    buffers = StepBuffers(holder)
    stepped(holder, buffers)
    buffers.remember()
    file = io.BytesIO()
    torch.save(holder, file)
    file.seek(0)
    for other in (copy.deepcopy(holder), torch.load(file, weights_only=False)):
        other(torch.ones(1))
        assert other.written.tolist() == [2.0, 2.0]
    holder(torch.ones(1))
    assert [value.tolist() for value in buffers.values() if value is not None][1] == [1.0, 1.0]
    assert holder.written.tolist() == [2.0, 2.0]


def draws() -> tuple[float, float, float]:
    return torch.rand(1).item(), random.random(), float(np.random.random())


def test_generators_come_back_after_an_error_too() -> None:
    seed_all(1, 2, 3)
    expected = draws()
    seed_all(1, 2, 3)

    def fail() -> None:
        draws()
        raise KeyError

    with pytest.raises(KeyError), untouched([CPU]):
        fail()
    assert draws() == expected


def test_every_step_and_rank_has_its_own_random_numbers() -> None:
    seen = set[float]()
    for seed, step, rank in [(1, 2, 3), (1, 3, 2), (2, 1, 3), (1, 2, 4), (0, 0, 0), (0, 0, 1)]:
        seed_all(seed, step, rank)
        seen.update(draws())
    assert len(seen) == 18


def test_a_rank_is_told_of_once_when_it_overflows_alone_and_again_and_again() -> None:
    watch = SkippedSteps(3)
    told = [watch.note(True, [4]) for _ in range(5)]
    assert told == [None, None, 4, None, None]
    assert watch.note(False, []) is None
    assert [watch.note(True, ranks) for ranks in ([4], [4], [4, 5], [4], [4])] == [None] * 5
    assert watch.note(True, [4]) == 4
    assert [watch.note(True, [5]) for _ in range(3)] == [None, None, 5]


def test_a_rank_that_digests_equal_weights_wrong_is_named() -> None:
    tables = torch.ones(3, 2, 3, dtype=torch.int64)
    result = _name([7, 7, 8], tables, [0, 1, 2])
    assert (result.diverged, result.suspects, result.tensors) == (True, [2], [])
    assert result.digests["2"] == {"own": "0000000000000008"}


def test_names_are_bounded_and_counted() -> None:
    names = [f"layer.{row}" for row in range(100)]
    keys = as_keys(range(40), names)
    assert (len(keys["tensors"]), keys["divergent_tensors"]) == (MOST_NAMES, 40)
    assert as_keys([], names) == {}
