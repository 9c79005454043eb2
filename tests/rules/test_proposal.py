"""Is each case recommended what the rules allow, and told what stands in the way?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.documents import (
    DOCUMENTS,
    LAYOUTS,
    alarm,
    compute,
    layout,
    reduced,
    verdict,
    weights,
)
from witness.rules.findings import Finding, findings
from witness.rules.proposal import (
    NO_INSTANCE,
    NO_NODE,
    CaseFacts,
    Recommendation,
    one_digest_many_devices,
    recommend,
)
from witness.rules.repeat_offenders import PastIncident, Recurrence, recurrence
from witness.rules.topology import Topology

NODE: dict[str, Any] = {"node": "hyperpod-i-1a2b3c4d", "instance_id": "i-1a2b3c4d"}
NOW = datetime(2026, 3, 11, 10, tzinfo=UTC)
PAIR = [[13, 5]]

CULPRIT = compute(pairs=[[13, 5], [21, 13]], culprits=[13])
PERSISTENT = compute(pairs=PAIR, verdicts=[verdict("persistent")])
TRANSIENT = compute(pairs=PAIR, verdicts=[verdict("transient")])
REPLAYER = compute(pairs=PAIR, verdicts=[verdict("replayer computed wrong", suspect=5)])
UNATTRIBUTABLE = compute(pairs=PAIR, verdicts=[verdict("unattributable", suspect=None)])
NAN = compute(nonfinite=[13])
W1 = weights(suspects=[7])
W2 = weights(suspects=None)
G1 = reduced()


def again(kind: str = "transient") -> Recurrence:
    past = PastIncident(NOW - timedelta(days=9), "llama-953m", 13, kind, "gpu")
    found = recurrence([past], NOW, kind=kind)
    assert found is not None
    return found


def judged(document: Any, topology: Topology | None = None, **facts: Any) -> Recommendation:
    topology = layout(4) if topology is None else topology
    return recommend(CaseFacts(findings(alarm(document), topology), **{**NODE, **facts}))


def actions(said: Recommendation) -> list[str]:
    return [one.action for one in said.actions]


def blocks(said: Recommendation, action: str) -> tuple[str, ...]:
    return next(one.blocked_by for one in said.actions if one.action == action)


@pytest.mark.parametrize(
    ("document", "p", "headline", "expected", "status"),
    [
        (
            CULPRIT,
            0.82,
            "Cordon, replace after review: wrong on its own work and on a peer’s",
            ["cordon"],
            "suspect",
        ),
        (
            PERSISTENT,
            0.82,
            "Cordon, replace after review: wrong again on the same work",
            ["cordon"],
            "suspect",
        ),
        (
            W1,
            0.35,
            "Cordon, replace after review: its weights differ from the strict majority",
            ["cordon"],
            "suspect",
        ),
        (
            TRANSIENT,
            0.40,
            "Cordon, audit or test it: right when it repeated",
            ["cordon", "targeted_audit", "deep_health_check"],
            "suspect",
        ),
        (
            REPLAYER,
            0.40,
            "Cordon, confirm again: wrong when it replayed a peer",
            ["cordon", "targeted_audit"],
            "suspect",
        ),
        (
            NAN,
            0.008,
            "Audit or test this GPU: its own gradient was not finite",
            ["targeted_audit", "deep_health_check"],
            "ambiguous",
        ),
        (
            UNATTRIBUTABLE,
            0.05,
            "Test the nodes involved: the comparison does not say which GPU is wrong",
            ["deep_health_check"],
            "ambiguous",
        ),
        (
            W2,
            None,
            "Keep the nodes cordoned, test them: replicas disagree, no majority says which is "
            "wrong",
            ["cordon", "deep_health_check"],
            "ambiguous",
        ),
        (
            G1,
            None,
            "Keep the job stopped, test every node: NaN or Inf after the all-reduce",
            ["deep_health_check"],
            "ambiguous",
        ),
    ],
)
def test_a_first_incident(
    document: Any, p: float | None, headline: str, expected: list[str], status: str
) -> None:
    said = judged(document, p=p)
    assert said.headline == headline
    assert actions(said) == expected
    assert said.status_class == status
    assert all(one.blocked_by == () for one in said.actions)
    assert not said.release_allowed


def test_the_most_urgent_first() -> None:
    order = [CULPRIT, G1, W2, REPLAYER, TRANSIENT, UNATTRIBUTABLE, NAN]
    urgencies = [judged(one).urgency for one in order]
    assert urgencies == sorted(urgencies, reverse=True)
    assert len(set(urgencies)) == len(urgencies)
    software = judged(NAN, one_digest_many_devices=True).urgency
    assert software < min(urgencies)
    assert judged(CULPRIT, cordoned=True).urgency < judged(CULPRIT).urgency
    assert judged(TRANSIENT, recurrence=again()).urgency > judged(TRANSIENT).urgency


@pytest.mark.parametrize(
    ("p", "document", "expected"),
    [
        (0.49, NAN, False),
        (0.50, NAN, True),
        (0.49, UNATTRIBUTABLE, False),
        (0.87, UNATTRIBUTABLE, True),
        (None, NAN, False),
    ],
)
def test_a_likely_defect_is_cordoned_whatever_the_verdict(
    p: float | None, document: Any, expected: bool
) -> None:
    assert ("cordon" in actions(judged(document, p=p))) is expected


@pytest.mark.parametrize(
    ("p", "document", "expected"),
    [
        (0.89, CULPRIT, False),
        (0.90, CULPRIT, True),
        (0.90, UNATTRIBUTABLE, True),
        (0.89, UNATTRIBUTABLE, False),
        (0.95, NAN, True),
    ],
)
def test_replacement_is_proposed_from_nine_tenths_on(
    p: float, document: Any, expected: bool
) -> None:
    said = judged(document, p=p)
    assert ("replace" in actions(said)) is expected
    if expected:
        why = next(one.why for one in said.actions if one.action == "replace")
        assert f"{p:.2f}" in why


@pytest.mark.parametrize("document", [CULPRIT, PERSISTENT, W1, TRANSIENT, REPLAYER])
def test_a_second_incident_proposes_replacement(document: Any) -> None:
    said = judged(document, recurrence=again())
    assert actions(said) == ["cordon", "replace"]
    words = "transient before on 2026-03-02 (job llama-953m, rank 13), same GPU"
    assert said.headline == f"Replace, it recurs: {judged(document).headline.split(': ', 1)[1]}"
    assert words in said.what_to_do
    assert words in next(one.why for one in said.actions if one.action == "replace")
    assert blocks(said, "replace") == ()


@pytest.mark.parametrize("document", [NAN, UNATTRIBUTABLE, W2, G1])
def test_a_second_ambiguous_incident_does_not_by_itself(document: Any) -> None:
    said = judged(document, recurrence=again("nonfinite"))
    assert "replace" not in actions(said)
    assert "Recurs: gradient not finite before on 2026-03-02" in said.what_to_do


@pytest.mark.parametrize("document", [PERSISTENT, CULPRIT])
def test_a_passed_health_check_is_a_fact_beside_it(document: Any) -> None:
    said = judged(document, p=0.58, health_check="passed", cordoned=True)
    assert said.headline.startswith("Keep quarantined, replace after review: wrong ")
    assert "Health check passed" in said.what_to_do
    assert "clears nothing" in said.what_to_do
    assert not said.release_allowed
    assert said.status_class == "suspect"


def test_a_transient_may_be_released_after_a_passed_test() -> None:
    said = judged(TRANSIENT, p=0.33, health_check="passed", cordoned=True)
    assert said.release_allowed
    assert said.headline == (
        "Release, or audit once more: right when it repeated, health check passed"
    )
    assert actions(said) == ["targeted_audit"]
    # Offered, not done: neither of these may be released.
    assert not judged(TRANSIENT, p=0.4, health_check="running").release_allowed
    assert not judged(TRANSIENT, health_check="passed", recurrence=again()).release_allowed
    assert not judged(TRANSIENT, p=0.95, health_check="passed").release_allowed
    assert not judged(TRANSIENT, p=0.95, health_check="failed").release_allowed


def test_a_passed_test_does_not_lift_a_recurrence() -> None:
    said = judged(TRANSIENT, recurrence=again(), health_check="passed")
    assert "replace" in actions(said)


@pytest.mark.parametrize("document", [CULPRIT, TRANSIENT, UNATTRIBUTABLE, W2])
def test_a_failed_health_check_proposes_replacement(document: Any) -> None:
    said = judged(document, p=0.4, health_check="failed")
    assert "replace" in actions(said)
    assert blocks(said, "replace") == ()
    assert said.headline.startswith("Replace: ")
    assert "deep health check failed" in said.headline


def test_a_running_health_check_is_said() -> None:
    said = judged(TRANSIENT, health_check="running", cordoned=True)
    assert "Health check is running." in said.what_to_do
    assert said.headline.startswith("Keep quarantined, ")


def test_without_a_node_nothing_can_be_cordoned() -> None:
    said = judged(CULPRIT, p=0.95, node=None, instance_id=None)
    assert blocks(said, "cordon") == (NO_NODE,)
    assert blocks(said, "replace") == (NO_NODE, NO_INSTANCE)


def test_without_an_instance_id_a_node_can_be_cordoned_only() -> None:
    said = judged(TRANSIENT, p=0.95, instance_id=None)
    assert blocks(said, "cordon") == ()
    assert blocks(said, "replace") == (NO_INSTANCE,)
    tested = judged(TRANSIENT, instance_id=None)
    assert blocks(tested, "deep_health_check") == (NO_INSTANCE,)
    assert blocks(tested, "targeted_audit") == ()


@pytest.mark.parametrize(
    ("document", "scope"), [(CULPRIT, "device"), (UNATTRIBUTABLE, "involved"), (G1, "job")]
)
def test_what_an_action_is_aimed_at(document: Any, scope: str) -> None:
    said = judged(document, node=None, instance_id=None)
    assert {one.scope for one in said.actions} == {scope}
    if scope != "device":
        assert all(one.blocked_by == () for one in said.actions)


def test_two_nodes_are_both_held_and_neither_replaced() -> None:
    document = compute(pairs=[[13, 5], [5, 13]], culprits=[5, 13])
    for finding in findings(alarm(document), layout(2)):
        said = recommend(CaseFacts((finding,), p=0.05, recurrence=again(), **NODE))
        assert said.status_class == "ambiguous"
        assert said.headline.startswith("Keep both quarantined, test both: on two nodes")
        assert actions(said) == ["cordon", "deep_health_check"]
        assert "Only 2 nodes: this check cannot tell rank" in said.what_to_do


def test_a_guard_blocks_replacement_and_says_why() -> None:
    document = compute(pairs=[[13, 5], [21, 13], [29, 21]], culprits=[13, 21])
    said = judged(document, p=0.95, recurrence=again("culprit"))
    assert said.headline.startswith("Quarantine, audit again before any replacement: ")
    assert "may be healthy" in said.headline
    (why,) = blocks(said, "replace")
    assert "More than one fault" in why
    assert actions(said) == ["cordon", "replace", "targeted_audit"]


def test_three_nodes_call_for_another_audit() -> None:
    document = compute(pairs=[[13, 5], [21, 13]], culprits=[13])
    said = judged(document, layout(3), p=0.95)
    assert actions(said) == ["cordon", "replace", "targeted_audit"]
    assert blocks(said, "replace") == ()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"one_digest_many_devices": True}, "one build"),
        ({"nan_only_one_digest": True}, "only NaN or Inf"),
        ({"half_job": True}, "half of the job"),
    ],
)
def test_software_comes_first(flags: dict[str, Any], words: str) -> None:
    said = judged(CULPRIT, p=0.99, recurrence=again(), health_check="failed", **flags)
    assert said.status_class == "software"
    assert said.headline.startswith("Software first: ")
    assert words in said.headline
    assert actions(said) == ["none"]
    assert "Releasing stays possible" in said.what_to_do


def test_half_a_job_in_one_alarm_is_software_first() -> None:
    assert judged(compute(nonfinite=list(range(16)))).status_class == "software"
    assert judged(compute(nonfinite=list(range(15)))).status_class == "ambiguous"


@pytest.mark.parametrize(
    "document",
    [
        weights(suspects=[]),
        weights(),
        compute(),
        {"check": "quantum", "step": 1},
        compute(pairs=PAIR, verdicts=[verdict("cosmic ray")]),
        compute(pairs=PAIR),
    ],
)
def test_what_no_row_covers_needs_a_person(document: Any) -> None:
    said = judged(document, p=0.99, recurrence=again())
    assert said.headline.startswith("A person must look: ")
    assert actions(said) == ["none"]
    assert said.what_to_do == "No recommendation."


def test_a_case_without_findings_needs_a_person() -> None:
    assert recommend(CaseFacts(())).headline.startswith("A person must look")


def test_the_strongest_finding_leads() -> None:
    both: tuple[Finding, ...] = (
        *findings(alarm(NAN), layout(4)),
        *findings(alarm(TRANSIENT), layout(4)),
        *findings(alarm(CULPRIT), layout(4)),
    )
    said = recommend(CaseFacts(both, p=0.99, **NODE))
    assert "wrong on its own work and on a peer’s" in said.headline


def test_a_cordoned_node_is_not_cordoned_again() -> None:
    assert actions(judged(CULPRIT, cordoned=True)) == ["none"]
    assert judged(CULPRIT, cordoned=True).headline.startswith("Keep quarantined, replace after")
    assert actions(judged(TRANSIENT, cordoned=True)) == ["targeted_audit", "deep_health_check"]


@pytest.mark.parametrize(
    ("incidents", "expected"),
    [
        ([("a", "1"), ("a", "2"), ("a", "3")], True),
        ([("a", "1"), ("a", "2")], False),
        ([("a", "1"), ("b", "2"), ("c", "3")], False),
        ([(None, "1"), (None, "2"), (None, "3")], False),
        # Concentrated on one device: hardware, though others are in it too.
        ([("a", "1")] * 5 + [("a", "2"), ("a", "3")], False),
        ([("a", "1")] * 2 + [("a", "2"), ("a", "3")], True),
        ([], False),
    ],
)
def test_one_digest_behind_many_devices(
    incidents: list[tuple[str | None, str]], expected: bool
) -> None:
    assert one_digest_many_devices(incidents) is expected


@given(
    DOCUMENTS,
    LAYOUTS,
    st.none() | st.floats(0, 1),
    st.booleans(),
    st.sampled_from([None, "passed", "failed", "running"]),
    st.sampled_from([None, "node"]),
    st.sampled_from([None, "i-1a2b3c4d"]),
    st.booleans(),
)
def test_any_case_is_judged_within_the_rules(
    document: Any,
    topology: Topology | None,
    p: float | None,
    recurs: bool,
    health: Any,
    node: str | None,
    instance: str | None,
    cordoned: bool,
) -> None:
    found = findings(alarm(document), topology)
    said = recommend(
        CaseFacts(found, p, again() if recurs else None, node, instance, health, cordoned=cordoned)
    )
    assert said.headline
    assert said.what_to_do
    assert said.actions
    assert len(set(actions(said))) == len(said.actions)
    if said.status_class == "software" or not any(one.rule for one in found):
        assert actions(said) == ["none"]
    if "replace" in actions(said):
        assert recurs or health == "failed" or (p is not None and p >= 0.9)
        assert bool(blocks(said, "replace")) >= (node is None or instance is None)
    if cordoned:
        assert "cordon" not in actions(said)
    if said.release_allowed:
        assert health == "passed"
