"""Does each window reach back as far as the last pass, or the replays, allow?"""

from __future__ import annotations

from math import lgamma, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.oracle import answers
from witness.rules.suspect_window import (
    AUDITS_LIMIT,
    EVIDENCE,
    credible_audits_back,
    credible_window,
    reported_window,
)


@pytest.mark.parametrize("case", answers("windows.json"))
def test_each_recorded_window(case: dict[str, Any]) -> None:
    got = reported_window(
        case["check"],
        case["step"],
        case["start_step"],
        case["last_audit_pass"],
        case["last_weight_check_pass"],
    )
    assert got == tuple(case["expect"]["window"])


@pytest.mark.parametrize(
    ("check", "passes", "expected"),
    [
        ("weights", (35, 30), (31, 40)),
        ("weights", (35, None), (3, 40)),
        ("compute", (30, 35), (31, 40)),
        ("compute", (None, 35), (3, 40)),
        ("reduced gradient", (30, 35), (40, 40)),
        ("weights", (0, 40), (40, 40)),
        ("quantum", (30, 30), None),
    ],
)
def test_the_window_follows_the_check_that_fired(check: str, passes: Any, expected: Any) -> None:
    assert reported_window(check, 40, 3, *passes) == expected


@pytest.mark.parametrize("case", answers("credible.json"))
def test_each_recorded_reach(case: dict[str, int]) -> None:
    assert credible_audits_back(case["wrong"], case["replays"]) == case["audits_back"]


@pytest.mark.parametrize(
    ("wrong", "replays", "audits"),
    [
        (20, 20, 1),
        (2, 2, 3),
        (1, 1, 5),
        (10, 20, 5),
        (5, 20, 13),
        (2, 20, 45),
        (1, 20, 126),
        (0, 1, 509),
        (0, 20, 8081),
    ],
)
def test_the_published_reaches(wrong: int, replays: int, audits: int) -> None:
    assert credible_audits_back(wrong, replays) == audits


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_reach_is_the_smallest_that_suffices(wrong: int, right: int) -> None:
    a, b = 0.5 + wrong, 0.5 + right

    def missed(audits: int) -> float:
        return lgamma(b + audits) - lgamma(a + b + audits) + lgamma(a + b) - lgamma(b)

    back = credible_audits_back(wrong, wrong + right)
    assert back >= 1
    if back < AUDITS_LIMIT:
        assert missed(back) <= log(0.05)
        assert back == 1 or missed(back - 1) > log(0.05)


@pytest.mark.parametrize(("wrong", "replays"), [(3, 2), (-1, 2), (1, 0)])
def test_impossible_counts_are_refused(wrong: int, replays: int) -> None:
    with pytest.raises(ValueError, match="not possible"):
        credible_audits_back(wrong, replays)


def test_a_verdict_by_itself_is_some_evidence() -> None:
    reach = {kind: credible_audits_back(*counts) for kind, counts in EVIDENCE.items()}
    assert reach == {"culprit": 3, "persistent": 5, "transient": 509}


@pytest.mark.parametrize(
    ("wrong", "replays", "first", "reaches_start"),
    [(20, 20, 221, False), (2, 2, 201, False), (1, 1, 181, False), (0, 1, 0, True)],
)
def test_the_credible_window(wrong: int, replays: int, first: int, reaches_start: bool) -> None:
    window = credible_window((221, 230), wrong, replays, audit_every=10)
    assert (window.first, window.last, window.reaches_start) == (first, 230, reaches_start)
    assert window.audits_back == credible_audits_back(wrong, replays)


def test_the_credible_window_stops_at_the_start_of_the_job() -> None:
    window = credible_window((221, 230), 1, 20, audit_every=10, start_step=200)
    assert (window.first, window.reaches_start) == (200, True)
    # The state that the job started from is older than any step of its own.
    assert credible_window((200, 230), 20, 20, 10, start_step=200).first == 200
