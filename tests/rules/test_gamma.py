"""Are quantiles and intervals the known ones?"""

from __future__ import annotations

from math import erf, exp, inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules.gamma import gamma_below, gamma_quantile, poisson_at_least, poisson_interval


@pytest.mark.parametrize("x", [1e-6, 0.1, 1.0, 2.0, 7.5, 40.0])
def test_shapes_with_a_closed_form(x: float) -> None:
    assert gamma_below(1, x) == pytest.approx(1 - exp(-x), rel=1e-12)
    assert gamma_below(2, x) == pytest.approx(1 - exp(-x) * (1 + x), rel=1e-9)
    assert gamma_below(0.5, x) == pytest.approx(erf(sqrt(x)), rel=1e-12)


def test_the_edges() -> None:
    assert gamma_below(3, 0) == 0
    assert gamma_below(3, -1) == 0
    assert gamma_quantile(0, 3) == 0
    assert gamma_quantile(1, 3) == inf
    assert gamma_quantile(0.5, 0) == 0


@given(st.floats(0.05, 500), st.floats(0.001, 0.999), st.floats(0.01, 1e6))
def test_a_quantile_is_the_inverse(shape: float, probability: float, rate: float) -> None:
    x = gamma_quantile(probability, shape, rate)
    assert gamma_below(shape, x * rate) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize(
    ("events", "low", "high"),
    [(0, 0, 3.6889), (1, 0.0253, 5.5716), (3, 0.6187, 8.7673), (10, 4.7954, 18.3904)],
)
def test_the_exact_interval_of_a_count(events: int, low: float, high: float) -> None:
    assert poisson_interval(events, 1.0) == pytest.approx((low, high), abs=6e-5)
    assert poisson_interval(events, 100.0) == pytest.approx((low / 100, high / 100), abs=6e-7)


def test_without_exposure_nothing_is_known() -> None:
    assert poisson_interval(3, 0) == (0, inf)


def test_the_chance_of_at_least_so_many() -> None:
    assert poisson_at_least(0, 2) == 1
    assert poisson_at_least(1, 2) == pytest.approx(1 - exp(-2))
    assert poisson_at_least(2, 2) == pytest.approx(1 - 3 * exp(-2))
    assert poisson_at_least(1, 0) == 0
