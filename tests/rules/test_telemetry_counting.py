"""Is a counter's rise what was really counted, as far as its samples can show it?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import recorded, series
from witness.rules.cleaning import clean
from witness.rules.counting import counted


def test_a_reboot_in_between() -> None:
    replays, corrected = recorded("counter_reset").series
    count = counted(replays.times, replays.values, "driver")
    assert count.total == 4
    assert [(rise.amount, rise.after_reset) for rise in count.rises] == [(2, False), (2, False)]
    (reset,) = count.falls
    assert (reset.was, reset.became) == (120, 0)
    none = counted(corrected.times, corrected.values, "driver")
    assert (none.total, len(none.falls)) == (0, 1)


def test_a_split_series_rises_once() -> None:
    (one,) = recorded("split_by_pod").series
    assert counted(one.times, one.values, "driver").total == 3


def test_blanks_between_equal_values_are_no_rise() -> None:
    one = clean(recorded("blank_values").series[1])
    assert counted(one.times, one.values, "driver").rises == ()


def test_what_a_counter_shows_after_a_reset_was_counted_since() -> None:
    count = counted((0, 15, 30), (7, 7, 3), "driver")
    assert [(rise.before, rise.at, rise.amount, rise.after_reset) for rise in count.rises] == [
        (15, 30, 3, True)
    ]


def test_a_counter_that_the_board_keeps_cannot_fall_and_adds_nothing_when_it_does() -> None:
    count = counted((0, 15, 30, 45), (7, 5, 5, 6), "kept")
    assert count.total == 1
    assert [fall.kept for fall in count.falls] == [True]


def test_a_first_sample_is_no_rise() -> None:
    assert counted((0.0,), (1e6,), "driver").total == 0
    assert counted((), (), "driver").total == 0


def test_rises_between_two_times() -> None:
    count = counted((0, 15, 30, 45), (0, 1, 2, 3), "driver")
    assert [rise.at for rise in count.between(15, 30)] == [30]


# What happens to a real counter between samples: errors, and now and then a reset.
happenings = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 5)), min_size=1, max_size=40
)


@given(happenings)
def test_never_more_than_happened_and_all_of_it_without_resets(
    steps: list[tuple[int, bool, int]],
) -> None:
    """Play errors before and after a possible reset in each step, and count them by hand."""
    counter, values, happened, hidden = 0, [0], 0, 0
    for errors, reset, later in steps:
        happened += errors + later
        shown = counter
        counter += errors
        if reset:
            counter = 0
        counter += later
        if reset:
            # Lost: errors before the reset, and those hidden by a counter that did not fall.
            hidden += errors + (later if counter >= shown else 0)
        values.append(counter)
    one = series(310, values)
    total = counted(one.times, one.values, "driver").total
    assert 0 <= total <= happened
    assert total >= happened - hidden
    if not any(reset for _, reset, _ in steps):
        assert total == happened


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_rises_and_falls_add_up_to_the_last_value(values: list[int]) -> None:
    one = series(202, values)
    count = counted(one.times, one.values, "kept")
    down = sum(fall.was - fall.became for fall in count.falls)
    assert values[0] + count.total - down == values[-1]
