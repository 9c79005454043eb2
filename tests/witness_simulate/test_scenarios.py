"""Does every row of the fault table come out as published, on real processes?"""

from __future__ import annotations

import pytest

from witness.simulate.model import Job
from witness.simulate.scenarios import Layout, scenarios
from witness.simulate.table import run_table


def test_three_ranks_see_every_row() -> None:
    rows = run_table(Layout(3, 1), Job(), timeout_s=100)
    assert [one.said for one in rows if not one.met] == []
    assert len(rows) == 21


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("nodes", [3, 4])
def test_nodes_of_eight_ranks_see_every_row(nodes: int) -> None:
    rows = run_table(Layout(nodes, 8), Job(), timeout_s=800)
    assert [one.said for one in rows if not one.met] == []
    assert len(rows) == 22


def test_the_peers_of_four_nodes_are_the_published_ones() -> None:
    expected = {one.name: one.expected for one in scenarios(Layout(4, 8))}
    pairs = {name: alarm.pairs for name, alarm in expected.items() if alarm is not None}
    assert pairs["×1000, from 23"] == ((13, 5), (21, 13))
    assert pairs["×1000 on its replayer, from 23"] == ((5, 29), (13, 5))
    assert pairs["×1000 on two ranks, from 23"] == ((13, 5), (21, 13), (22, 14), (30, 22))
    assert pairs["bit 22 of a weight, checkpoints every 5 unchecked"] == ((0, 24), (8, 0))
    once = expected["×1000, once at audit step 30"]
    assert once is not None
    assert once.verdicts == (((13, 5), 21, 13, "transient"),)


def test_one_published_fault_is_missed_and_only_one() -> None:
    missed = [one.name for one in scenarios(Layout(4, 8)) if one.published and one.expected is None]
    assert missed == ["weight gradient ×1000, default-kernel audits: missed"]
