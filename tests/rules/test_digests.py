"""Are digests held against the alarm where they can be read, and left alone where not?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.documents import alarm, compute, layout, weights
from witness.rules.digests import compare, contradiction, entries
from witness.rules.findings import findings


def ring_digests(wrong: int | None, size: int = 32, offset: int = 8) -> dict[str, Any]:
    """Digest a ring in which each rank computes its own number, and `wrong` adds a half."""

    def computed(by: int, work: int) -> float:
        return work + (0.5 if by == wrong else 0.0)

    return {
        str(rank): {
            "own": computed(rank, rank),
            "replay": computed(rank, (rank + offset) % size),
        }
        for rank in range(size)
    }


BOTH = [[13, 5], [21, 13]]


def test_the_pairs_can_be_made_again() -> None:
    compared = compare(entries(ring_digests(13)), 8, 32)
    assert len(compared) == 32
    assert {pair for pair, differs in compared.items() if differs} == {(13, 5), (21, 13)}


@pytest.mark.parametrize(
    ("pairs", "wrong", "words"),
    [
        (BOTH, 13, None),
        ([[13, 5]], 13, "rank 13 replaying rank 21 differs as well"),
        (BOTH, None, "rank 5 replaying rank 13 agrees"),
    ],
)
def test_a_ring_alarm(pairs: list[list[int]], wrong: int | None, words: str | None) -> None:
    document = compute(pairs=pairs, culprits=[13], digests=ring_digests(wrong))
    said = contradiction(alarm(document), 8, 32)
    assert (said is None) if words is None else (said is not None and words in said)
    for finding in findings(alarm(document), layout(4)):
        assert finding.has("digests_disagree") is (words is not None)
        if words is not None:
            assert finding.blocks_replacement


def test_comparisons_that_cannot_be_made_are_not_counted() -> None:
    digests = ring_digests(13)
    del digests["21"]["own"], digests["5"]["replay"], digests["6"]
    compared = compare(entries(digests), 8, 32)
    assert not {(21, 13), (13, 5), (14, 6), (6, 30)} & set(compared)
    assert contradiction(alarm(compute(pairs=BOTH, digests=digests)), 8, 32) is None


@pytest.mark.parametrize(
    "digests", [{}, {"13": "abc"}, {"13": ["a", "b"]}, {"x": {"own": 1}}, {"²": {"own": 1}}]
)
def test_other_shapes_are_not_read(digests: Any) -> None:
    assert not entries(digests)
    assert contradiction(alarm(compute(pairs=BOTH, digests=digests)), 8, 32) is None


def test_without_offset_or_size_nothing_is_compared() -> None:
    read = alarm(compute(pairs=[[13, 5]], digests=ring_digests(13)))
    assert contradiction(read, None, 32) is None
    assert contradiction(read, 8, None) is None
    suspects = compute(pairs=[[13, 5]], suspects=[1], digests=ring_digests(13, size=4))
    assert contradiction(alarm(suspects), None, 4) is None


@pytest.mark.parametrize(
    ("own", "suspects", "words"),
    [
        ("aaba", [2], None),
        ("aabb", None, None),
        ("aaba", [1], "against rank 2, but the alarm names rank 1"),
        ("aabb", [2], "against nobody, but the alarm names rank 2"),
        ("aaba", None, "against rank 2, but the alarm names nobody"),
        ("aab", [1], None),
    ],
)
def test_a_weights_alarm(own: str, suspects: Any, words: str | None) -> None:
    digests = {str(rank): {"own": one} for rank, one in enumerate(own)}
    read = alarm(weights(suspects=suspects, digests=digests))
    said = contradiction(read, None, 4)
    assert (said is None) if words is None else (said is not None and words in said)
    assert contradiction(read, None, None) is None
