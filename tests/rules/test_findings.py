"""Does every alarm lead to the findings that the table and the guards above it give?"""

from __future__ import annotations

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
from witness.rules.decision_table import BY_ID, evaluate
from witness.rules.findings import NO_RECOMMENDATION, Finding, findings
from witness.rules.guards import BLOCKING, CODES
from witness.rules.topology import Place, Topology

FOUR = layout(4)
CULPRIT = compute(pairs=[[13, 5], [21, 13]], culprits=[13])


def found(document: dict[str, Any], topology: Topology | None = FOUR) -> tuple[Finding, ...]:
    return findings(alarm(document), topology)


def only(document: dict[str, Any], topology: Topology | None = FOUR) -> Finding:
    (finding,) = found(document, topology)
    return finding


def codes(finding: Finding) -> list[str]:
    return [caution.code for caution in finding.cautions]


PAIR: dict[str, Any] = {"pairs": [[13, 5]]}


@pytest.mark.parametrize(
    ("document", "rule", "rank", "kind", "ambiguous"),
    [
        (weights(suspects=[7]), "W1", 7, "weights", False),
        (weights(suspects=None), "W2", None, "no_majority", True),
        (CULPRIT, "R1", 13, "culprit", False),
        (compute(**PAIR, verdicts=[verdict("persistent")]), "R2", 13, "persistent", False),
        (compute(**PAIR, verdicts=[verdict("transient")]), "R3", 13, "transient", False),
        (
            compute(**PAIR, verdicts=[verdict("replayer computed wrong", suspect=5)]),
            "R4",
            5,
            "replayer",
            False,
        ),
        (compute(nonfinite=[13]), "N1", 13, "nonfinite", True),
        (reduced(), "G1", None, "reduced", True),
        (
            compute(**PAIR, verdicts=[verdict("unattributable", suspect=None)]),
            "U1",
            None,
            "ambiguous",
            True,
        ),
        (compute(**PAIR, verdicts=[verdict("unclear")]), "U1", 13, "unclear", True),
    ],
)
def test_each_row_of_the_table(
    document: dict[str, Any], rule: str, rank: int | None, kind: str, ambiguous: bool
) -> None:
    finding = only(document)
    assert (finding.rule, finding.rank, finding.kind) == (rule, rank, kind)
    assert finding.ambiguous is ambiguous
    assert finding.blocks_replacement is ambiguous
    assert (finding.meaning, finding.action) == (BY_ID[rule].meaning, BY_ID[rule].action)
    assert finding.cautions == ()
    assert not finding.software_first


@pytest.mark.parametrize(
    ("kind", "rank"),
    [("persistent", 13), ("transient", 13), ("unclear", 13), ("replayer computed wrong", 5)],
)
def test_a_verdict_without_suspect_is_about_whom_its_kind_says(kind: str, rank: int) -> None:
    assert only(compute(**PAIR, verdicts=[verdict(kind, suspect=None)])).rank == rank


def test_whom_a_finding_involves() -> None:
    assert only(CULPRIT).involved == (13,)
    unattributable = [verdict("unattributable", suspect=None)]
    assert only(compute(**PAIR, verdicts=unattributable)).involved == (13, 5, 21)
    assert only(weights(suspects=None)).involved == ()
    assert only(reduced()).involved == ()


def test_two_suspects_are_two_findings() -> None:
    assert [(one.rule, one.rank) for one in found(weights(suspects=[12, 7, 12]))] == [
        ("W1", 7),
        ("W1", 12),
    ]


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (weights(suspects=[]), "suspects_empty", "weights differ but names nobody"),
        (weights(), "suspects_missing", "incomplete"),
        (compute(), "names_nothing", "names no rank"),
        ({"check": "quantum", "step": 1}, "unknown_check", "“quantum”"),
    ],
)
def test_what_no_row_covers_is_shown_without_a_recommendation(
    document: dict[str, Any], code: str, words: str
) -> None:
    finding = only(document)
    assert (finding.rule, finding.rank) == (None, None)
    assert finding.action == NO_RECOMMENDATION
    assert codes(finding) == [code]
    assert words in finding.meaning
    assert finding.blocks_replacement
    assert finding.ambiguous


def test_a_posted_word_does_not_swamp_a_sentence() -> None:
    assert len(only({"check": "x" * 5000, "step": 1}).meaning) < 150
    assert len(only(compute(**PAIR, verdicts=[verdict("y" * 5000)])).meaning) < 150


