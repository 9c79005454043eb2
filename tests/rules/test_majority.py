"""Is a replica named only against a strict majority?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.majority import Majority, suspects_by_majority, suspects_by_tensor


@pytest.mark.parametrize(
    ("digests", "suspects"),
    [
        ("aaaa", ()),
        ("aaba", (2,)),
        ("bcaaa", (0, 1)),
        ("ab", None),
        ("aabb", None),
        ("abc", None),
        ("aabc", None),
        ("aaabb", (3, 4)),
        ("a", ()),
        ("", ()),
    ],
)
def test_one_digest_a_rank(digests: str, suspects: tuple[int, ...] | None) -> None:
    assert suspects_by_majority(dict(enumerate(digests))).suspects == suspects


def test_each_tensor_has_a_majority_of_its_own() -> None:
    digests = {0: {"w": 1, "b": 1}, 1: {"w": 2, "b": 1}, 2: {"w": 1, "b": 3}}
    assert suspects_by_tensor(digests) == Majority((1, 2), 0)


def test_a_tensor_without_majority_beside_one_with() -> None:
    digests = {0: {"w": 1, "b": 1}, 1: {"w": 2, "b": 2}, 2: {"w": 1, "b": 3}}
    assert suspects_by_tensor(digests) == Majority((1,), 1)


def test_a_missing_tensor_differs() -> None:
    assert suspects_by_tensor({0: {"w": None}, 1: {"w": None}, 2: {}}).suspects == (2,)


@given(st.lists(st.sampled_from("abc"), max_size=9))
def test_by_counting(digests: list[str]) -> None:
    got = suspects_by_majority(dict(enumerate(digests))).suspects
    digest, count = Counter(digests).most_common(1)[0] if digests else ("", 0)
    if count == len(digests):
        assert got == ()
    elif 2 * count > len(digests):
        assert got == tuple(rank for rank, one in enumerate(digests) if one != digest)
    else:
        assert got is None
