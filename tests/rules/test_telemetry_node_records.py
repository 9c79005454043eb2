"""Do a node's raw records say which fault, at which of several times, and whose order it was?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, WINDOW
from witness.rules.moments import at
from witness.rules.node_faults import PREFIX, NodeFault, fault_observations
from witness.rules.node_records import (
    DEEP_CHECK,
    HEALTH,
    MOST_OBSERVATIONS,
    Record,
    Standing,
    faults_around,
    faults_in,
    further_observations,
    gathered,
    group_in,
    instance_in,
    standing_in,
)

IN_WINDOW = "2026-03-02T10:14:30Z"
T = ALARM - 30
HOUR, DAY = 3600.0, 86_400.0
MESSAGE = "NVRM: Xid (PCI:0000:1B:00.0): 79, GPU has fallen off the bus."


def line(ts: str | None = IN_WINDOW, now: str = "True", inner: str | None = None) -> str:
    text = f"Node condition NvidiaErrorReboot is now: {now}, reason: XidHardwareFailure"
    details: dict[str, Any] = {"reason": "XidHardwareFailure", "message": f"{text}: {MESSAGE}"}
    told = {"details: ": {**details, "timestamp": inner}, "ts": ts}
    return json.dumps({**told, "HealthMonitoringAgentDetectionEvent": "HealthEvent"})


@pytest.mark.parametrize(
    ("kept_at", "received", "time", "inner"),
    [
        (T + 2, T + 3, T, None),  # all agree: the line's own
        (T + 2, None, T, None),  # nobody says when it was taken in
        (T + DAY, T + DAY + 1, T + DAY, T),  # the line's clock is a day behind the service's
        (T - DAY, T - DAY + 1, T - DAY, T),
        (T + DAY, T + 3 * DAY, None, T),  # no two agree
        (T, T - DAY, T - DAY, T),  # nothing is written after it was taken in
        (T, T + DAY, T, None),  # shipped a day late
    ],
)
def test_the_time_that_counts(
    kept_at: float, received: float | None, time: float | None, inner: float | None
) -> None:
    (fault,) = faults_in(Record("log", line(), kept_at, received))
    assert (fault.time, fault.inner) == (time, inner)


def test_a_line_without_a_time_has_that_of_the_service() -> None:
    (fault,) = faults_in(Record("log", line(ts=None), T, T + 1))
    assert fault.time == T


def test_times_that_do_not_agree_are_said_and_nothing_counts() -> None:
    faults = faults_in(Record("log", line(), T + DAY, T + 3 * DAY))
    (one,) = fault_observations(WINDOW, faults, ["0000:1b:00"])
    assert (one.when, one.risen) == ("unknown", False)
    assert f"Its times do not agree; the line itself says {at(T)}." in one.text


def test_a_fault_that_is_over_does_not_count() -> None:
    faults = faults_around(WINDOW, [Record("log", line(now="False"), T)])
    (one,) = further_observations(WINDOW, faults, ["0000:1b:00"])
    assert (one.risen, one.evidence) == (False, "context")
    assert one.text.startswith("The node's log says NvidiaErrorReboot XidHardwareFailure is over.")


@pytest.mark.parametrize("seconds", [-90 * DAY, -HOUR - 1, 601, 5 * HOUR])
def test_what_is_outside_of_the_window_does_not_count(seconds: float) -> None:
    written = line(ts=moment(seconds))
    faults = faults_in(Record("log", written, ALARM + seconds))
    (one,) = fault_observations(WINDOW, faults, ["0000:1b:00"])
    assert (one.risen, one.evidence) == (False, "hardware")


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(ALARM + seconds, UTC).isoformat()


def test_equal_lines_are_gathered_but_not_over_the_begin_of_the_window() -> None:
    early, late = WINDOW.suspect_from - 60, WINDOW.suspect_from + 60
    faults = [NodeFault("log", "A", "B", "", time) for time in (early, late, late, late + 1)]
    first, second = faults_around_times(faults)
    assert (first.time, first.repeats) == (early, 0)
    assert (second.time, second.repeats, second.until) == (late, 2, late + 1)
    (_, counted) = fault_observations(WINDOW, (first, second))
    assert "Written 3 times, " in counted.text


def faults_around_times(faults: list[NodeFault]) -> tuple[NodeFault, ...]:
    return gathered(faults, lambda one: (one.time or 0) > WINDOW.suspect_from)


def test_a_pause_or_another_gpu_or_reason_is_an_entry_of_its_own() -> None:
    other = NodeFault("log", "A", "C", "", T)
    same = [NodeFault("log", "A", "B", "", T + seconds) for seconds in (0, 599, 1_300)]
    assert len(gathered([*same, other])) == 3


def test_what_stands_on_a_node_is_one_however_often_it_is_read() -> None:
    condition = NodeFault("condition", "A", "B", "", T)
    assert gathered([condition, condition]) == (condition,)
    assert gathered([NodeFault("label", "A", "B", "")] * 3) == (NodeFault("label", "A", "B", ""),)


def node(**labels: str) -> dict[str, Any]:
    written = {
        "manager": "silent-witness",
        "fieldsV1": {"f:metadata": {"f:labels": {f"f:{HEALTH}": {}}}},
    }
    return {
        "metadata": {
            "name": "hyperpod-i-0123456789abcdef0",
            "labels": {HEALTH: "UnschedulablePendingReplacement", DEEP_CHECK: "Failed", **labels},
            "managedFields": [{"manager": "kubelet"}, written],
        },
        "status": {"conditions": [{"type": "EfaError", "status": "True"}]},
    }


def test_how_a_node_is_treated_is_told_apart_from_faults() -> None:
    record = Record("node", json.dumps(node()), T)
    assert standing_in(record) == (
        Standing(HEALTH, "UnschedulablePendingReplacement", "silent-witness"),
        Standing(DEEP_CHECK, "Failed", None),
    )
    assert [one.kind for one in faults_in(record)] == ["EfaError"]
    assert instance_in(record) == "i-0123456789abcdef0"


@pytest.mark.parametrize(("group", "read"), [("gpu-1", "gpu-1"), ("a/b:*", None), ("", None)])
def test_a_group_is_read_only_where_it_can_be_one(group: str, read: str | None) -> None:
    made = node(**{f"{PREFIX}instance-group-name": group})
    assert group_in(Record("node", json.dumps(made), T)) == read


def test_another_machine_has_nothing_to_say() -> None:
    record = Record("node", json.dumps(node()), T, other="another machine")
    assert (faults_in(record), standing_in(record)) == ((), ())
    assert (group_in(record), instance_in(record)) == (None, None)


def test_a_flood_of_kinds_keeps_what_counts() -> None:
    faults = [NodeFault("log", "Efa", f"reason {one}", "", T - DAY) for one in range(500)]
    counting = NodeFault("condition", "NvidiaErrorReboot", "x", "", T)
    found = further_observations(WINDOW, [*faults, counting])
    assert len(found) == MOST_OBSERVATIONS + 1
    assert any(one.risen for one in found)
    assert "441 further entries" in found[-1].text


any_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=10,
)


@given(st.sampled_from(["log", "node"]), any_json | st.text(max_size=100))
def test_nothing_breaks_it(kind: Any, document: Any) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    record = Record(kind, text, T, T)
    further_observations(WINDOW, faults_around(WINDOW, [record]))
    standing_in(record), group_in(record), instance_in(record)


@given(
    st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {"labels": any_json, "annotations": any_json, "managedFields": any_json}
            ),
            "status": st.fixed_dictionaries({"conditions": st.lists(any_json, max_size=3)}),
        }
    )
)
def test_an_odd_node_breaks_nothing(document: Any) -> None:
    record = Record("node", json.dumps(document), T)
    further_observations(WINDOW, faults_around(WINDOW, [record]))
    standing_in(record), group_in(record), instance_in(record)
