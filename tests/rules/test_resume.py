"""Is the checkpoint to resume from the newest that nothing known speaks against?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.oracle import answers
from witness.rules.resume import (
    Checkpoint,
    left_out,
    newest_before,
    no_choice_reason,
    resume_choices,
    resume_floor,
    tags,
    tainted,
    trust,
)

WINDOW = (221, 230)


def saved(
    step: int, audit: int | None = None, weights: int | None = None, **more: Any
) -> Checkpoint:
    more = {"committed": True, "tagged": True, "uri": f"s3://run/{step}", **more}
    return Checkpoint(step, last_audit_pass=audit, last_weight_check_pass=weights, **more)


KEPT = (
    saved(0, tagged=False),
    saved(100, 100, 100),
    saved(200, 200, None),
    saved(220, 220, 220),
    saved(221, 220, 220),
    saved(300, 300, 300, committed=False),
)


def without(*steps: int) -> list[Checkpoint]:
    return [one for one in KEPT if one.step not in steps]


@pytest.mark.parametrize("case", answers("windows.json"))
def test_each_recorded_answer(case: dict[str, Any]) -> None:
    checkpoints = [
        Checkpoint(
            one["step"],
            committed=one["committed"],
            tagged=one["tags"] is not None,
            **(one["tags"] or {}),
        )
        for one in case["checkpoints"]
    ]
    window = tuple(case["expect"]["window"])
    choices = resume_choices(checkpoints, window, None, None, case["step"])
    expected = case["expect"]["resume_step"]
    assert [one.step for one in choices] == ([] if expected is None else [expected])
    assert (no_choice_reason(checkpoints, window) is None) == (expected is not None)
    assert [one.step for one in tainted(checkpoints, window)] == case["expect"]["tainted"]


def test_the_newest_committed_one_before_the_window() -> None:
    (choice,) = resume_choices(KEPT, WINDOW, None, None, 230, step_time_s=0.5, gpus=32)
    assert (choice.choice, choice.step, choice.uri) == ("before_window", 220, "s3://run/220")
    assert choice.lost_steps == 10
    assert choice.lost_gpu_hours == pytest.approx(10 * 0.5 * 32 / 3600)
    assert "221–230" in choice.why
    assert choice.tags == "Passed checks up to 220; this is a record, not a proof."
    assert choice.caution is None


def test_what_is_left_out_is_said() -> None:
    assert {one.checkpoint.step: one.why for one in left_out(KEPT, WINDOW)} == {
        221: "inside the suspect window 221–230",
        300: "not written to the end and later than the alarm",
    }


def test_both_ends_of_the_window_are_inside_it() -> None:
    ends = [saved(221), saved(230), saved(231)]
    assert {one.checkpoint.step: one.why for one in left_out(ends, WINDOW)} == {
        221: "inside the suspect window 221–230",
        230: "inside the suspect window 221–230",
        231: "later than the alarm",
    }


@pytest.mark.parametrize("known", [{"step_time_s": 0.5}, {"gpus": 32}])
def test_a_cost_needs_both_step_time_and_gpus(known: dict[str, Any]) -> None:
    (choice,) = resume_choices(KEPT, WINDOW, None, None, 230, **known)
    assert choice.lost_gpu_hours is None


def test_weights_that_were_never_checked_are_said() -> None:
    (choice,) = resume_choices(without(100, 220), WINDOW, None, None, 230)
    assert choice.step == 200
    assert "weights never checked" in choice.tags
    assert choice.lost_gpu_hours is None


def test_step_0_without_tags_is_a_choice() -> None:
    (choice,) = resume_choices(without(100, 200, 220), WINDOW, None, None, 230)
    assert (choice.step, choice.lost_steps) == (0, 230)
    assert choice.tags == "No tags: which checks had passed is not known."


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (saved(9, 5, 5), "Passed checks up to 5; this is a record, not a proof."),
        (saved(9, 5, 4), "Ring passed up to 5, weights passed up to 4; this is a record, not a "),
        (saved(9, None, 4), "Ring never checked, weights passed up to 4; this is a record"),
        (saved(9, None, None), "Ring never checked, weights never checked."),
        (saved(9, 0, 0), "Passed checks up to 0;"),
        (saved(9, tagged=False), "No tags:"),
    ],
)
def test_the_tags_in_words(checkpoint: Checkpoint, words: str) -> None:
    assert tags(checkpoint).startswith(words)


def test_no_word_calls_a_state_clean() -> None:
    choices = resume_choices(KEPT, WINDOW, 150, 50, 230)
    floor = resume_floor(KEPT, [WINDOW])
    said = " ".join((*(f"{c.why} {c.tags} {c.caution}" for c in choices), floor.why)).lower()
    for word in ("clean", "safe", "healthy", "good", "innocent", " ok"):
        assert word not in said


def test_three_choices_the_newest_first() -> None:
    choices = resume_choices(KEPT, WINDOW, 201, 50, 230)
    assert [(one.choice, one.step, one.lost_steps) for one in choices] == [
        ("before_window", 220, 10),
        ("before_credible_window", 200, 30),
        ("before_joining", 0, 230),
    ]
    assert "201" in choices[1].why
    assert "joined" in choices[2].why


def test_a_bound_that_no_checkpoint_lies_before_gives_no_choice() -> None:
    choices = resume_choices(KEPT, WINDOW, 0, 0, 230)
    assert [one.choice for one in choices] == ["before_window"]


def test_two_bounds_can_lead_to_the_same_checkpoint() -> None:
    choices = resume_choices(KEPT, WINDOW, 221, None, 230)
    assert [(one.choice, one.step) for one in choices] == [
        ("before_window", 220),
        ("before_credible_window", 220),
    ]


def test_unknown_completion_is_a_last_resort_and_said() -> None:
    unknown = saved(210, 210, 210, committed=None)
    (choice,) = resume_choices([saved(100), unknown], WINDOW, None, None, 230)
    assert choice.step == 100
    assert choice.caution == "Newer, but not known to be complete or tainted: 210."
    (choice,) = resume_choices([unknown, saved(211, committed=False)], WINDOW, None, None, 230)
    assert choice.step == 210
    assert choice.caution is not None
    assert choice.caution.startswith("Whether this checkpoint was written to the end is not known.")


def test_another_alarms_window_is_a_caution() -> None:
    (choice,) = resume_choices(KEPT, WINDOW, None, None, 230, other_windows=[(215, 220)])
    assert choice.caution == "It lies in the suspect window 215–220 of another alarm."
    (choice,) = resume_choices(KEPT, WINDOW, None, None, 230, other_windows=[(1, 9), (221, 300)])
    assert choice.caution is None


@pytest.mark.parametrize(
    ("checkpoints", "window", "words"),
    [
        (KEPT, None, "no suspect window"),
        ([], WINDOW, "No checkpoint of this job is known"),
        ([saved(221), saved(300)], WINDOW, "before step 221"),
        ([saved(9, committed=False)], WINDOW, "unfinished"),
        (KEPT, (0, 10), "before step 0"),
    ],
)
def test_why_there_is_no_choice(checkpoints: Any, window: Any, words: str) -> None:
    assert resume_choices(checkpoints, window, None, None, 230) == ()
    assert words in (no_choice_reason(checkpoints, window) or "")


def test_taint_passes_to_descendants() -> None:
    chain = [
        saved(20),
        saved(25, uri="a"),
        saved(40, parent="a", uri="b"),
        saved(5, parent="b", uri="c"),
        saved(60, parent="s3://run/20", uri="d"),
        saved(70, parent="gone"),
    ]
    assert [one.step for one in tainted(chain, (21, 30))] == [25, 40, 5]
    # The fine-tune of step 5 is older by its number but made from a tainted state.
    assert resume_choices(chain[1:4], (21, 30), None, None, 30) == ()
    assert tainted(chain, None) == ()


def test_a_circle_of_parents_ends() -> None:
    circle = [saved(25, uri="a", parent="b"), saved(40, uri="b", parent="a")]
    assert [one.step for one in tainted(circle, (21, 30))] == [25, 40]


def test_checkpoints_without_address_have_no_descendants() -> None:
    chain = [saved(25, uri=None), saved(40, uri=None, parent=None)]
    assert [one.step for one in tainted(chain, (21, 30))] == [25]


@pytest.mark.parametrize(
    ("is_tainted", "audit", "weights", "committed", "expected"),
    [
        (False, 110, 110, True, "verified"),
        (False, 100, 110, True, "candidate"),
        (False, 110, 100, True, "candidate"),
        (False, None, 110, True, "candidate"),
        (False, 110, None, True, "candidate"),
        (False, 110, 110, False, "candidate"),
        (False, 110, 110, None, "candidate"),
        (True, 110, 110, True, "tainted"),
    ],
)
def test_trust(
    is_tainted: bool, audit: int | None, weights: int | None, committed: Any, expected: str
) -> None:
    assert trust(saved(100, committed=committed), is_tainted, audit, weights) == expected


def test_the_floor_lies_before_every_open_window() -> None:
    floor = resume_floor(KEPT, [(221, 230), (190, 210)])
    assert floor.highest_step == 189
    assert floor.checkpoint is not None
    assert floor.checkpoint.step == 100
    assert "190–210" in floor.why


def test_no_open_window_sets_no_floor() -> None:
    floor = resume_floor(KEPT, [])
    assert floor.highest_step is None
    assert floor.checkpoint is not None
    assert floor.checkpoint.step == 221
    assert "No open alarm" in floor.why


def test_a_window_from_the_first_step_leaves_nothing() -> None:
    floor = resume_floor(KEPT, [(0, 0)])
    assert (floor.highest_step, floor.checkpoint) == (-1, None)
    assert "No saved state" in floor.why
    floor = resume_floor([saved(20, committed=False)], [(21, 30)])
    assert (floor.highest_step, floor.checkpoint) == (20, None)
    assert "complete" in floor.why


def test_the_floors_checkpoint_is_not_tainted() -> None:
    chain = [saved(10), saved(25, uri="a"), saved(15, parent="a")]
    floor = resume_floor(chain, [(21, 30)])
    assert floor.checkpoint is not None
    assert floor.checkpoint.step == 10


_CHECKPOINTS = st.lists(
    st.builds(
        saved,
        st.integers(0, 60),
        st.none() | st.integers(0, 60),
        st.none() | st.integers(0, 60),
        committed=st.sampled_from([True, False, None]),
    ),
    max_size=12,
)


@given(_CHECKPOINTS, st.integers(0, 60), st.integers(0, 20))
def test_a_choice_is_always_before_its_window(
    checkpoints: list[Checkpoint], first: int, length: int
) -> None:
    window = (first, first + length)
    for choice in resume_choices(checkpoints, window, None, None, window[1]):
        assert choice.step < first
        known = [one.step for one in checkpoints if one.committed and one.step < first]
        assert choice.step == max(known, default=choice.step)
    floor = resume_floor(checkpoints, [window])
    assert floor.highest_step == first - 1
    assert newest_before(checkpoints, first) == floor.checkpoint
