"""Does the solver find every smallest explanation, and give up in time?"""

from __future__ import annotations

import time
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.oracle import answers
from witness.rules.covers import SETS_LIMIT
from witness.rules.ring import (
    Audit,
    DecisiveAudit,
    Explanation,
    culprits_agree,
    decisive_audit,
    explain,
    rederive,
)

Pairs = tuple[tuple[int, int], ...]

PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12).map(
    tuple
)


def comparisons(nodes: int, offset: int) -> Pairs:
    return tuple(((by + offset) % nodes, by) for by in range(nodes))


def audit_of(faulty: set[int], nodes: int, offset: int) -> Audit:
    """Run one audit in which each faulty rank is wrong each time, in its own way."""
    pairs = tuple(pair for pair in comparisons(nodes, offset) if not faulty.isdisjoint(pair))
    return Audit(offset, pairs)


def by_trying_all(pairs: Pairs) -> list[frozenset[int]]:
    ranks = sorted({rank for pair in pairs for rank in pair})
    for size in range(len(ranks) + 1):
        found = [
            frozenset(chosen)
            for chosen in combinations(ranks, size)
            if all(not set(chosen).isdisjoint(pair) for pair in pairs)
        ]
        if found:
            return found
    raise AssertionError("all ranks together touch every pair")


@pytest.mark.parametrize("case", answers("rings.json"))
def test_each_recorded_answer(case: dict[str, Any]) -> None:
    audits = [Audit(one["offset"], tuple(map(tuple, one["pairs"]))) for one in case["audits"]]
    got = explain(audits, case["nodes"] * case["gpus_per_node"])
    assert all(one.complete for one in got)
    assert [(one.ranks, {(s.faulty, s.persistent) for s in one.sets}) for one in got] == [
        (tuple(one["ranks"]), {(tuple(s["faulty"]), s["persistent"]) for s in one["sets"]})
        for one in case["explanations"]
    ]


@given(PAIRS)
def test_the_sets_are_all_smallest_ones(pairs: Pairs) -> None:
    for group in explain([Audit(None, pairs)]):
        own = tuple(pair for pair in pairs if pair[0] in group.ranks)
        expected = by_trying_all(own)
        assert group.at_least == len(expected[0])
        assert group.total == len(expected)
        shown = [frozenset(one.faulty) for one in group.sets]
        assert len(shown) == len(set(shown)) == min(len(expected), SETS_LIMIT)
        assert set(shown) <= set(expected)
        assert group.complete == (len(shown) == len(expected))


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(pairs: Pairs, random: Any) -> None:
    mixed = list(pairs)
    random.shuffle(mixed)
    assert explain([Audit(1, tuple(mixed))]) == explain([Audit(1, pairs)])


@given(st.integers(3, 12), st.data())
def test_a_single_persistent_fault_is_found(nodes: int, data: st.DataObject) -> None:
    faulty = data.draw(st.integers(0, nodes - 1))
    (group,) = explain([audit_of({faulty}, nodes, 1)], nodes)
    assert [(one.faulty, one.persistent) for one in group.sets] == [((faulty,), True)]


def test_persistent_sets_come_first() -> None:
    # Rank 1 is in all its comparisons; 0 and 2 together explain them too, but not as persistent.
    pairs = ((1, 0), (2, 1), (3, 2))
    (group,) = explain([Audit(1, pairs)], 8)
    assert [one.faulty for one in group.sets] == [(1, 2), (0, 2), (1, 3)]
    assert [one.persistent for one in group.sets] == [True, False, False]


def test_a_set_is_not_persistent_when_another_audit_cleared_it() -> None:
    audits = [Audit(1, ((1, 0), (2, 1))), Audit(2, ())]
    (group,) = explain(audits, 8)
    assert [(one.faulty, one.persistent) for one in group.sets] == [((1,), False)]


def test_groups_come_apart_and_in_order() -> None:
    groups = explain([Audit(8, ((22, 14), (30, 22), (13, 5), (21, 13)))], 32)
    assert [(one.ranks, one.sets[0].faulty) for one in groups] == [
        ((5, 13, 21), (13,)),
        ((14, 22, 30), (22,)),
    ]


@pytest.mark.parametrize("pair", [(40, 32), (32, 24), (24, 32)])
def test_a_rank_outside_the_job_explains_nothing(pair: tuple[int, int]) -> None:
    assert explain([Audit(8, (pair,))], 32) == ()
    assert len(explain([Audit(8, (pair,))])) == 1
    assert len(explain([Audit(8, (pair,))], 41)) == 1


def test_a_rank_compared_with_itself_must_be_in_every_set() -> None:
    (group,) = explain([Audit(None, ((4, 4), (4, 5), (5, 6)))])
    assert [set(one.faulty) for one in group.sets] == [{4, 5}, {4, 6}]


