"""Does the exposure of a device add up as its attempts do one by one?"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from app.store.columns import micros
from app.store.device_exposure import Exposure
from app.store.exposure_reading import Stretch

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(20))
def test_hours_equal_the_sum_over_the_attempts(seed: int) -> None:
    chance = random.Random(seed)
    stretches = []
    for _ in range(chance.randrange(1, 60)):
        begin = START + timedelta(minutes=chance.randrange(50_000))
        length = timedelta(minutes=chance.choice((1, 7, 600, 9_000)))
        stretches.append(Stretch(begin, begin + length, chance.random() * 3600))
    exposure = Exposure((micros(s.start), micros(s.end), s.audited_seconds) for s in stretches)
    moments = [START + timedelta(minutes=chance.randrange(-5_000, 70_000)) for _ in range(30)]
    for since, until in pairwise(moments):
        if since > until:
            since, until = until, since  # noqa: PLW2901
        each = sum(one.hours_between(since, until) for one in stretches)
        assert exposure.hours_between(since, until) == pytest.approx(each, abs=1e-9)


def test_work_of_no_length_counts_where_it_is() -> None:
    exposure = Exposure([(micros(START), micros(START), 7200.0)])
    hour = timedelta(hours=1)
    assert exposure.hours_between(START - hour, START + hour) == 2.0
    assert exposure.hours_between(START + hour, START + 2 * hour) == 0.0
    assert exposure
    assert not Exposure([])


def test_spans_are_those_that_touch_the_range() -> None:
    day = 86_400_000_000
    base = micros(START)
    exposure = Exposure([(base + n * day, base + n * day + 10, 1.0) for n in range(5)])
    shown = exposure.spans(START + timedelta(days=1), START + timedelta(days=3))
    assert shown == [(base + n * day, base + n * day + 10) for n in (1, 2, 3)]
