"""Is what moved over months counted once, and beside how often anybody looked?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, SUSPECT, gpu, over_time, steps
from witness.rules.moved import BoardCounter, Kept, board_counters, moved
from witness.rules.samples import Series
from witness.rules.telemetry import Window, read

DAY = 86_400.0


def kept(window: Window, found: list[Series], uuid: str = SUSPECT) -> Kept:
    got = read(window, uuid, found)
    return Kept(
        uuid, window.start, window.end, got.looked_at, got.observations, board_counters(found)
    )


def window(days: float = 0.0, alarm: float = 0.0) -> Window:
    at = ALARM + days * DAY + alarm
    return Window(at - 3600, at - 120, at, at + 600)


def remapped(first: float, last: float, days: float) -> Series:
    middle = ALARM + days * DAY - 60
    return over_time(
        393,
        lambda time: last if time >= middle else first,
        start=ALARM + days * DAY - 3600,
        end=ALARM + days * DAY + 600,
    )


def test_two_alarms_of_one_hour_show_one_rise() -> None:
    found = [steps(310, (-60, 3.0))]
    twice = [kept(window(), found), kept(window(alarm=30), found)]
    (device,) = moved(twice)
    (field,) = device.fields
    assert (field.windows, field.moved, field.amount) == (2, 2, 3.0)
    assert field.times == (ALARM - 60,)
    assert device.hours == (4200 + 30) / 3600


def test_a_rise_that_went_on_after_the_first_window_is_not_added_twice() -> None:
    found = [
        over_time(
            310,
            lambda time: 3.0 * (time >= ALARM - 60) + 2.0 * (time >= ALARM + 640),
            end=ALARM + 700,
        )
    ]
    (device,) = moved([kept(window(), found), kept(window(alarm=50), found)])
    assert [field.amount for field in device.fields] == [5.0]


def test_what_the_board_counted_between_windows_is_said_without_a_time() -> None:
    months = [kept(window(days), [remapped(first, last, days)])
              for days, first, last in ((0, 2, 2), (30, 5, 6), (60, 6, 6))]  # fmt: skip
    (device,) = moved(months)
    (field,) = device.fields
    assert (field.field_id, field.windows, field.moved) == (393, 3, 1)
    assert (field.amount, field.between) == (1.0, 3.0)
    assert field.text == (
        "Rows remapped after uncorrectable errors: in 1 of 3 windows, by 1 at least, last at "
        "2026-04-01 10:14:00 UTC; 3 more between windows, at unknown times."
    )


def test_a_board_counter_that_fell_between_windows_gained_nothing() -> None:
    months = [kept(window(days), [remapped(level, level, days)])
              for days, level in ((0, 9), (30, 2), (60, 4))]  # fmt: skip
    (device,) = moved(months)
    assert [field.between for field in device.fields] == [2.0]


def test_a_field_that_was_looked_at_and_never_moved_is_not_listed() -> None:
    (device,) = moved([kept(window(), [over_time(202, lambda _: 3.0)])])
    assert device.fields == ()
    assert device.windows == 1


def test_windows_that_did_not_have_the_field_do_not_count_as_looking() -> None:
    found = [kept(window(), [steps(310, (-60, 3.0))]), kept(window(30), [remapped(0, 0, 30)])]
    (device,) = moved(found)
    assert [(field.field_id, field.windows) for field in device.fields] == [(310, 1)]


def test_hardware_stands_before_hints_and_devices_stay_apart() -> None:
    both = kept(window(), [steps(202, (-60, 9.0)), steps(311, (-60, 1.0))])
    other = Kept(gpu(1), ALARM, ALARM + 60, (), ())
    first, second = moved([both, other])
    assert (first.gpu_uuid, first.fields) == (gpu(1), ())
    assert [field.field_id for field in second.fields] == [311, 202]


spans = st.tuples(st.integers(0, 500), st.integers(1, 100))


@given(st.lists(spans, min_size=1, max_size=12))
def test_covered_time_counts_every_second_once(found: list[tuple[int, int]]) -> None:
    seconds = {second for start, length in found for second in range(start, start + length)}
    windows = [Kept(SUSPECT, start, start + length, (), ()) for start, length in found]
    (device,) = moved(windows)
    assert round(device.hours * 3600) == len(seconds)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12))
def test_between_and_inside_add_up_to_the_boards_whole_gain(gains: list[int]) -> None:
    """A board counter over windows end to end: what windows show and what they miss is all."""
    level, counters, inside = 0.0, [], 0.0
    for place, gain in enumerate(gains):
        start = level
        if place % 2:
            level += gain
            continue
        level += gain
        inside += gain
        counters.append(BoardCounter(393, (), place * DAY, start, place * DAY + 60, level))
    windows = [Kept(SUSPECT, one.first, one.last, (393,), (), (one,)) for one in counters]
    (device,) = moved(windows)
    between = sum(field.between for field in device.fields)
    assert inside + between == counters[-1].last_value
