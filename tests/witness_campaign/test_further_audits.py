"""Do the audits that follow an alarm at once tell two faults of one ring apart?"""

from __future__ import annotations

from itertools import combinations

import pytest

from witness.ddp.further_audits import LIMIT, next_offset, several_faults
from witness.inject import Fault
from witness.rules.alarm import read_alarm
from witness.rules.ring import Audit, explain
from witness.simulate import fleet
from witness.simulate.campaign_plan import AUDIT, Trial
from witness.simulate.campaign_trials import run_trials
from witness.simulate.model import Job, Shape


def audit(faulty: frozenset[int], nodes: int, offset: int, alike: bool) -> Audit:
    """Compare once around a ring; ranks that are wrong alike agree with each other."""
    pairs = []
    for by in range(nodes):
        target = (by + offset) % nodes
        wrong = {target, by} & faulty
        if wrong and not (alike and len(wrong) == 2):
            pairs.append((target, by))
    return Audit(offset, tuple(pairs))


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("nodes", [5, 6, 7, 8, 9, 12])
def test_two_faults_come_out_exactly(nodes: int, alike: bool) -> None:
    for faulty in map(frozenset, combinations(range(nodes), 2)):
        audits = [audit(faulty, nodes, 1, alike)]
        assert several_faults(list(audits[0].pairs), 1, nodes)
        while len(audits) <= LIMIT:
            offset = next_offset(audits, 1, nodes)
            if offset is None:
                break
            audits.append(audit(faulty, nodes, offset, alike))
        found = {rank for group in explain(audits, nodes) for rank in group.sets[0].faulty}
        assert all(len(group.sets) == 1 for group in explain(audits, nodes)), (faulty, audits)
        assert found == faulty


@pytest.mark.parametrize("nodes", [3, 4])
def test_small_rings_have_no_other_audit(nodes: int) -> None:
    first = audit(frozenset({0, 1}), nodes, 1, alike=False)
    assert next_offset([first], 1, nodes) is None


@pytest.mark.parametrize(
    ("pairs", "several"),
    [
        ([], False),
        ([(13, 5)], False),
        ([(13, 5), (21, 13)], False),
        ([(13, 5), (21, 13), (22, 14), (30, 22)], False),
        ([(13, 5), (29, 21)], True),
        ([(13, 5), (21, 13), (29, 21)], True),
    ],
)
def test_one_fault_a_ring_asks_for_nothing_more(
    pairs: list[tuple[int, int]], several: bool
) -> None:
    assert several_faults(pairs, 8, 32) == several


def test_real_ranks_make_them_at_the_alarm() -> None:
    fault = Fault.on(1, Shape().middle).multiply(1000.0, 7).since(AUDIT - 1)
    faults = (fault, Fault.on(2, Shape().middle).multiply(1000.0, 7).since(AUDIT - 1))
    other = (fault, Fault.on(3, Shape().middle).noise(0.1).since(AUDIT - 1))
    usual = {"rotate": False}
    trials = [
        Trial(0, "alike", 5, faults, usual),
        Trial(1, "apart", 5, other, usual),
        Trial(2, "one", 5, faults[:1], usual),
    ]
    alarms = fleet.run(5, 1, run_trials, Job(), trials)[0]
    for alarm, faulty in zip(alarms, [(1, 2), (1, 3), (1,)], strict=True):
        assert alarm is not None
        said = read_alarm(alarm)
        (explained,) = explain(said.audits(said.peer_offset), 5)
        assert [one.faulty for one in explained.sets] == [faulty]
    assert ["further_audits" in alarm for alarm in alarms if alarm] == [True, False, False]