@pytest.mark.parametrize(("nodes", "sets", "smallest"), [(10_000, 2, 5_000), (9_999, 9_999, 5_000)])
def test_a_long_cycle_is_solved_exactly(nodes: int, sets: int, smallest: int) -> None:
    (group,) = explain([Audit(1, comparisons(nodes, 1))], nodes)
    assert (group.at_least, group.total) == (smallest, sets)
    assert group.complete == (sets == 2)
    assert all(len(one.faulty) == smallest for one in group.sets)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8, 9])
def test_a_path_is_solved_exactly(ranks: int) -> None:
    pairs = tuple((rank + 1, rank) for rank in range(ranks - 1))
    (group,) = explain([Audit(1, pairs)], 100)
    assert {frozenset(one.faulty) for one in group.sets} == set(by_trying_all(pairs))


def test_a_hopeless_union_of_two_offsets_is_given_up_in_time() -> None:
    nodes = 4_096
    begun = time.process_time()
    (group,) = explain([Audit(g, comparisons(nodes, g)) for g in (1, 2)], nodes)
    assert time.process_time() - begun < 3
    assert (group.complete, group.total, group.sets) == (False, None, ())
    assert group.at_least == nodes // 2


def test_a_dense_group_is_given_up_in_time() -> None:
    begun = time.process_time()
    (group,) = explain([Audit(g, comparisons(96, g)) for g in (1, 2, 5)], 96)
    assert time.process_time() - begun < 3
    assert (group.complete, group.total, group.sets) == (False, None, ())
    assert group.at_least >= 48


@pytest.mark.parametrize("seed", range(40))
def test_larger_groups_by_trying_all(seed: int) -> None:
    random = Random(seed)
    ranks = random.randint(9, 12)
    pairs = tuple(
        (random.randrange(ranks), random.randrange(ranks)) for _ in range(random.randint(10, 22))
    )
    for group in explain([Audit(None, pairs)]):
        expected = by_trying_all(tuple(pair for pair in pairs if pair[0] in group.ranks))
        assert {frozenset(one.faulty) for one in group.sets} == set(expected)


@settings(max_examples=60)
@given(st.integers(5, 9), st.integers(2, 3), st.data())
def test_rotating_the_offset_leaves_no_more_sets(
    nodes: int, faults: int, data: st.DataObject
) -> None:
    faulty = data.draw(st.sets(st.integers(0, nodes - 1), min_size=faults, max_size=faults))
    once = [audit_of(faulty, nodes, 1)]
    twice = [*once, audit_of(faulty, nodes, 2)]
    smallest = min(sum(one.at_least for one in explain(a, nodes)) for a in (once, twice))
    assert smallest <= faults
    assert sum(one.at_least for one in explain(twice, nodes)) >= sum(
        one.at_least for one in explain(once, nodes)
    )


def test_the_deciding_audit_separates_the_sets() -> None:
    (ring,) = explain([Audit(1, ((1, 0), (3, 2), (2, 1)))], 8)
    assert len(ring.sets) == 3
    decisive = decisive_audit(ring, 8, 1, used=[1])
    assert decisive is not None
    assert (decisive.offset, decisive.decides) == (2, True)
    for truth in ring.sets:
        audits = [Audit(1, ((1, 0), (3, 2), (2, 1))), audit_of(set(truth.faulty), 8, 2)]
        assert [one.faulty for group in explain(audits, 8) for one in group.sets] == [truth.faulty]


# Chains of mismatches in rings of several sizes: one group each, with more than one smallest set.
CHAINS = [(nodes, length) for nodes in range(5, 10) for length in range(1, nodes + 1)]


def undecided_after(
    ring: Explanation, chain: Pairs, nodes: int, offset: int
) -> list[frozenset[int]]:
    """List the truths under which an audit at this offset would leave more than one set."""
    left = []
    for truth in ring.sets:
        second = audit_of(set(truth.faulty), nodes, offset)
        both = {frozenset(one.faulty) for one in ring.sets}
        fitting = {
            one for one in both if all(not one.isdisjoint(p) for p in (*chain, *second.pairs))
        }
        if fitting != {frozenset(truth.faulty)}:
            left.append(frozenset(truth.faulty))
    return left


@pytest.mark.parametrize(("nodes", "length"), CHAINS)
def test_the_smallest_offset_that_decides_is_named(nodes: int, length: int) -> None:
    chain = comparisons(nodes, 1)[:length]
    (ring,) = explain([Audit(1, chain)], nodes)
    got = decisive_audit(ring, nodes, 1)
    # A third rank needs a third node, and going round the other way asks the same of each pair.
    offered = [g for g in range(2, nodes - 1) if 2 * g != nodes]
    deciding = [g for g in offered if not undecided_after(ring, chain, nodes, g)]
    if len(ring.sets) < 2:
        assert got is None
    elif deciding:
        assert got == DecisiveAudit(deciding[0], decides=True)
    elif got is not None:
        assert not got.decides
        assert len(undecided_after(ring, chain, nodes, got.offset)) < len(ring.sets)


