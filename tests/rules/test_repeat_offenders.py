"""Does a second incident count by device, whatever else happened or changed its name?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from witness.rules.repeat_offenders import (
    RECURRENCE_DAYS,
    PastIncident,
    against_fleet,
    rate,
    recurrence,
)

NOW = datetime(2026, 3, 11, 10, tzinfo=UTC)
FIRST = PastIncident(NOW - timedelta(days=8, hours=23.75), "llama-953m", 13, "transient", "gpu")


def past(
    days: float, kind: str = "transient", same: Literal["gpu", "instance"] = "gpu"
) -> PastIncident:
    return PastIncident(NOW - timedelta(days=days), "job", 4, kind, same)


def test_a_second_transient_under_other_names() -> None:
    others = [past(7, "nonfinite", "instance"), past(6, "nonfinite", "instance")]
    again = recurrence([FIRST, *others], NOW, kind="transient")
    assert again is not None
    assert again.lead == FIRST
    assert again.words.startswith(
        "transient before on 2026-03-02 (job llama-953m, rank 13), same GPU"
    )
    # The others are listed, and neither restart nor break the count.
    assert again.count == 3
    assert again.words.count("gradient not finite before on") == 2


def test_ninety_days_by_default() -> None:
    assert RECURRENCE_DAYS == 90


def test_the_first_incident_does_not_recur() -> None:
    assert recurrence([], NOW) is None


@pytest.mark.parametrize(
    ("days", "counts"),
    [
        (0.001, True),
        (RECURRENCE_DAYS, True),
        (RECURRENCE_DAYS + 0.001, False),
        (0, False),
        (-1, False),
    ],
)
def test_the_window_ends_at_the_incident_itself(days: float, counts: bool) -> None:
    assert (recurrence([past(days)], NOW) is not None) is counts


def test_an_event_in_between_does_not_stretch_the_window() -> None:
    assert recurrence([past(120), past(60)], NOW) is not None
    again = recurrence([past(120), past(60)], NOW)
    assert again is not None
    assert again.count == 1


def test_the_window_is_a_setting() -> None:
    assert recurrence([past(10)], NOW, 7) is None
    assert recurrence([past(10)], NOW, 14) is not None


def test_the_most_telling_one_leads() -> None:
    newest_elsewhere = past(1, "transient", "instance")
    other_kind = past(2, "nonfinite")
    older, newer = past(30), past(20)
    again = recurrence([older, newest_elsewhere, other_kind, newer], NOW, kind="transient")
    assert again is not None
    assert again.incidents == (newer, older, other_kind, newest_elsewhere)


def test_the_words_of_an_instance_and_of_an_unknown_rank() -> None:
    one = PastIncident(NOW - timedelta(days=1), "a", None, "replayer", "instance")
    again = recurrence([one], NOW)
    assert again is not None
    assert again.words == "wrong as replayer before on 2026-03-10 (job a), same instance"


def test_a_long_history_is_cut() -> None:
    again = recurrence([past(day) for day in range(1, 9)], NOW)
    assert again is not None
    assert again.count == 8
    assert again.words.endswith("; and 5 more")
    assert again.words.count("before on") == 3
    three = recurrence([past(day) for day in (1, 2, 3)], NOW)
    assert three is not None
    assert three.words.endswith("same GPU")
    assert three.words.count("before on") == 3


def test_a_rate_with_its_interval() -> None:
    once = rate(2, 1_000)
    assert once.mean == pytest.approx(0.002)
    assert (once.low, once.high) == pytest.approx((0.000242, 0.007225), abs=1e-6)
    assert rate(1, 0.5).mean == 2
    unknown = rate(2, 0)
    assert unknown.mean is None
    assert unknown.high == float("inf")


def test_against_the_fleet() -> None:
    device = against_fleet(2, 1_000, 10, 1_000_000)
    assert device.ratio == pytest.approx(200)
    assert device.chance == pytest.approx(4.97e-5, rel=0.01)
    assert against_fleet(1, 0.5, 1, 0.5).ratio == 1
    usual = against_fleet(0, 1_000, 10, 1_000_000)
    assert (usual.ratio, usual.chance) == (0, 1)
    assert against_fleet(2, 1_000, 10, 0).ratio is None
    assert against_fleet(2, 0, 10, 1_000_000).ratio is None
    assert against_fleet(2, 1_000, 0, 1_000_000).ratio is None
