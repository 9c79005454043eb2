"""What are the quantiles of a Gamma or Poisson quantity, without a numeric library?"""

from functools import lru_cache
from math import exp, inf, lgamma, log

_TERMS_LIMIT = 100_000
"""Far more terms than any shape met here needs; guards against an endless loop."""
_PRECISE = 1e-15
_TINY = 1e-300
"""Keeps the continued fraction from dividing by zero."""


def gamma_below(shape: float, x: float) -> float:
    """Give P(X <= x) for X ~ Gamma(shape, rate 1): the regularised lower incomplete gamma."""
    if x <= 0:
        return 0.0
    if x < shape + 1:
        return _series(shape, x)
    return 1.0 - _fraction(shape, x)


def gamma_quantile(probability: float, shape: float, rate: float = 1.0) -> float:
    """Give the x with P(X <= x) = probability for X ~ Gamma(shape, rate), by bisection.

    Bisects the logarithm, since for small shapes the low quantiles lie many decades down.
    """
    if shape <= 0 or probability <= 0:
        return 0.0
    if probability >= 1:
        return inf
    return _unit_quantile(probability, shape) / rate


@lru_cache(maxsize=4096)
def _unit_quantile(probability: float, shape: float) -> float:
    """Bisect at rate 1; kept, since a page asks for the same few shapes for every device."""
    low, high = -700.0, 1.0
    while gamma_below(shape, exp(high)) < probability:
        high += 2.0
    for _ in range(200):
        middle = (low + high) / 2
        if gamma_below(shape, exp(middle)) < probability:
            low = middle
        else:
            high = middle
    return exp(high)


def poisson_interval(events: int, exposure: float, level: float = 0.95) -> tuple[float, float]:
    """Give the exact two-sided interval of a rate from a count over an exposure.

    Without exposure nothing is known: from 0 to infinity.
    """
    if exposure <= 0:
        return 0.0, inf
    tail = (1 - level) / 2
    lower = gamma_quantile(tail, events) if events else 0.0
    return lower / exposure, gamma_quantile(1 - tail, events + 1) / exposure


def poisson_at_least(events: int, expected: float) -> float:
    """Give P(N >= events) for N ~ Poisson(expected)."""
    return 1.0 if events <= 0 else gamma_below(events, expected)


def _series(shape: float, x: float) -> float:
    term = total = 1.0 / shape
    for step in range(1, _TERMS_LIMIT):
        term *= x / (shape + step)
        total += term
        if term < total * _PRECISE:
            break
    return total * exp(shape * log(x) - x - lgamma(shape))


def _fraction(shape: float, x: float) -> float:
    """Give the upper tail by its continued fraction, evaluated from the front (Lentz)."""
    b = x + 1.0 - shape
    c = 1.0 / _TINY
    d = 1.0 / b
    value = d
    for step in range(1, _TERMS_LIMIT):
        numerator = -step * (step - shape)
        b += 2.0
        d = 1.0 / (numerator * d + b or _TINY)
        c = b + numerator / c or _TINY
        value *= c * d
        if abs(c * d - 1.0) < _PRECISE:
            break
    return value * exp(shape * log(x) - x - lgamma(shape))
