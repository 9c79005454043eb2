"""Do ranges, addresses, gaps and windows come out as they are said to?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.errors import Problem
from app.store.timeline_bins import MOST_BINS, bin_width
from app.web.timeline.asked import Place, around, read_place, understand, write_place
from app.web.timeline.listing import long_words
from app.web.timeline.windows import first_moment, flag

NOW = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC)


def of(address: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(address).query)


def test_without_a_range_the_last_seven_days_are_shown() -> None:
    asked = understand([], NOW, None)
    assert asked.end == datetime(2026, 3, 2, 12, 1, tzinfo=UTC)
    assert asked.span == timedelta(days=7)
    assert asked.live
    assert asked.address() == "/timeline"


@pytest.mark.parametrize(
    "query",
    [
        [],
        [("range", "1h"), ("by", "job")],
        [("job", "a/b?c=d&e=f#g"), ("job", ".."), ("check", "ring"), ("lanes", "40")],
        [("from", "2026-03-01T00:00:00Z"), ("to", "2026-03-02T00:00:00Z"), ("q", "<b>")],
        [("range", "24h"), ("live", "off"), ("cluster", "\u202ex")],
    ],
)
def test_an_address_that_is_written_is_understood_as_the_same(
    query: list[tuple[str, str]],
) -> None:
    asked = understand(query, NOW, None)
    assert understand(of(asked.address()), NOW, None) == asked


def test_zoom_and_move_keep_the_filters_and_fix_the_range() -> None:
    asked = understand([("check", "ring"), ("range", "24h")], NOW, None)
    half = understand(of(asked.zoomed(0.5)), NOW, None)
    assert half.span == timedelta(hours=12)
    assert half.filters.check == ("ring",)
    assert not half.live
    earlier = understand(of(asked.moved(-0.5)), NOW, None)
    assert earlier.end == asked.end - timedelta(hours=12)


def test_one_filter_is_taken_away_and_the_others_stay() -> None:
    asked = understand([("check", "ring"), ("check", "weights"), ("q", "x")], NOW, None)
    left = understand(of(asked.without("check", "ring")), NOW, None)
    assert left.filters.check == ("weights",)
    assert left.filters.q == "x"


def test_all_reaches_from_the_first_alarm_to_now() -> None:
    first = NOW - timedelta(days=400)
    asked = understand([("range", "all")], NOW, (first, NOW - timedelta(days=3)))
    assert asked.start < first
    assert asked.end >= NOW


def test_around_an_event_are_five_minutes_on_both_sides() -> None:
    asked = understand(of(around(NOW, "alpine")), NOW, None)
    assert (asked.start, asked.end) == (NOW - timedelta(minutes=5), NOW + timedelta(minutes=5))
    assert asked.filters.cluster == ("alpine",)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ([("range", "2h")], "range"),
        ([("by", "rank")], "by"),
        ([("lanes", "0")], "lanes"),
        ([("lanes", "41")], "lanes"),
        ([("from", "yesterday")], "from"),
        ([("from", "2026-03-02T00:00:00Z"), ("to", "2026-03-01T00:00:00Z")], "to"),
        ([("from", "1001-03-02T00:00:00Z")], "to"),
        ([("before", "1.2.3")], "before"),
        ([("before", "99999999999999999.1.0000000000000")], "before"),
        ([("status", "open")], "status"),
        ([("by", "node"), ("by", "gpu")], "by"),
        ([("job", "a\x00b")], "job"),
    ],
)
def test_what_is_wrong_in_an_address_is_named(query: list[tuple[str, str]], field: str) -> None:
    with pytest.raises(Problem) as refused:
        understand(query, NOW, None)
    assert refused.value.status == 400
    assert refused.value.field == field


def test_a_place_in_the_list_is_read_back() -> None:
    place = Place(NOW.replace(microsecond=123_456), 3, 2**62 + 17)
    assert read_place(write_place(place)) == place


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(days=3), "3 days"),
        (timedelta(days=3, hours=4, minutes=9), "3 days 4 hours"),
        (timedelta(days=30, hours=5), "30 days"),
        (timedelta(hours=25, minutes=11), "1 day 1 hour"),
        (timedelta(hours=1, minutes=36), "1 hour 36 minutes"),
        (timedelta(minutes=28, seconds=59), "28 minutes"),
    ],
)
def test_a_gap_is_written_out(length: timedelta, said: str) -> None:
    assert long_words(length) == said


@pytest.mark.parametrize("hours", [0.001, 0.5, 1, 5, 24, 100, 168, 720, 8_760, 175_000])
def test_no_range_needs_more_than_three_hundred_bins(hours: float) -> None:
    span = timedelta(hours=hours)
    assert span / bin_width(span) <= MOST_BINS


def test_a_window_begins_where_the_last_pass_ended() -> None:
    passed = NOW - timedelta(seconds=25)
    assert first_moment(NOW, 30, 21, 2.0, (20, passed)) == (passed, "last pass")


def test_without_that_pass_the_step_time_says_when_a_window_began() -> None:
    expected = (NOW - timedelta(seconds=20), "step time")
    assert first_moment(NOW, 30, 21, 2.0, (10, NOW - timedelta(hours=1))) == expected
    assert first_moment(NOW, 30, 21, 2.0, None) == expected


@pytest.mark.parametrize("step_time", [None, 0.0, -1.0])
def test_a_window_of_unknown_length_is_not_placed(step_time: float | None) -> None:
    assert first_moment(NOW, 30, 21, step_time, None) is None


def test_a_checkpoint_lies_before_inside_or_after_the_windows() -> None:
    windows = [(21, 30), (41, 50)]
    assert [flag(step, windows) for step in (20, 21, 30, 35, 45, 51)] == [
        "before", "inside", "inside", "before", "inside", "after",
    ]  # fmt: skip
    assert flag(99, []) == "before"
