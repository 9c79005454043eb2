"""Is what a platform has begun by itself read from each of its marks, and from nothing else?"""

from __future__ import annotations

import pytest

from witness.rules.platform_signs import (
    DEEP_CHECK,
    ENDS_MACHINE,
    GKE_FAULT,
    GKE_REPORT,
    HEALTH,
    SENTENCES,
    signs,
)
from witness.rules.waiting_cost import hour_of_waiting

Row = tuple[dict[str, str], tuple[str, ...], str | None, bool, str]
ONE_MARK: tuple[Row, ...] = (
    ({HEALTH: "UnschedulablePendingReplacement"}, (), None, False, "replacing"),
    ({HEALTH: "UnschedulablePendingReboot"}, (), None, False, "rebooting"),
    ({DEEP_CHECK: "InProgress"}, (), None, False, "testing"),
    ({GKE_REPORT: "OperationRUNNING", GKE_FAULT: "SDC"}, (), None, False, "repairing"),
    ({GKE_FAULT: "SDC"}, (), None, False, "repairing"),
    ({"cloud.google.com/active-node-maintenance": "ONGOING"}, (), None, False, "patching"),
    ({}, ("karpenter.sh/disrupted",), None, False, "removing"),
    ({}, (), "ShuttingDown", False, "replacing"),
    ({}, (), "DeepHealthCheckInProgress", False, "testing"),
    ({}, (), None, True, "removing"),
)


@pytest.mark.parametrize(("labels", "taints", "status", "deleting", "doing"), ONE_MARK)
def test_each_mark_is_read(
    labels: dict[str, str], taints: tuple[str, ...], status: str, deleting: bool, doing: str
) -> None:
    (one,) = signs(labels, taints, status, deleting=deleting)
    assert one.doing == doing
    assert one.words.startswith(SENTENCES[one.doing])


def test_both_sources_are_named_where_both_say_it() -> None:
    found = signs({HEALTH: "UnschedulablePendingReplacement"}, (), "ShuttingDown")
    assert [one.doing for one in found] == ["replacing", "replacing"]
    assert found[0].words == (
        "The platform is already replacing this node "
        "(label sagemaker.amazonaws.com/node-health-status=UnschedulablePendingReplacement)"
    )
    assert "status ShuttingDown" in found[1].mark


@pytest.mark.parametrize("status", [None, "Running", "Failure", "Pending", "odd"])
def test_a_node_at_rest_shows_nothing(status: str | None) -> None:
    at_rest = {HEALTH: "Schedulable", DEEP_CHECK: "Passed", GKE_FAULT: "unspecified"}
    assert signs(at_rest, ("nvidia.com/gpu", "our/own"), status) == ()


def test_a_restart_keeps_the_machine() -> None:
    assert "rebooting" not in ENDS_MACHINE
    assert "replacing" in ENDS_MACHINE


def test_an_hour_shows_its_formula() -> None:
    idle = hour_of_waiting(32, 7.5, "stopped")
    assert (idle.kind, idle.gpu_hours, idle.steps) == ("idle", 32.0, 480.0)
    assert idle.formula == (
        "32 GPUs × 1 h = 32 GPU-hours; 3,600 s / 7.5 s a step = 480 steps"
    )  # fmt: skip
    assert hour_of_waiting(32, 7.5, "with the suspect").kind == "at risk"
    assert hour_of_waiting(32, 7.5, "elsewhere").gpu_hours == 0


@pytest.mark.parametrize("step_time", [None, 0.0, -1.0])
def test_what_nobody_reported_is_not_made_up(step_time: float | None) -> None:
    hour = hour_of_waiting(None, step_time, None)
    assert (hour.kind, hour.gpu_hours, hour.steps) == ("not known", None, None)
    assert "not known" in hour.formula
    assert "not reported" in hour.formula