def test_an_unknown_verdict_is_shown_at_its_suspect() -> None:
    finding = only(compute(**PAIR, verdicts=[verdict("cosmic ray")]))
    assert (finding.rule, finding.rank, finding.kind) == (None, 13, "unknown")
    assert codes(finding) == ["unknown_verdict"]
    assert finding.involved == (13, 5, 21)
    nobody = only(compute(**PAIR, verdicts=[verdict("cosmic ray", suspect=None)]))
    assert nobody.rank is None


@pytest.mark.parametrize(
    ("document", "nonfinite_of_their_own"),
    [
        (compute(nonfinite=[13], **PAIR, verdicts=[verdict("transient")]), []),
        (compute(nonfinite=[13], pairs=[[13, 5], [21, 13]], culprits=[13]), []),
        (compute(nonfinite=[13, 2], pairs=[[13, 5], [21, 13]], culprits=[13]), [2]),
        (compute(nonfinite=[5], **PAIR, verdicts=[verdict("transient")]), [5]),
        (compute(nonfinite=[13], **PAIR, verdicts=[verdict("unattributable", suspect=None)]), [13]),
        (compute(nonfinite=[9, 3, 9]), [3, 9]),
    ],
)
def test_a_nonfinite_rank_that_nothing_covers_has_its_own_finding(
    document: dict[str, Any], nonfinite_of_their_own: list[int]
) -> None:
    assert [f.rank for f in found(document) if f.rule == "N1"] == nonfinite_of_their_own


def test_a_pair_that_nothing_covers_is_not_lost() -> None:
    loose, culprit = sorted(
        found(compute(pairs=[[13, 5], [21, 13], [14, 6]], culprits=[13])),
        key=lambda one: one.rule or "",
    )
    assert (loose.rule, loose.kind, loose.involved) == (None, "ambiguous", (14, 6))
    assert codes(loose) == ["pair_not_confirmed"]
    assert codes(culprit) == []


def test_pairs_whose_culprit_was_not_named() -> None:
    one, other = found(compute(pairs=[[13, 5], [21, 13]]))
    assert [one.involved, other.involved] == [(13, 5), (21, 13)]
    assert codes(one) == codes(other) == ["pair_not_confirmed", "culprits_disagree"]
    assert "rank 13 is a culprit" in one.cautions[1].text


def test_two_faults_in_two_rings_are_two_plain_culprits() -> None:
    both = found(compute(pairs=[[13, 5], [21, 13], [22, 14], [30, 22]], culprits=[13, 22]))
    assert [(f.rule, f.rank, f.cautions, f.blocks_replacement) for f in both] == [
        ("R1", 13, (), False),
        ("R1", 22, (), False),
    ]


@pytest.mark.parametrize(
    ("pairs", "culprits"),
    [
        # Two culprits at one local index.
        ([[13, 5], [21, 13], [29, 21]], [13, 21]),
        # All four comparisons of a ring differ.
        ([[13, 5], [21, 13], [29, 21], [5, 29]], [5, 13, 21, 29]),
    ],
)
def test_more_than_one_fault_in_a_ring(pairs: list[list[int]], culprits: list[int]) -> None:
    for finding in found(compute(pairs=pairs, culprits=culprits)):
        assert codes(finding) == ["multiple_faults"]
        assert f"{len(pairs)} comparisons differ" in finding.cautions[0].text
        assert "may be healthy" in finding.cautions[0].text
        assert finding.blocks_replacement
        assert not finding.ambiguous


def test_two_pairs_apart_in_one_ring_are_more_than_one_fault() -> None:
    verdicts = [verdict("transient"), verdict("persistent", (29, 21), 5, 29)]
    both = found(compute(pairs=[[13, 5], [29, 21]], verdicts=verdicts))
    assert [(f.rule, codes(f), f.blocks_replacement) for f in both] == [
        ("R3", ["multiple_faults"], True),
        ("R2", ["multiple_faults"], True),
    ]


def test_a_fault_beside_another_ring_is_not_weakened_by_it() -> None:
    document = compute(
        pairs=[[13, 5], [21, 13], [14, 6], [22, 14], [30, 22]], culprits=[13, 14, 22]
    )
    assert [(f.rank, codes(f)) for f in found(document)] == [
        (13, []),
        (14, ["multiple_faults"]),
        (22, ["multiple_faults"]),
    ]


