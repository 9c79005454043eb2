"""Is a step placed at a time that is never too late?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.step_clock import BEAT_S, Mark, earliest

ALARM = Mark(30, 1300.0)


@pytest.mark.parametrize(
    ("step", "marks", "pace", "expected"),
    [
        (21, [Mark(20, 1200.0)], None, 1210.0),  # a tenth of the way
        (20, [Mark(20, 1200.0)], None, 1200.0),
        (30, [Mark(20, 1200.0)], None, 1300.0),
        (10, [Mark(20, 1200.0)], 2.0, 1180.0),
        (10, [Mark(20, 1200.0)], None, 1100.0),  # by the pace of the two marks
        (10, [], 5.0, 1200.0),
        (10, [], None, None),
        (40, [], None, 1300.0),
        (25, [Mark(20, 1400.0)], None, 1400.0),  # a clock that went backwards
    ],
)
def test_the_time_of_a_step(
    step: int, marks: list[Mark], pace: float | None, expected: float | None
) -> None:
    got = earliest(step, marks, ALARM, pace)
    assert got == (None if expected is None else pytest.approx(expected - BEAT_S))


@given(st.lists(st.tuples(st.integers(0, 29), st.floats(0, 60)), max_size=20), st.integers(0, 30))
def test_never_after_the_step_ended_where_beats_are_honest(
    late: list[tuple[int, float]], step: int
) -> None:
    """Each step takes 10 s and ends at 10 * (step + 1); a beat tells it up to a minute late."""
    marks = [Mark(told, 10.0 * (told + 1) + delay) for told, delay in late]
    got = earliest(step, marks, Mark(30, 310.0), 10.0)
    assert got is not None
    assert got <= 10.0 * (step + 1) + 1e-6
