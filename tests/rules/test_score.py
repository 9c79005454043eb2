"""Does the score follow its formula term by term?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.oracle import answers
from witness.rules.score import (
    STARTING,
    CleanHours,
    Event,
    Incident,
    Parameters,
    Score,
    TestPassed,
    node_score,
    score,
)

DAY = 24.0


def event(recorded: dict[str, Any]) -> Event:
    if recorded["event"] == "incident":
        return Incident(recorded["kind"])
    if recorded["event"] == "clean_hours":
        return CleanHours(recorded["hours"])
    return TestPassed(recorded["test"], recorded["recall"])


def scored(*history: Event, **more: Any) -> Score:
    result = score(history, **more)
    assert result is not None
    return result


def test_the_starting_values_are_the_recorded_ones() -> None:
    recorded = answers("scores.json")["parameters"]
    assert Parameters(
        h=recorded["h"],
        f=recorded["f"],
        q=recorded["q"],
        a=recorded["a"],
        b_hours=recorded["b_hours"],
    ) == Parameters(STARTING.h, dict(STARTING.f), dict(STARTING.q), STARTING.a, STARTING.b_hours)


@pytest.mark.parametrize("case", answers("scores.json")["cases"])
def test_each_recorded_history(case: dict[str, Any]) -> None:
    result = score(map(event, case["history"]))
    expected = case["expect"]
    assert (result is None) == (expected is None)
    if result is not None:
        assert result.odds == pytest.approx(expected["odds"], rel=1e-9)
        assert result.p == pytest.approx(expected["p"], rel=1e-9)
        assert result.incidents == expected["incidents"]
        assert result.clean_hours == pytest.approx(expected["clean_hours"])
        mean = expected["rate_mean_per_hour"]
        assert result.rate_mean_per_hour == pytest.approx(mean, rel=1e-9)


def once(kind: str) -> Incident:
    return Incident(kind)


def clean(days: float) -> CleanHours:
    return CleanHours(days * DAY)


@pytest.mark.parametrize(
    ("history", "p", "within"),
    [
        ([once("persistent")], 0.82, 0.005),
        ([once("culprit")], 0.82, 0.005),
        ([once("persistent"), TestPassed("dcgm", 0.25)], 0.78, 0.005),
        ([once("persistent"), TestPassed("dcgm", 0.70)], 0.58, 0.005),
        ([once("persistent"), clean(7)], 0.62, 0.005),
        ([once("persistent"), clean(30)], 0.46, 0.005),
        ([once("persistent"), clean(365)], 0.20, 0.005),
        ([once("weights")], 0.35, 0.005),
        ([once("transient")], 0.40, 0.005),
        ([once("transient"), TestPassed("dcgm", 0.25)], 0.33, 0.005),
        ([once("transient"), clean(3), once("transient")], 0.9997, 0.00005),
        ([once("transient"), clean(60), once("transient")], 0.98, 0.005),
        ([once("nonfinite")], 0.008, 0.0005),
        ([once("nonfinite"), clean(7), once("nonfinite")], 0.13, 0.005),
        ([once("ambiguous")], 0.05, 0.005),
        ([once("ambiguous"), clean(7), once("ambiguous")], 0.87, 0.005),
    ],
)
def test_the_published_table(history: list[Event], p: float, within: float) -> None:
    assert scored(*history).p == pytest.approx(p, abs=within)


def test_what_came_before_the_first_incident_proves_nothing() -> None:
    before: list[Event] = [CleanHours(9000), TestPassed("dcgm", 0.7)]
    assert score(before) is None
    assert scored(*before, once("culprit")) == scored(once("culprit"))


def test_the_same_test_counts_once() -> None:
    test = TestPassed("dcgm", 0.7)
    assert scored(once("culprit"), test, test) == scored(once("culprit"), test)
    two = scored(once("culprit"), test, TestPassed("replay", 0.7))
    assert two.odds == pytest.approx(scored(once("culprit"), test).odds * 0.3)


def test_a_passed_test_never_ends_a_suspicion() -> None:
    tests = [TestPassed(f"test {number}", 0.7) for number in range(20)]
    result = scored(once("culprit"), *tests, clean(3650))
    assert result.p > 0
    assert result.incidents == 1


@pytest.mark.parametrize(("kind", "as_kind"), [("replayer", "transient"), ("unclear", "ambiguous")])
def test_kinds_without_parameters_of_their_own(kind: str, as_kind: str) -> None:
    assert scored(once(kind)).p == scored(once(as_kind)).p


@pytest.mark.parametrize("kind", ["reduced", "no_majority", "incomplete", "unknown", "new"])
def test_kinds_that_name_no_gpu_are_not_scored(kind: str) -> None:
    assert score([once(kind)]) is None
    assert scored(once("culprit"), once(kind)) == scored(once("culprit"))


def test_the_ladder_multiplies_to_the_odds() -> None:
    history: list[Event] = [
        once("transient"),
        clean(3),
        TestPassed("dcgm", 0.25),
        once("culprit"),
        clean(1),
    ]
    result = scored(*history)
    odds = 1.0
    for term in result.ladder:
        odds *= term.factor
        assert term.odds_after == pytest.approx(odds)
        assert term.text
    assert odds == pytest.approx(result.odds)
    assert [term.text.split(" (")[0] for term in scored(once("culprit")).ladder] == [
        "New defects for each false accusation",
        "Share of true faults that show as culprit",
    ]
    assert scored(once("culprit")).ladder[0].factor == pytest.approx(13.333, abs=0.001)


def test_the_rate_with_its_interval() -> None:
    result = scored(once("culprit"))
    assert 1 / result.rate_mean_per_hour == pytest.approx(48)
    assert 1 / result.rate_high == pytest.approx(12.5, abs=0.05)
    assert 1 / result.rate_low == pytest.approx(12_200, rel=0.005)


def test_whether_the_verdict_would_flip() -> None:
    result = scored(once("culprit"), f_upper={"culprit": 3 / 35.0e6})
    assert result.p == pytest.approx(0.82, abs=0.005)
    assert result.p_if_f_at_upper == pytest.approx(0.62, abs=0.005)
    assert scored(once("culprit")).p_if_f_at_upper is None
    assert scored(once("culprit"), f_upper={}).p_if_f_at_upper == result.p


def test_a_long_history_stays_finite() -> None:
    result = scored(*[once("culprit")] * 500)
    assert result.p == 1.0
    assert result.incidents == 500


def test_a_node_is_as_suspect_as_its_worst_gpu() -> None:
    worst, other = scored(once("culprit")), scored(once("nonfinite"))
    node = node_score([other, None, worst])
    assert node is not None
    assert (node.worst, node.gpus_with_incidents, node.several) == (worst, 2, True)
    alone = node_score([None, other])
    assert alone is not None
    assert (alone.worst, alone.several) == (other, False)
    assert node_score([None]) is None


_EVENTS = st.lists(
    st.builds(Incident, st.sampled_from(sorted(STARTING.f)))
    | st.builds(CleanHours, st.floats(0, 1e5))
    | st.builds(TestPassed, st.sampled_from("abc"), st.floats(0, 1)),
    max_size=12,
)


@given(_EVENTS)
def test_any_history_gives_a_probability(history: list[Event]) -> None:
    result = score(history)
    if result is not None:
        assert 0 <= result.p <= 1
        assert result.rate_low <= result.rate_mean_per_hour
        assert result.rate_low < result.rate_high


@given(_EVENTS, st.floats(0.01, 1e5))
def test_clean_hours_lower_and_incidents_raise(history: list[Event], hours: float) -> None:
    before = score([*history, once("culprit")])
    assert before is not None
    assert scored(*history, once("culprit"), CleanHours(hours)).odds <= before.odds