@pytest.mark.parametrize("topology", [layout(3), None])
def test_a_culprit_on_three_nodes_always_carries_a_caution(topology: Topology | None) -> None:
    document = compute(pairs=[[13, 5], [21, 13]], culprits=[13], world_size=24, peer_offset=8)
    finding = only(document, topology)
    assert [code for code in codes(finding) if code != "no_map"] == ["three_node_ring"]
    assert not finding.blocks_replacement
    assert finding.kind == "culprit"


def test_further_audits_are_said_where_a_ring_shows_several_faults() -> None:
    chain: dict[str, Any] = {"pairs": [[13, 5], [21, 13], [29, 21]], "culprits": [13, 21]}
    at_16 = {"peer_offset": 16, "mismatched_pairs": [[13, 37], [29, 13], [21, 5], [37, 21]]}
    job: dict[str, Any] = {"world_size": 40, "peer_offset": 8}
    further: dict[str, dict[str, Any]] = {
        "none": {},
        "settled": {"further_audits": [at_16]},
        "open": {"further_audits": [{"peer_offset": 16, "mismatched_pairs": [[13, 37]]}]},
    }
    said = {
        name: found(compute(**chain, **job, **more))[0].cautions[0].text
        for name, more in further.items()
    }
    assert said["none"].endswith("Audit again before any replacement.")
    assert "leave one smallest explanation: ranks 13 and 21. A person must agree" in said["settled"]
    assert "did not tell them apart" in said["open"]
    assert found(compute(**chain, **job, further_audits=[at_16]))[0].blocks_replacement


@pytest.mark.parametrize(("replicas", "expected"), [(3, ["three_replicas"]), (4, [])])
def test_a_majority_of_three_replicas_carries_a_caution(replicas: int, expected: list[str]) -> None:
    finding = only(weights(suspects=[1], world_size=replicas), layout(replicas, 1))
    assert codes(finding) == expected
    assert (finding.rule, finding.blocks_replacement) == ("W1", False)


def test_a_verdict_on_three_nodes_has_its_third_witness() -> None:
    assert codes(only(compute(**PAIR, verdicts=[verdict("persistent")]), layout(3))) == []


TWO_NODE = compute(pairs=[[13, 5], [5, 13]], culprits=[5, 13])


@pytest.mark.parametrize("topology", [layout(2), None])
def test_a_two_node_job_is_ambiguous_for_both(topology: Topology | None) -> None:
    five, thirteen = found(TWO_NODE, topology)
    assert (five.rank, thirteen.rank) == (5, 13)
    for finding in (five, thirteen):
        assert (finding.rule, finding.kind) == ("R1", "ambiguous")
        assert finding.ambiguous
        assert finding.blocks_replacement
        assert not finding.software_first
        assert [code for code in codes(finding) if code != "no_map"] == ["two_nodes"]
        assert finding.involved == (5, 13)
    if topology is not None:
        text = "Only 2 nodes: this check cannot tell rank 5 from rank 13."
        assert five.cautions[0].text == text


def test_a_ring_of_two_in_a_larger_job_says_so() -> None:
    document = compute(pairs=[[29, 13], [13, 29]], culprits=[13, 29], peer_offset=16)
    one, _ = found(document)
    assert one.ambiguous
    assert one.cautions[0].text.startswith("Only 2 nodes in this ring")


def test_a_two_rank_job_is_not_taken_for_software() -> None:
    topology = Topology.from_places([Place(0, "a"), Place(1, "b")], 2)
    for finding in found(compute(pairs=[[1, 0], [0, 1]], culprits=[0, 1]), topology):
        assert codes(finding) == ["two_nodes"]
        assert not finding.software_first


def test_a_third_rank_on_one_of_two_nodes_is_no_witness() -> None:
    document = compute(**PAIR, verdicts=[verdict("persistent", third=6)])
    finding = only(document, layout(2))
    assert (finding.rule, finding.rank, finding.kind) == ("R2", 13, "ambiguous")
    assert codes(finding) == ["two_nodes", "third_shares_node"]
    assert finding.ambiguous
    assert finding.blocks_replacement


@pytest.mark.parametrize("third", [6, 14, 5, 13])
def test_a_third_rank_on_a_node_of_the_pair_is_no_witness(third: int) -> None:
    finding = only(compute(**PAIR, verdicts=[verdict("transient", third=third)]))
    assert codes(finding) == ["third_shares_node"]
    assert (finding.ambiguous, finding.kind) == (True, "ambiguous")