def test_an_audit_that_decides_only_some_is_said_to() -> None:
    (ring,) = explain([Audit(1, comparisons(6, 1)[:5])], 6)
    assert decisive_audit(ring, 6, 1) == DecisiveAudit(2, decides=False)


def test_a_group_with_sets_left_out_is_never_decided() -> None:
    (ring,) = explain([Audit(1, comparisons(129, 1))], 129)
    assert not ring.complete
    decisive = decisive_audit(ring, 129, 1)
    assert decisive is not None
    assert not decisive.decides


def test_no_audit_decides_what_is_decided_or_cannot_be() -> None:
    (alone,) = explain([audit_of({3}, 8, 1)], 8)
    assert decisive_audit(alone, 8, 1) is None
    # On four nodes only the neighbours and the node across exist; across is no third node.
    (alternating,) = explain([audit_of({0, 2}, 4, 1)], 4)
    assert len(alternating.sets) == 2
    assert decisive_audit(alternating, 4, 1) is None


@pytest.mark.parametrize("nodes", range(5, 10))
@pytest.mark.parametrize("faults", [1, 2, 3])
def test_two_offsets_find_every_set_of_faults_exactly(nodes: int, faults: int) -> None:
    for faulty in combinations(range(nodes), faults):
        audits = [audit_of(set(faulty), nodes, offset) for offset in (1, 2)]
        (group,) = explain(audits, nodes)
        assert [one.faulty for one in group.sets] == [faulty]


@pytest.mark.parametrize(
    ("nodes", "share"), [(3, 1.0), (4, 0.33), (5, 0.5), (6, 0.4), (7, 0.33), (8, 0.29)]
)
def test_how_often_the_plain_rule_accuses_a_healthy_rank(nodes: int, share: float) -> None:
    pairs_of_faults = list(combinations(range(nodes), 2))
    wrong = [
        faulty
        for faulty in pairs_of_faults
        if set(rederive(audit_of(set(faulty), nodes, 1).pairs).culprits) - set(faulty)
    ]
    assert len(wrong) / len(pairs_of_faults) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize(
    ("used", "offset"), [([], 2), ([2], 3), ([6], 3), ([10], 3), ([2, 3], None), ([5, 6], None)]
)
def test_a_used_offset_is_not_proposed_again(used: list[int], offset: int | None) -> None:
    # On eight nodes 4 leads to no third node, 5 to 7 ask the pairs of 3 to 1 the other way round.
    (ring,) = explain([Audit(1, ((1, 0), (3, 2), (2, 1)))], 8)
    decisive = decisive_audit(ring, 8, 1, used)
    assert (decisive.offset if decisive else None) == offset


def test_an_audit_that_would_separate_nothing_is_not_proposed() -> None:
    # Odd offsets pair each even rank with an odd one, so both halves explain everything again.
    (ring,) = explain([Audit(1, comparisons(8, 1))], 8)
    assert [one.faulty for one in ring.sets] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert decisive_audit(ring, 8, 1) == DecisiveAudit(2, decides=True)
    assert decisive_audit(ring, 8, 1, used=[2]) is None


def test_offsets_step_by_whole_nodes() -> None:
    (ring,) = explain([Audit(8, ((13, 5), (29, 21), (21, 13)))], 64)
    decisive = decisive_audit(ring, 64, 8)
    assert decisive == DecisiveAudit(16, decides=True)
    assert decisive_audit(ring, 64, 0) is None


@pytest.mark.parametrize(
    ("pairs", "culprits", "ambiguous"),
    [
        ([(13, 5), (21, 13)], (13,), ()),
        ([(13, 5)], (), ((13, 5),)),
        ([(13, 5), (5, 13)], (5, 13), ()),
        ([(13, 5), (13, 5)], (), ((13, 5),)),
        ([(13, 5), (21, 13), (14, 6)], (13,), ((14, 6),)),
        ([(4, 4)], (), ((4, 4),)),
        ([], (), ()),
    ],
)
def test_the_plain_rule(pairs: list[tuple[int, int]], culprits: Any, ambiguous: Any) -> None:
    counted = rederive(pairs)
    assert (counted.culprits, counted.ambiguous) == (culprits, ambiguous)


def test_posted_culprits_are_held_against_the_pairs() -> None:
    pairs = [(13, 5), (21, 13)]
    assert culprits_agree(pairs, [13])
    assert not culprits_agree(pairs, [5])
    assert not culprits_agree(pairs, [])
    assert not culprits_agree([(13, 5)], [13])
