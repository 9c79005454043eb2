"""Do answers move the reading the way the observations do?"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from witness.rules.triage import QUESTIONS, reading


def test_the_seven_questions() -> None:
    assert [one.id for one in QUESTIONS] == [
        "gradual",
        "change",
        "other_nodes",
        "nonfinite",
        "follows",
        "replicas",
        "replay",
    ]
    assert all(one.text.endswith("?") for one in QUESTIONS)


@pytest.mark.parametrize(
    ("yes", "leaning"),
    [
        ((), "undecided"),
        (("gradual",), "likely software"),
        (("change",), "likely software"),
        (("other_nodes",), "likely software"),
        (("nonfinite",), "candidate"),
        (("nonfinite", "change"), "candidate"),
        (("follows",), "strong candidate"),
        (("replicas",), "strong candidate"),
        (("replay",), "strong candidate"),
        (("replay", "nonfinite"), "strong candidate"),
        # A change of software does not rule the hardware out.
        (("follows", "change"), "strong candidate"),
        (("follows", "other_nodes"), "undecided"),
        (("nonfinite", "other_nodes"), "undecided"),
    ],
)
def test_a_reading(yes: tuple[str, ...], leaning: str) -> None:
    answers: dict[str, Any] = {one.id: "yes" if one.id in yes else "no" for one in QUESTIONS}
    assert reading(answers).leaning == leaning


def test_reasons_come_with_the_answers() -> None:
    result = reading({"follows": "yes", "change": "yes", "other_nodes": "no"})
    assert len(result.reasons) == 3
    assert any("no proof" in one for one in result.reasons)
    assert any("reproducible fault would not have ruled hardware out" in r for r in result.reasons)


def test_the_next_step_is_the_cheapest_open_question() -> None:
    assert reading({}).next_step == f"Find out: {QUESTIONS[0].text}"
    assert reading({"gradual": "no"}).next_step == f"Find out: {QUESTIONS[1].text}"
    all_no: dict[str, Any] = {one.id: "no" for one in QUESTIONS}
    assert "two other nodes" in reading(all_no).next_step


def test_every_combination_is_read_and_clears_nothing() -> None:
    for combination in product(("yes", "no", "unknown"), repeat=len(QUESTIONS)):
        answers: Any = dict(zip((q.id for q in QUESTIONS), combination, strict=True))
        result = reading(answers)
        assert result.summary
        assert result.next_step
        if "yes" not in combination:
            assert result.leaning == "undecided"
        assert "not SDC" not in result.summary