def test_a_peer_on_the_same_node_is_no_witness() -> None:
    topology = Topology.from_places([Place(r, "abab"[r // 8]) for r in range(32)], 32, 8)
    document = compute(pairs=[[29, 13], [13, 5], [5, 29]], culprits=[13], peer_offset=8)
    finding = next(one for one in found(document, topology) if one.rank == 13)
    assert "peer_shares_node" in codes(finding) or "two_nodes" in codes(finding)
    near = Topology.from_places([Place(r, "aabcd"[r // 8]) for r in range(40)], 40, 8)
    finding = only(compute(pairs=[[13, 5], [21, 13]], culprits=[13]), near)
    assert codes(finding) == ["peer_shares_node"]
    assert finding.ambiguous


def test_a_job_of_one_node_has_no_independent_peer() -> None:
    (finding,) = found(compute(culprits=[3]), layout(1))
    assert "peer_shares_node" in codes(finding)
    assert finding.ambiguous


def test_a_verdict_without_a_third_rank_keeps_its_word() -> None:
    assert codes(only(compute(**PAIR, verdicts=[verdict("transient", third=None)]))) == []


def test_two_culprits_on_one_ring_are_two_faults_whatever_the_pairs() -> None:
    for finding in found(compute(pairs=[[13, 5]], culprits=[13, 5])):
        assert codes(finding) == ["multiple_faults", "culprits_disagree"]
        assert "(1 comparison differs)" in finding.cautions[0].text
        assert finding.cautions[1].text == (
            "By the mismatched pairs no rank is a culprit, but the alarm names ranks 5 and 13."
        )


def test_a_verdict_that_contradicts_itself() -> None:
    finding = only(compute(**PAIR, verdicts=[verdict("persistent", suspect=5)]))
    assert (finding.rank, codes(finding)) == (5, ["verdict_contradicts"])
    assert finding.ambiguous
    assert "rank 13, but rank 5" in finding.cautions[0].text
    right = only(compute(**PAIR, verdicts=[verdict("replayer computed wrong", suspect=5)]))
    assert codes(right) == []


@pytest.mark.parametrize(
    ("pairs", "culprits", "codes_of_first"),
    [
        ([[13, 5], [21, 13]], [5], ["culprits_disagree"]),
        ([[13, 5]], [13], ["culprits_disagree"]),
        ([], [13], ["culprits_disagree"]),
        ([[13, 5], [21, 13]], [13], []),
        ([[13, 5], [13, 5], [21, 13]], [13, 13], []),
    ],
)
def test_posted_culprits_are_held_against_the_pairs(
    pairs: list[list[int]], culprits: list[int], codes_of_first: list[str]
) -> None:
    first = found(compute(pairs=pairs, culprits=culprits))[0]
    assert codes(first) == codes_of_first
    assert first.blocks_replacement is bool(codes_of_first)


@pytest.mark.parametrize(
    ("nonfinite", "software"),
    [(list(range(15)), False), (list(range(16)), True), (list(range(32)), True)],
)
def test_half_the_job_named_is_software_first(nonfinite: list[int], software: bool) -> None:
    for finding in found(compute(nonfinite=nonfinite)):
        assert finding.software_first is software
        assert finding.has("half_job") is software


def test_two_accusations_are_enough_for_half_a_small_job() -> None:
    assert only(compute(nonfinite=[0], world_size=2), None).software_first is False
    assert all(one.software_first for one in found(compute(nonfinite=[0, 1], world_size=4), None))


def test_half_the_job_counts_every_way_of_naming() -> None:
    document = compute(
        nonfinite=[0, 1],
        pairs=[[3, 2], [4, 3]],
        culprits=[3],
        verdicts=[verdict("transient", (5, 4), 6, 5)],
        world_size=8,
    )
    assert all(one.software_first for one in found(document, None))
    assert not any(one.software_first for one in found({**document, "world_size": 9}, None))


def test_nothing_is_said_of_half_a_job_of_unknown_size() -> None:
    assert not any(one.software_first for one in found(compute(nonfinite=list(range(64))), None))


def test_no_map_is_a_caution_and_nothing_else() -> None:
    with_map, without = only(CULPRIT), only(CULPRIT, None)
    assert codes(without) == ["no_map"]
    assert (without.rule, without.rank, without.kind) == ("R1", 13, "culprit")
    assert not without.blocks_replacement
    assert with_map.cautions == ()


def test_a_gap_in_the_map_is_a_caution() -> None:
    places = [Place(rank, f"n{rank // 8}" if rank < 8 else None) for rank in range(31)]
    topology = Topology.from_places(places, 32)
    assert codes(only(weights(suspects=[13]), topology)) == ["no_node"]
    assert codes(only(weights(suspects=[31]), topology)) == ["no_place"]
    assert codes(only(weights(suspects=[3]), topology)) == []


def test_unknown_nodes_never_make_a_ring_look_smaller() -> None:
    nodes = {0: "a", 1: None, 2: None, 3: None}
    topology = Topology.from_places([Place(r, nodes[r // 8]) for r in range(32)], 32)
    finding = only(CULPRIT, topology)
    assert codes(finding) == ["no_node"]
    assert not finding.ambiguous


def test_a_rank_outside_the_job() -> None:
    finding = only(weights(suspects=[32]))
    assert codes(finding) == ["rank_outside_job"]
    assert finding.blocks_replacement
    assert codes(only(weights(suspects=[31]))) == []


def test_a_rank_compared_with_itself() -> None:
    finding = only(compute(pairs=[[13, 13], [21, 13]], culprits=[13]))
    assert "self_pair" in codes(finding)
    assert finding.blocks_replacement


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({**CULPRIT, "suspect_window": [25, 30], "last_audit_pass": 20}, True),
        ({**CULPRIT, "suspect_window": [21, 30], "last_audit_pass": 20}, False),
        ({**CULPRIT, "suspect_window": [11, 30], "last_audit_pass": 20}, False),
        ({**CULPRIT, "suspect_window": [25, 30], "last_audit_pass": None}, False),
        ({**CULPRIT, "suspect_window": [25, 30], "last_weight_check_pass": 20}, False),
        (weights(suspects=[7], suspect_window=[36, 40], last_weight_check_pass=30), True),
        (weights(suspects=[7], suspect_window=[31, 40], last_weight_check_pass=30), False),
        (weights(suspects=[7], suspect_window=[36, 40], last_audit_pass=30), False),
        (compute(nonfinite=[13], suspect_window=[30, 30], last_audit_pass=20), False),
        ({**reduced(), "last_audit_pass": 20, "last_weight_check_pass": 20}, False),
    ],
)
def test_a_window_that_begins_too_late(document: dict[str, Any], says: bool) -> None:
    finding = only(document)
    assert finding.has("window_disagrees") is says
    if says:
        (text,) = [one.text for one in finding.cautions if one.code == "window_disagrees"]
        first, last = document["suspect_window"][0], 20 if document["check"] == "compute" else 30
        assert text == (
            f"The suspect window begins at step {first}, though the check last passed at {last}: "
            f"steps from {last + 1} on are suspect."
        )
    assert finding.blocks_replacement is finding.ambiguous


def test_without_offset_or_size_rings_are_told_apart_by_the_pairs() -> None:
    # Both pairs of rank 13 wrap around, so neither shows the offset.
    document = compute(pairs=[[5, 29], [6, 30]], verdicts=[verdict("transient", (5, 29), 13, 5)])
    finding = next(one for one in found(document, None) if one.rank == 5)
    assert codes(finding) == ["no_map"]


@given(DOCUMENTS, LAYOUTS)
def test_any_alarm_has_findings_that_agree_with_the_table(
    document: dict[str, Any], topology: Topology | None
) -> None:
    read = alarm(document)
    result = findings(read, topology)
    assert result
    rows = {row.row.id: set(row.ranks) for row in evaluate(read, topology) if row.matched}
    by_rule: dict[str, set[int]] = {}
    for finding in result:
        assert {one.code for one in finding.cautions} <= set(CODES)
        assert finding.blocks_replacement or not finding.ambiguous
        assert finding.software_first is finding.has("half_job")
        if any(one.code in BLOCKING for one in finding.cautions):
            assert finding.blocks_replacement
        if finding.rule is None:
            assert finding.action == NO_RECOMMENDATION
        else:
            ranks = {finding.rank} if finding.rank is not None else set()
            by_rule.setdefault(finding.rule, set()).update(ranks)
    assert by_rule == rows


@given(DOCUMENTS, LAYOUTS, st.randoms(use_true_random=False))
def test_findings_do_not_depend_on_order(
    document: dict[str, Any], topology: Topology | None, random: Any
) -> None:
    mixed = dict(document)
    for key in ("nonfinite", "mismatched_pairs", "culprits", "verdicts", "suspects"):
        if mixed.get(key):
            mixed[key] = [*mixed[key], random.choice(mixed[key])]
            random.shuffle(mixed[key])
    assert findings(alarm(mixed), topology) == findings(alarm(document), topology)
