"""Do bounds, hours and intervals say what was proved and no more?"""

from __future__ import annotations

from math import exp

import pytest

from witness.rules.coverage import (
    audited_gpu_hours,
    best_audit_interval,
    bound,
    precision,
)


def test_no_false_alarm_in_the_published_runs() -> None:
    audits = bound(15_320)
    assert audits.rule_of_three is not None
    assert 1 / audits.rule_of_three == pytest.approx(5_107, abs=1)
    assert audits.exact == pytest.approx(2.9957 / 15_320, rel=1e-4)
    assert bound(3_080).rule_of_three == pytest.approx(3 / 3_080)


def test_the_exact_bound_leaves_five_percent() -> None:
    exact = bound(1_000).exact
    assert exact is not None
    assert exp(-exact * 1_000) == pytest.approx(0.05)
    two = bound(1_000, found=2).exact
    assert two == pytest.approx(6.2958 / 1_000, rel=1e-4)


def test_what_cannot_be_bounded() -> None:
    nothing = bound(0)
    assert (nothing.rule_of_three, nothing.exact) == (None, None)
    assert bound(-3).trials == 0
    assert bound(1_000, found=1).rule_of_three is None
    assert bound(1).exact == 1.0


def test_audited_hours() -> None:
    assert audited_gpu_hours(7_200, 0.5, 8) == pytest.approx(8)
    assert audited_gpu_hours(7_200, None, 8) is None
    assert audited_gpu_hours(-5, 0.5, 8) == 0


def test_the_precision_that_a_bound_implies() -> None:
    assert precision(5e-7, 3e-8) == pytest.approx(0.943, abs=0.001)
    assert precision(0, 0) is None


def test_the_best_audit_interval() -> None:
    assert best_audit_interval(8, 1e-6) == pytest.approx(4_000)
    assert best_audit_interval(0.5, 1e-6) == pytest.approx(1_000)
    assert best_audit_interval(0.5, 1) == 1
    assert best_audit_interval(2, 0) is None
    assert best_audit_interval(0, 1e-6) is None
