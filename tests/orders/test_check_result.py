"""Is no sign of a deep health check taken for more than it shows?"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.orders.check_result import RECOVERY_BEGINS, Signs, judge

QUIET = Signs(
    status="Running",
    run="Done",
    label=None,
    label_before=None,
    health="Schedulable",
    faults=None,
    faults_before=None,
    seen_testing=False,
    seen_down=False,
    restarted=False,
    recovers=True,
    failed_for=None,
)
REPLACING = "UnschedulablePendingReplacement"

CASES: list[tuple[dict[str, Any], str | None, str | None]] = [
    # Nothing shows a test.
    ({}, "verified", "inconclusive"),
    ({"run": None}, None, None),
    ({"run": "InProgress"}, "accepted", None),
    ({"run": "Superseded"}, "verified", "inconclusive"),
    ({"label": "Passed", "label_before": "Passed"}, "verified", "inconclusive"),
    ({"label": "Failed", "label_before": "Failed"}, "verified", "inconclusive"),
    # It is on its way.
    ({"status": "DeepHealthCheckInProgress"}, "waiting", "running"),
    ({"label": "InProgress", "run": "InProgress"}, "waiting", "running"),
    ({"seen_testing": True, "run": "InProgress"}, "waiting", "running"),
    ({"seen_testing": True, "run": "InProgress", "label": "Passed"}, "waiting", "running"),
    ({"seen_testing": True, "status": "Pending"}, "waiting", "running"),
    ({"status": "SystemUpdating"}, "waiting", None),
    # It passed.
    ({"label": "Passed"}, "verified", "passed"),
    ({"seen_testing": True}, "verified", "passed"),
    ({"seen_testing": True, "run": None}, "verified", "passed"),
    ({"seen_testing": True, "label": "Passed", "label_before": "Passed"}, "verified", "passed"),
    # It ran, and something speaks against it.
    ({"seen_testing": True, "faults": "EfaError"}, "verified", "failed"),
    ({"seen_testing": True, "faults": "EfaError", "faults_before": "EfaError"},
     "verified", "inconclusive"),
    ({"seen_testing": True, "seen_down": True}, "verified", "failed"),
    ({"seen_testing": True, "restarted": True}, "verified", "failed"),
    ({"seen_testing": True, "restarted": True, "label": "Passed"}, "verified", "inconclusive"),
    # It failed.
    ({"label": "Failed"}, "waiting", "failed"),
    ({"label": "Failed", "recovers": False}, "verified", "failed"),
    ({"label": "Failed", "failed_for": RECOVERY_BEGINS}, "verified", "failed"),
    ({"label": "Failed", "failed_for": timedelta(minutes=1)}, "waiting", "failed"),
    ({"label": "Failed", "restarted": True}, "verified", "failed"),
    ({"label": "Failed", "status": "ShuttingDown"}, "waiting", "failed"),
    ({"label": "Failed", "health": REPLACING}, "waiting", "failed"),
    ({"label": "Failed", "status": "Pending"}, "waiting", "failed"),
    ({"seen_testing": True, "status": "ShuttingDown"}, "waiting", "failed"),
    ({"seen_testing": True, "status": "Failure"}, "verified", "failed"),
    ({"seen_testing": True, "health": REPLACING}, "waiting", "failed"),
    ({"status": "ShuttingDown"}, "waiting", None),
]  # fmt: skip


@pytest.mark.parametrize(("change", "state", "result"), CASES)
def test_each_combination_comes_down_to(
    change: dict[str, Any], state: str | None, result: str | None
) -> None:
    verdict = judge(replace(QUIET, **change))
    assert (verdict.state, verdict.result) == (state, result), verdict.words


anything = st.builds(
    Signs,
    status=st.sampled_from(
        ["Running", "Failure", "Pending", "ShuttingDown", "SystemUpdating",
         "DeepHealthCheckInProgress", "DetachInProgress", "unknown"]
    ),
    run=st.sampled_from([None, "InProgress", "Done", "Superseded"]),
    label=st.sampled_from([None, "InProgress", "Passed", "Failed", "odd"]),
    label_before=st.sampled_from([None, "InProgress", "Passed", "Failed", "odd"]),
    health=st.sampled_from([None, "Schedulable", "Unschedulable", REPLACING]),
    faults=st.sampled_from([None, "EfaError"]),
    faults_before=st.sampled_from([None, "EfaError"]),
    seen_testing=st.booleans(),
    seen_down=st.booleans(),
    restarted=st.booleans(),
    recovers=st.booleans(),
    failed_for=st.sampled_from([None, timedelta(), RECOVERY_BEGINS]),
)  # fmt: skip


@given(anything)
def test_passed_is_never_said_without_proof_that_it_was_tested_and_is_whole(signs: Signs) -> None:
    verdict = judge(signs)
    if verdict.result == "passed":
        assert signs.status == "Running"
        assert signs.run != "InProgress"
        assert not signs.faults
        assert not signs.restarted
        assert not signs.seen_down
        assert signs.seen_testing or (signs.label == "Passed" != signs.label_before)
        assert signs.label != "Failed" or not signs.seen_testing
    if verdict.state == "verified":
        assert verdict.result in ("passed", "failed", "inconclusive")
