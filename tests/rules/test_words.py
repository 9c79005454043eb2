"""Do lists, windows and counts read as a person would write them?"""

from __future__ import annotations

import pytest

from witness.rules import words


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "no rank"),
        ([13], "rank 13"),
        ([5, 13], "ranks 5 and 13"),
        ([5, 13, 21], "ranks 5, 13 and 21"),
        (list(range(12)), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 11"),
        (list(range(39)), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 27 more"),
    ],
)
def test_ranks(numbers: list[int], text: str) -> None:
    assert words.ranks(numbers) == text


def test_a_list_is_cut_where_asked() -> None:
    assert words.listed(["a", "b", "c", "d"], shown=2) == "a, b and 2 more"
    assert words.listed([]) == "none"


def test_windows() -> None:
    assert words.window(21, 30) == "21–30"
    assert words.window(30, 30) == "30"


def test_counts() -> None:
    assert words.counted(1, "step") == "1 step"
    assert words.counted(18412, "step") == "18,412 steps"
    assert words.counted(2, "entry", "entries") == "2 entries"


def test_a_long_name_is_cut() -> None:
    assert words.cut("a" * 80) == "a" * 80
    assert words.cut("a" * 81) == "a" * 80 + "…"


def test_a_pair() -> None:
    assert words.pair(13, 5) == "rank 5 replaying rank 13"
