"""Which changes leave the sums as they were, exactly, and how often does each version miss them?

A change of elements by d_i leaves the two sums alike if and only if sum d_i = 0 and
sum (i + 1) * d_i = 0 modulo 2^64; the third also needs sum e_k * w_k = 0, with e_k the change of
word k. Figures in docs/fingerprints.md about these are computed here.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.witness_fingerprints.definition import M64, weight
from witness.ddp.fingerprints import fingerprints

Change = dict[int, int]
SIZE = 200


def zero(value: int) -> bool:
    return value & M64 == 0


def predicted(change: Change, version: int, key: int = 0) -> bool:
    """Tell whether a change of 32-bit elements goes unseen, by the condition alone."""
    unseen = zero(sum(change.values())) and zero(sum((i + 1) * d for i, d in change.items()))
    if version == 1:
        return unseen
    return unseen and zero(sum(d * weight(i, key) for i, d in change.items()))


def found(before: Tensor, change: Change, version: int, key: int = 0) -> bool:
    """Tell whether it goes unseen, by fingerprints of real tensors."""
    after = before.clone()
    for place, by in change.items():
        after[place] += by
    one, two = fingerprints([before, after], version=version, key=key)
    return torch.equal(one, two)


def ints(generator: int) -> Tensor:
    drawn = torch.Generator().manual_seed(generator)
    return torch.randint(-(2**30), 2**30, (SIZE,), dtype=torch.int32, generator=drawn)


PLACES = st.integers(0, SIZE - 1)
STEPS = st.integers(-(2**20), 2**20).filter(bool)
CHANGES = st.dictionaries(PLACES, st.integers(-(2**30), 2**30).filter(bool), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(CHANGES, st.integers(0, 2**64 - 1), st.integers(0, 99))
def test_a_change_goes_unseen_exactly_where_the_condition_says(
    change: Change, key: int, seed: int
) -> None:
    for version in (1, 2):
        assert found(ints(seed), change, version, key) == predicted(change, version, key)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 99))
def test_any_change_of_one_or_two_elements_is_seen_by_the_two_sums(
    data: st.DataObject, seed: int
) -> None:
    change = data.draw(st.dictionaries(PLACES, STEPS, min_size=1, max_size=2))
    assert not predicted(change, 1)
    assert not found(ints(seed), change, 1)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 90), st.integers(0, 19), STEPS, st.integers(0, 2**64 - 1))
def test_opposite_changes_around_a_middle_are_missed_by_two_sums_and_seen_by_three(
    spacing: int, first: int, by: int, key: int
) -> None:
    change = {first: by, first + spacing: -2 * by, first + 2 * spacing: by}
    assert found(ints(1), change, 1)
    assert not found(ints(1), change, 2, key)


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(SIZE)), STEPS, st.integers(0, 2**64 - 1))
def test_four_changes_with_equal_middles_are_missed_by_two_sums_and_seen_by_three(
    order: list[int], by: int, key: int
) -> None:
    i, j, k = order[:3]
    last = j + k - i
    assume(0 <= last < SIZE and last not in (i, j, k))
    change = {i: by, j: -by, k: -by, last: by}
    assert found(ints(2), change, 1)
    assert not found(ints(2), change, 2, key)


def same_bit_missed(elements: int) -> Fraction:
    """Give the share of sign patterns of equally spaced flips of one bit that two sums miss."""
    signs = product((1, -1), repeat=elements)
    missed = sum(
        1 for row in signs if sum(row) == 0 and sum(n * one for n, one in enumerate(row)) == 0
    )
    return Fraction(missed, 2**elements)


@pytest.mark.parametrize(
    ("elements", "share"),
    [(2, 0), (3, 0), (4, 1 / 8), (5, 0), (8, 1 / 32), (12, 58 / 4096), (16, 526 / 65536)],
)
def test_the_share_of_same_bit_flips_that_two_sums_miss(elements: int, share: float) -> None:
    assert same_bit_missed(elements) == Fraction(share)


def flipped(rows: int, elements: int, spacing: int, seed: int) -> tuple[Tensor, Tensor]:
    """Flip one bit in equally spaced elements of many random rows of weights."""
    drawn = torch.Generator().manual_seed(seed)
    before = (torch.randn(rows, 256, generator=drawn) * 0.02).view(torch.int32)
    places = torch.arange(elements) * spacing + 3
    bits = torch.randint(0, 31, (rows, 1), generator=drawn)
    after = before.clone()
    after[:, places] ^= torch.ones_like(bits, dtype=torch.int32) << bits.to(torch.int32)
    return before, after


def missed(before: Tensor, after: Tensor, version: int, key: int = 0) -> float:
    one = fingerprints(list(before), version=version, key=key)
    two = fingerprints(list(after), version=version, key=key)
    return (one == two).all(1).double().mean().item()


@pytest.mark.parametrize(("elements", "share"), [(4, 1 / 8), (8, 1 / 32), (16, 526 / 65536)])
def test_same_bit_flips_are_missed_as_often_as_counted_and_never_by_three_sums(
    elements: int, share: float
) -> None:
    before, after = flipped(4000, elements, 15, elements)
    # Five standard deviations of a share counted in 4,000 rows.
    assert missed(before, after, 1) == pytest.approx(share, abs=5 * (share / 4000) ** 0.5)
    assert missed(before, after, 2) == 0


def shortest(places: list[int], key: int) -> list[int]:
    """Find small changes of five neighbours that no sum sees, by reducing the lattice of them."""
    basis = kernel([[1] * 5, [n + 1 for n in places], [weight(n, key) for n in places]])
    u, v = basis
    while True:
        if dot(u, u) > dot(v, v):
            u, v = v, u
        by = round(Fraction(dot(u, v), dot(u, u)))
        if by == 0:
            return u
        v = [b - by * a for a, b in zip(u, v, strict=True)]


def dot(u: list[int], v: list[int]) -> int:
    return sum(a * b for a, b in zip(u, v, strict=True))


def kernel(rows: list[list[int]]) -> list[list[int]]:
    """Give a basis of the whole vectors that all rows send to zero: column operations of Euclid."""
    width = len(rows[0])
    unit = [[int(i == j) for j in range(width)] for i in range(width)]
    columns = [([row[j] for row in rows], unit[j]) for j in range(width)]
    for level in range(len(rows)):
        while len(alive := [c for c in columns[level:] if c[0][level]]) > 1:
            least = min(alive, key=lambda c: abs(c[0][level]))
            for one in alive:
                if one is not least:
                    by = one[0][level] // least[0][level]
                    one[0][:] = [a - by * b for a, b in zip(one[0], least[0], strict=True)]
                    one[1][:] = [a - by * b for a, b in zip(one[1], least[1], strict=True)]
        columns.sort(key=lambda c: [not any(c[0][:level]), c[0][level] == 0])
    return [made for image, made in columns if not any(image)]


def test_whoever_knows_the_key_can_change_five_elements_unseen_by_all_three_sums() -> None:
    places = [20, 21, 22, 23, 24]
    change = dict(zip(places, shortest(places, 42), strict=True))
    assert any(change.values())
    assert max(map(abs, change.values())) < 2**24
    assert predicted(change, 2, 42)
    assert found(ints(3), change, 2, 42)
    assert not found(ints(3), change, 2, 43)


def test_the_top_bits_of_two_wide_elements_are_missed_by_two_sums_and_seen_by_three() -> None:
    before = torch.randn(64, dtype=torch.float64)
    after = before.clone()
    after[[5, 9]] *= -1  # the sign bit: a change of 2^63 in each, at places of the same parity
    assert torch.equal(*fingerprints([before, after]))
    assert not torch.equal(*fingerprints([before, after], version=2))


def test_weights_do_not_repeat_within_two_to_the_twenty_words() -> None:
    seen = torch.zeros(1, dtype=torch.int64)
    for key in (0, 1, 2**63):
        unit = torch.tensor([weight(n, key) for n in range(0, 2**20, 97)])
        assert unit.unique().numel() == unit.numel()
        assert not torch.equal(unit, seen)
        seen = unit


@pytest.mark.parametrize("key", [0, 1, 2**32, 2**64 - 1])
def test_differences_of_neighbouring_weights_cancel_in_no_short_pattern(key: int) -> None:
    drawn = torch.tensor([weight(n, key) for n in range(8_000)])
    for pattern in ((1, -1), (1, -2, 1), (1, -1, -1, 1), (1, -3, 3, -1)):
        for spacing in (1, 2, 64, 1024):
            span = (len(pattern) - 1) * spacing
            total = sum(
                by * drawn[n * spacing : drawn.numel() - span + n * spacing]
                for n, by in enumerate(pattern)
            )
            assert torch.is_tensor(total)
            assert int((total == 0).sum()) == 0, (pattern, spacing)
