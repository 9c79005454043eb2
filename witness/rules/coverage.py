"""How much was checked, and what false-alarm rate do clean checks prove?"""

from dataclasses import dataclass
from math import sqrt

from witness.rules.gamma import gamma_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Bound:
    """Upper 95 % bounds of a rate per trial.

    `rule_of_three` is None where something was found or nothing was tried; `exact` is the
    Poisson bound, None where nothing was tried.
    """

    trials: int
    found: int
    rule_of_three: float | None
    exact: float | None


def bound(trials: int, found: int = 0) -> Bound:
    """Bound the rate of false accusations from clean trials: about 3/n after none."""
    if trials <= 0:
        return Bound(0, found, None, None)
    three = 3 / trials if found == 0 else None
    exact = gamma_quantile(CONFIDENCE, found + 1, trials)
    return Bound(trials, found, three, min(exact, 1.0))


def audited_gpu_hours(steps: int, step_time_s: float | None, gpus: int) -> float | None:
    """Give the GPU-hours between a beat's first and last step; None where step time is unknown."""
    return None if step_time_s is None else max(steps, 0) * step_time_s * gpus / 3600


def precision(true_rate: float, false_rate_bound: float) -> float | None:
    """Give the least precision that a false-alarm bound implies at a rate of true alarms."""
    total = true_rate + false_rate_bound
    return None if total <= 0 else true_rate / total


def best_audit_interval(audit_cost_steps: float, incidents_per_step: float) -> float | None:
    """Give the interval in steps that loses least: sqrt(2 * cost / rate)."""
    if incidents_per_step <= 0 or audit_cost_steps <= 0:
        return None
    return sqrt(2 * audit_cost_steps / incidents_per_step)
