"""Is every sample either a reading or marked as what it is?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, recorded, series
from witness.rules.cleaning import clean, is_blank
from witness.rules.dcgm_fields import FIELDS
from witness.rules.samples import Series


def test_blanks_of_every_width_become_gaps() -> None:
    heat, replays, tensor = (clean(one) for one in recorded("blank_values").series)
    assert heat.values == (41, 42, 42, 43)
    assert replays.values == (3, 3, 3, 3)
    assert tensor.values == (0.61, 0.60, 0.62, 0.61)
    assert [one.dropped for one in (heat, replays, tensor)] == [2, 2, 2]
    (mark,) = heat.marks
    assert (mark.kind, mark.count) == ("blank", 2)
    assert mark.text == "2 samples say “no value”, 2026-03-02 10:12:00 to 10:13:00 UTC."


@pytest.mark.parametrize("blank", [2147483632, 9223372036854775792, 140737488355328])
def test_the_four_codes_of_each_blank_are_seen_after_rounding_to_float(blank: int) -> None:
    assert all(is_blank(float(blank + code)) for code in range(4))
    if blank < 2**53:
        assert not is_blank(float(blank - 1))
        assert not is_blank(float(blank + 4))


def test_nan_and_infinities_are_marked_apart() -> None:
    one = clean(recorded("nan_and_infinities").series[0])
    assert one.values == (12.5, 12.4, 12.6)
    assert [(mark.kind, mark.count) for mark in one.marks] == [
        ("nan", 1),
        ("infinite", 1),
        ("infinite", 1),
    ]


def test_what_hardware_cannot_report_is_marked() -> None:
    one = clean(series(150, [41, 900, 42, -273, 43]))
    assert one.values == (41, 42, 43)
    assert [mark.kind for mark in one.marks] == ["implausible", "implausible"]


def test_missing_scrapes_are_counted_with_the_interval() -> None:
    times = tuple(ALARM + 15 * at for at in (0, 1, 2, 3, 7, 8, 10, 11))
    one = clean(Series("GPU-x", 150, (), times, (41.0,) * 8))
    assert one.interval_s == 15
    assert [(mark.kind, mark.count) for mark in one.marks] == [("gap", 3), ("gap", 1)]
    assert clean(Series("GPU-x", 150, (), times, (41.0,) * 8), interval_s=60).marks == ()


def test_jitter_of_a_third_of_an_interval_is_no_gap() -> None:
    times = tuple(ALARM + 15 * at + (5 if at % 2 else 0) for at in range(20))
    assert clean(Series("GPU-x", 150, (), times, (41.0,) * 20), interval_s=15).marks == ()


def test_samples_of_a_second_series_are_said() -> None:
    one = series(150, [41.0] * 4)
    marks = clean(Series(one.gpu_uuid, 150, (), one.times, one.values, left_out=3)).marks
    assert [(mark.kind, mark.count) for mark in marks] == [("left_out", 3)]


@given(
    st.sampled_from(FIELDS),
    st.lists(
        st.floats(allow_nan=True, allow_infinity=True)
        | st.sampled_from([2147483633.0, 2.0**63, 140737488355329.0, 0.0, 1.0]),
        max_size=30,
    ),
)
def test_no_sample_vanishes(field: object, values: list[float]) -> None:
    number = field.id  # type: ignore[attr-defined]
    one = clean(series(number, values))
    marked = sum(mark.count for mark in one.marks if mark.kind not in {"gap", "left_out"})
    assert len(one.values) + marked == len(values)
    assert one.dropped == marked
    assert all(math.isfinite(value) and not is_blank(value) for value in one.values)
    assert list(one.times) == sorted(one.times)
