"""Does each mode change what it says and nothing else, the same each time?"""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor

from witness.inject import Fault
from witness.inject.fault import Mode
from witness.inject.modes import bits, corrupted

FAULT = Fault.on(0)
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def values(dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.linspace(0.5, 2, 12).reshape(3, 4).to(dtype)


def changed(fault: Fault, tensor: Tensor) -> list[int]:
    wrong = corrupted(tensor, fault)
    flat = bits(wrong) != bits(tensor.contiguous())
    return [int(one) for one in flat.nonzero().flatten()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("fault", "places"),
    [
        (FAULT.multiply(10, element=5), [5]),
        (FAULT.flip(bit=3, element=11), [11]),
        (FAULT.flip(bit=-1, element=2), [2]),
        (FAULT.column(1.5, column=2), [2, 6, 10]),
        (FAULT.swap(1, 7), [1, 7]),
        (FAULT.pair(16, 0, 9), [0, 9]),
        (FAULT.nan(4), [4]),
        (FAULT.inf(4), [4]),
        (FAULT.noise(0.5), list(range(12))),
    ],
    ids=lambda one: one.mode if isinstance(one, Fault) else "",
)
def test_a_mode_changes_its_elements_only(
    fault: Fault, places: list[int], dtype: torch.dtype
) -> None:
    assert changed(fault, values(dtype)) == places


def test_the_values_are_those_that_are_asked_for() -> None:
    assert corrupted(values(), FAULT.multiply(1000, 3)).view(-1)[3] == values().view(-1)[3] * 1000
    assert corrupted(values(), FAULT.nan(1)).view(-1)[1].isnan()
    assert corrupted(values(), FAULT.inf(1)).view(-1)[1].isinf()
    one, two = corrupted(values(), FAULT.swap(0, 5)).view(-1)[[0, 5]].tolist()
    assert (two, one) == tuple(values().view(-1)[[0, 5]].tolist())


def test_a_compensating_pair_and_a_swap_keep_the_plain_sum_of_the_bit_patterns() -> None:
    for fault in (FAULT.pair(4096), FAULT.swap(2, 9)):
        wrong = corrupted(values(), fault)
        assert bits(wrong).to(torch.int64).sum() == bits(values()).to(torch.int64).sum()


def test_flipping_twice_gives_the_value_back() -> None:
    for bit in range(32):
        fault = FAULT.flip(bit, element=6)
        assert torch.equal(bits(corrupted(corrupted(values(), fault), fault)), bits(values())), bit


@pytest.mark.parametrize("mode", get_args(Mode))
def test_a_defect_reproduces_its_own_wrong_answer_and_draws_no_random_number(mode: Mode) -> None:
    fault = Fault(rank=0, mode=mode, factor=0.5)
    state = torch.random.get_rng_state()
    assert torch.equal(bits(corrupted(values(), fault)), bits(corrupted(values(), fault)))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_other_seeds_give_other_noise() -> None:
    one, two = (corrupted(values(), FAULT.noise(0.1, seed)) for seed in (1, 2))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_scalars_and_empty_tensors_are_no_error(mode: Mode, shape: tuple[int, ...]) -> None:
    assert corrupted(torch.ones(shape), Fault(rank=0, mode=mode)).shape == shape


def test_the_right_tensor_stays_right_whatever_its_layout() -> None:
    turned = values().t()
    before = turned.clone()
    wrong = corrupted(turned, FAULT.multiply(9, element=1))
    assert torch.equal(turned, before)
    # Positions count in the order of the shape, not of the memory.
    assert (wrong != before).nonzero().tolist() == [[0, 1]]
