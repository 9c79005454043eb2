"""Do log lines and labels of a node count for the right GPU, at the right time?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, SUSPECT, WINDOW
from witness.rules.moments import at
from witness.rules.node_faults import PREFIX, agent_event, fault_observations, faults_on_node
from witness.rules.observations import Observation
from witness.rules.telemetry import read

LINK = "NVRM: Xid (PCI:0000:b9:00): 74, pid=1, NVLink: fatal error detected on link 6"
OFF_THE_BUS = "NVRM: Xid (PCI:0000:1B:00.0): 79, GPU has fallen off the bus."
IN_WINDOW = "2026-03-02T10:14:30Z"


def line(
    message: str = OFF_THE_BUS,
    reason: str = "XidHardwareFailure",
    ts: str = IN_WINDOW,
    inner: str = IN_WINDOW,
    key: str = "details",
) -> str:
    text = f'Node condition NvidiaErrorReboot is now: True, reason: {reason}, message: "{message}"'
    details = {"severity": "warn", "timestamp": inner, "reason": reason, "message": text}
    return json.dumps(
        {
            "level": "info",
            "ts": ts,
            "msg": "NPD caught event: %v",
            key: details,
            "HealthMonitoringAgentDetectionEvent": "HealthEvent",
        }
    )


def observed(text: str, *pci: str) -> Observation:
    fault = agent_event(text)
    assert fault is not None
    (one,) = fault_observations(WINDOW, [fault], pci)
    return one


@pytest.mark.parametrize("key", ["details", "details: ", "details:"])
def test_the_details_are_found_under_every_key(key: str) -> None:
    fault = agent_event(line(key=key))
    assert fault is not None
    assert (fault.kind, fault.reason) == ("NvidiaErrorReboot", "XidHardwareFailure")
    assert fault.xid is not None
    assert (fault.xid.pci, fault.xid.number) == ("0000:1b:00", 79)
    assert fault.time == ALARM - 30


def test_an_error_of_this_gpu_counts() -> None:
    one = observed(line(), "0000:1b:00")
    assert (one.risen, one.evidence, one.when) == (True, "hardware", "window")
    assert "Xid 79 (GPU has fallen off the bus)" in one.text


def test_an_error_of_another_gpu_of_the_node_does_not() -> None:
    one = observed(line(LINK), "0000:1b:00")
    assert (one.risen, one.evidence) == (False, "context")
    assert "the GPU at 0000:b9:00, not this one" in one.text


def test_where_the_gpu_sits_is_not_guessed() -> None:
    one = observed(line())
    assert (one.risen, one.evidence) == (True, "hint")
    assert "where this one sits is not known" in one.text
    old = observed(line(ts="2026-03-02T08:00:00Z", inner="2026-03-02T08:00:00Z"))
    assert (old.risen, old.when) == (False, "before")


def test_the_agent_that_blames_the_application_is_quoted() -> None:
    fault = "NVRM: Xid (PCI:0000:1b:00): 31, MMU fault"
    one = observed(line(fault, reason="XidUserAppError"), "0000:1b:00")
    assert (one.risen, one.evidence) == (False, "context")
    assert "blames the application" in one.text


def test_two_times_a_day_apart_are_both_said() -> None:
    one = observed(line(inner="2026-03-03T10:14:30Z"), "0000:1b:00")
    assert one.last == ALARM - 30
    assert f"also says {at(ALARM - 30 + 86_400)}" in one.text


def test_what_stands_on_a_node() -> None:
    details = [{"timestamp": IN_WINDOW, "type": "NvidiaErrorReboot", "reason": "XidHardwareFailure",
                "message": OFF_THE_BUS}]  # fmt: skip
    found = faults_on_node(
        {
            f"{PREFIX}fault-types": "NvidiaErrorReboot",
            f"{PREFIX}fault-reasons": "XidHardwareFailure",
        },
        {f"{PREFIX}fault-details": json.dumps(details)},
        [
            {"type": "Ready", "status": "True"},
            {"type": "NetworkingReady", "status": "True"},
            {"type": "AcceleratedHardwareReady", "status": "True"},
            {"type": "MemoryPressure", "status": "True"},
            {"type": "NvidiaErrorTerminate", "status": "False"},
            {"type": "EfaError", "status": "True", "lastTransitionTime": "2026-03-02T10:14:00Z"},
        ],
    )
    assert [one.source for one in found] == ["label", "annotation", "condition"]
    label, annotation, condition = fault_observations(WINDOW, found, ["0000:1b:00"])
    assert (label.risen, label.when) == (False, "unknown")
    assert "No time is given." in label.text
    assert (annotation.risen, annotation.evidence) == (True, "hardware")
    assert (condition.risen, condition.evidence) == (True, "hint")


def test_a_node_without_faults_has_none() -> None:
    labels = {f"{PREFIX}node-health-status": "Schedulable"}
    assert faults_on_node(labels, {}, [{"type": "Ready", "status": "True"}]) == ()


def test_a_monitor_that_says_the_accelerator_is_not_ready() -> None:
    condition = {
        "type": "AcceleratedHardwareReady",
        "status": "False",
        "reason": "NvidiaXID79Error",
        "lastTransitionTime": IN_WINDOW,
    }
    (one,) = fault_observations(WINDOW, faults_on_node({}, {}, [condition]))
    assert (one.risen, one.evidence, one.when) == (True, "hint", "window")


def test_a_broken_annotation_is_kept_as_text() -> None:
    (one,) = faults_on_node({}, {f"{PREFIX}fault-details": "[not json"}, [])
    assert one.message == "[not json"


def test_they_count_in_a_reading() -> None:
    fault = agent_event(line())
    assert fault is not None
    further = fault_observations(WINDOW, [fault, fault], ["0000:1b:00"])
    got = read(WINDOW, SUSPECT, [], further=further)
    assert got.status == "risen"
    assert got.observations == further
    assert len(further) == 1


any_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["ts", "details", "details: ", "message", "timestamp", "reason", "type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(any_json, st.text(max_size=60))
def test_any_line_and_any_node_can_be_read(document: object, text: str) -> None:
    found = [agent_event(text), agent_event(json.dumps(document))]
    if isinstance(document, dict):
        found.append(
            agent_event(json.dumps({**document, "HealthMonitoringAgentDetectionEvent": 1}))
        )
        found += faults_on_node({}, {}, [{**document, "status": "True"}])
    found += faults_on_node({}, {f"{PREFIX}fault-details": json.dumps(document)}, [])
    fault_observations(WINDOW, [one for one in found if one is not None], ["0000:1b:00"])


def test_deep_or_long_lines_are_refused_quietly() -> None:
    assert agent_event("[" * 50_000) is None
    assert agent_event('{"a":' * 10_000) is None
    assert agent_event(" " * 100_000) is None
