"""Do the drawings of an alarm show what they are given, at any size?"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from app.raw_document import laid_out, strict_text
from app.web.drawings.ring import Result, RingPicture, Stop, ThirdAsked, draw_ring
from app.web.drawings.ring_multiples import SmallRing, described, draw_multiples
from app.web.drawings.ring_stretches import draw_stretches, stretches
from app.web.drawings.step_axis import draw_steps, tick_step
from app.web.drawings.step_picture import Flag, PassBeat, ResumeArrow, StepPicture


def _picture(count: int, hits: set[int], third: int | None = None) -> RingPicture:
    stops = tuple(Stop(at, f"node {at}", "named" if at == 1 else "plain") for at in range(count))
    results: tuple[Result, ...] = tuple("differs" if at in hits else "same" for at in range(count))
    asked = () if third is None else (ThirdAsked(third, 1, "3"),)
    return RingPicture("ring", "A <ring>", "How it is", stops, results, asked)


def _texts(markup: str) -> list[str]:
    """Read the texts of a drawing; it has to be well formed."""
    root = ElementTree.fromstring(str(markup).replace("<svg ", '<svg xmlns="x" ', 1))
    return [element.text or "" for element in root.iter("{x}text")]


@pytest.mark.parametrize("count", range(2, 13))
def test_a_ring_shows_every_rank_and_comparison(count: int) -> None:
    markup = draw_ring(_picture(count, {0, 1}))
    texts = _texts(markup)
    assert [one for one in texts if one.startswith("rank ")] == [
        f"rank {at}" for at in range(count)
    ]
    assert f"{2} of {count}" in texts
    assert markup.count('marker-end="url(#a-sus)"') == 2
    assert markup.count('marker-end="url(#a-ink)"') == count - 2
    assert "style=" not in markup


def test_arrows_do_not_cross_the_boxes() -> None:
    markup = draw_ring(_picture(12, set()))
    boxes = [
        tuple(map(float, found))
        for found in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', markup
        )
    ]
    points = [
        tuple(map(float, point))
        for d in re.findall(r'<path d="(M[^"]+)" class="f-none', markup)
        for point in re.findall(r"([\d.]+) ([\d.]+)", d)
    ]
    assert len(boxes) == 12
    assert points
    inside = [
        (x, y)
        for x, y in points
        for left, top, width, height in boxes
        if left < x < left + width and top < y < top + height
    ]
    assert inside == []


def test_the_third_rank_has_its_arc() -> None:
    assert "3" in _texts(draw_ring(_picture(4, {0}, third=2)))
    assert draw_ring(_picture(4, {0}, third=2)).count("w15 dash") == 1


def test_a_ring_of_2048_is_small() -> None:
    markup = draw_stretches(_picture(2_048, {100, 101, 2_047}))
    ranks = [one for one in _texts(markup) if one.startswith("rank ")]
    assert ranks == [f"rank {at}" for at in (99, 100, 101, 102, 103, 2046, 2047, 0, 1)]
    assert len(markup) < 12_000
    assert "3 of 2,048" in _texts(markup)


def test_more_stretches_than_fit_are_counted() -> None:
    runs, left_out = stretches(tuple("differs" if at % 10 == 0 else "same" for at in range(500)))
    assert sum(len(run) for run in runs) <= 14
    drawn = {position % 500 for run in runs for position in run[:-1]}
    assert left_out == sum(at not in drawn for at in range(0, 500, 10))
    assert left_out > 40


def test_a_ring_that_differs_everywhere_is_no_endless_stretch() -> None:
    runs, _ = stretches(("differs",) * 40)
    assert all(len(run) <= 40 for run in runs)
    markup = draw_stretches(_picture(40, set(range(40))))
    assert "more that differ stand in the table" in markup


def test_small_rings_say_where_they_differ() -> None:
    rings = [SmallRing(at, 4, (0, 1) if at == 5 else ()) for at in range(8)]
    assert "ring 5: 2 of 4. The other 7: none." in described(rings)
    markup = draw_multiples(rings)
    assert markup.count('stroke-width="3.5"') == 2
    assert "5: 2/4" in _texts(markup)


def _steps(**more: object) -> StepPicture:
    base = {
        "title": "Steps",
        "described": "x",
        "low": 0,
        "high": 36,
        "alarm_step": 30,
        "alarm_rows": ("ring",),
        "alarm_says": "alarm, rank 13",
        "window": (21, 30),
        "credible_first": 1,
        "dropped": True,
    }
    return StepPicture(**{**base, **more})  # type: ignore[arg-type]


def test_steps_show_passes_window_and_choices() -> None:
    markup = draw_steps(
        _steps(
            beats=(PassBeat("ring", 0, 20, 3), PassBeat("weights", 0, 20, 3)),
            flags=(Flag(0, "before"), Flag(20, "before"), Flag(25, "inside")),
            resumes=(ResumeArrow(20, 10, True), ResumeArrow(0, 30, False)),
            notes={"nonfinite": "not reported"},
        ),
        wide=True,
    )
    texts = _texts(markup)
    expected = (
        "suspect window 21–30",
        "could reach back to 1 (95 %)",
        "alarm, rank 13",
        "not reported",
        "10 steps",
        "30 steps",
        "21 to 29 applied, 30 dropped",
    )
    for text in expected:
        assert text in texts
    assert markup.count('r="5.5"') == 3
    assert markup.count("f-sus s-sus w15") == 1


def test_a_million_passes_are_a_bar() -> None:
    markup = draw_steps(
        _steps(
            low=0,
            high=1_200_000,
            alarm_step=1_000_000,
            window=(999_991, 1_000_000),
            beats=(PassBeat("nonfinite", 0, 999_999, 1_000_000),),
        ),
        wide=True,
    )
    assert len(markup) < 8_000


@pytest.mark.parametrize("wide", [True, False])
def test_steps_beyond_2_53_stay_apart(wide: bool) -> None:
    low = 2**53
    markup = draw_steps(
        _steps(
            low=low,
            high=low + 12,
            alarm_step=low + 10,
            window=(low + 5, low + 10),
            credible_first=None,
        ),
        wide=wide,
    )
    edges = re.findall(r'd="M([\d.]+) 24v178M([\d.]+) 24v178"', markup)
    assert len(edges) == 1
    assert float(edges[0][1]) - float(edges[0][0]) > 60


def test_a_beat_that_is_not_even_has_no_marks() -> None:
    assert PassBeat("ring", 0, 20, 4).steps() is None
    assert list(PassBeat("ring", 0, 20, 3).steps() or ()) == [0, 10, 20]
    assert list(PassBeat("ring", 3, 20, 1).steps() or ()) == [20]


@pytest.mark.parametrize(
    ("span", "most", "every"), [(0, 5, 1), (40, 9, 5), (41, 3, 20), (10**6, 4, 500_000)]
)
def test_ticks(span: int, most: int, every: int) -> None:
    assert tick_step(span, most) == every


def test_a_document_is_laid_out_without_being_parsed() -> None:
    body = '{"a":[1,2],"b":{"c":NaN,"d":[1.10,1e400]},"e":"x,\\"y\\": [z]"}'
    assert (
        laid_out(body).text
        == '{"a": [1, 2], "b": {"c": NaN, "d": [1.10, 1e400]}, "e": "x,\\"y\\": [z]"}'
    )
    assert strict_text(body).count('"NaN"') == 1
    assert strict_text("[9007199254740991, 9007199254740992, -9007199254740992, 1.5e300]") == (
        '[9007199254740991, "9007199254740992", "-9007199254740992", 1.5e300]'
    )


def test_a_long_document_is_cut_and_a_deep_one_is_shown() -> None:
    long = "[" + ",".join(f'{{"rank":{at},"name":"{"x" * 90}"}}' for at in range(1_000)) + "]"
    shown = laid_out(long, most_lines=100)
    assert shown.text.count("\n") == 99
    assert shown.left_out > 1_000
    assert laid_out("[" * 5_000 + "]" * 5_000).left_out > 0
    assert "more characters)" in laid_out('{"a":"' + "x" * 5_000 + '"}').text
