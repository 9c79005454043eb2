"""Who is named where target, replayer or third rank computed wrong, once or always?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from tests.witness_checks.verdicts import CASES, all_verdicts, two_faults, without_a_third
from witness.rules.alarm import read_alarm
from witness.rules.digests import contradiction
from witness.rules.ring import explain
from witness.simulate import fleet

EXPECTED: dict[str, tuple[str, int | None] | None] = {
    "own batch always": ("persistent", 1),
    "own batch once": ("transient", 1),
    "own batch each time another": ("unclear", 1),
    "replayer": ("replayer computed wrong", 0),
    "target and third": ("unattributable", None),
    # What two faulty ranks agree on cannot be told from the truth.
    "target and third alike": ("replayer computed wrong", 0),
}


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return fleet.run(3, 1, all_verdicts)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_mismatch_of_one_pair_is_settled_by_the_third(
    found: list[dict[str, Any]], name: str
) -> None:
    pairs, culprits, verdicts = found[0][name]
    assert [found[rank][name] for rank in range(3)] == [found[0][name]] * 3
    assert (pairs, culprits) == ([(1, 0)], [])
    expected = EXPECTED[name]
    assert expected is not None
    kind, suspect = expected
    assert verdicts == [{"pair": [1, 0], "third": 2, "suspect": suspect, "kind": kind}]


def test_no_mismatch_and_two_of_one_rank_need_no_third(found: list[dict[str, Any]]) -> None:
    assert set(CASES) == {*EXPECTED, "healthy", "everything"}
    assert found[2]["healthy"] == ([], [], [])
    assert found[2]["everything"] == ([(1, 0), (2, 1)], [1], [])


def test_without_an_independent_third_nobody_is_named() -> None:
    two, alone = fleet.run(2, 1, without_a_third)[0]
    unsettled = {"third": None, "suspect": None, "kind": "unattributable"}
    assert two == ([(1, 0)], [], [{"pair": [1, 0], **unsettled}])
    # Rank 1 against itself: another answer the second time.
    assert alone == ([(1, 1)], [], [{"pair": [1, 1], **unsettled}])


@pytest.mark.parametrize("factors", [[1000.0, 1000.0], [1000.0, 500.0]])
def test_two_faulty_ranks_of_five_come_out_exactly(factors: list[float]) -> None:
    for pair in list(combinations(range(5), 2))[:2]:
        alarms = fleet.run(5, 1, two_faults, *pair, factors)
        assert alarms == alarms[:1] * 5
        alarm = read_alarm(alarms[0])
        # The second audit of five nodes already compares at twice the base offset.
        assert alarm.peer_offset == 2
        assert contradiction(alarm, alarm.peer_offset, 5) is None
        sets = [explanation.sets for explanation in explain(alarm.audits(alarm.peer_offset), 5)]
        assert all(len(one) == 1 for one in sets)
        assert {rank for one in sets for rank in one[0].faulty} == set(pair)
