"""Is the layout that guards rely on worked out from whatever is known?"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.rules.documents import alarm, compute, layout
from witness.rules.findings import findings
from witness.rules.setting import Setting
from witness.rules.topology import Place, Topology


def placed(nodes: str, **more: Any) -> Topology:
    """Place one rank a letter; a dot is a rank whose node is not known."""
    places = [Place(rank, None if node == "." else node) for rank, node in enumerate(nodes)]
    return Topology.from_places(places, len(nodes), **more)


@pytest.mark.parametrize(
    ("document", "topology", "offset", "world"),
    [
        (compute(pairs=[[13, 5], [21, 13]]), None, 8, None),
        (compute(pairs=[[5, 29]], world_size=32), None, 8, 32),
        (compute(pairs=[[5, 29], [13, 5], [14, 7]], world_size=32), None, 8, 32),
        (compute(pairs=[[5, 29]]), None, None, None),
        (compute(pairs=[[5, 29]]), layout(4), 8, 32),
        (compute(pairs=[[13, 5]], peer_offset=16), layout(4), 16, 32),
        (compute(pairs=[[21, 5]]), layout(4), 16, 32),
        (compute(), layout(4), 8, 32),
        (compute(), layout(4, peer_offset=16), 16, 32),
        (compute(), None, None, None),
        (compute(world_size=64), layout(4), 8, 64),
        # A rank compared with itself says nothing about the offset.
        (compute(pairs=[[4, 4], [5, 5], [13, 5]]), None, 8, None),
        (compute(pairs=[[4, 4], [4, 4]]), layout(4), 8, 32),
        # As many pairs of one offset as of another: the smaller, whatever the order.
        (compute(pairs=[[21, 5], [14, 6]]), None, 8, None),
        (compute(pairs=[[14, 6], [21, 5]]), None, 8, None),
    ],
)
def test_the_offset_and_the_size(
    document: Any, topology: Topology | None, offset: int | None, world: int | None
) -> None:
    setting = Setting.of(alarm(document), topology)
    assert (setting.offset, setting.world_size) == (offset, world)


@pytest.mark.parametrize(
    ("document", "topology", "nodes"),
    [
        (compute(world_size=24, peer_offset=8), None, 3),
        (compute(world_size=16, peer_offset=8), None, 2),
        (compute(peer_offset=8), None, None),
        (compute(), layout(4), 4),
        (compute(peer_offset=16), layout(4), 2),
        (compute(), layout(1), 1),
        # Both directions of one pair: a ring of two, whatever else is known.
        (compute(pairs=[[13, 5], [5, 13]]), None, 2),
        # Three ranks on two nodes, in a job of five.
        (compute(peer_offset=2), placed("axbyaz"), 2),
        # A ring of three ranks of which some have no known node.
        (compute(peer_offset=2), placed("a.b..c"), 3),
        # No offset, but the job has few nodes.
        (compute(), placed("aabc"), 3),
        (compute(), placed("aabc."), None),
        (compute(), placed("aab"), 2),
    ],
)
def test_the_nodes_of_a_ring(document: Any, topology: Topology | None, nodes: int | None) -> None:
    setting = Setting.of(alarm(document), topology)
    rank = 13 if document["mismatched_pairs"] else 0
    assert setting.ring(rank).nodes == nodes


def test_ranks_of_one_local_index_share_a_ring() -> None:
    setting = Setting.of(alarm(compute(pairs=[[13, 5], [21, 13], [22, 14]])), layout(4))
    assert setting.ring(5) is setting.ring(29)
    assert setting.ring(13).pairs == {(13, 5), (21, 13)}
    assert setting.ring(6).pairs == {(22, 14)}
    assert setting.ring(0).pairs == frozenset()
    assert setting.peers(13) == (5, 13, 21)
    assert setting.peers(0) == (0,)


def test_without_any_offset_connected_pairs_share_a_ring() -> None:
    setting = Setting.of(alarm(compute(pairs=[[4, 25], [4, 26], [3, 27]], culprits=[25])), None)
    assert setting.offset is None
    ring = setting.ring(25)
    assert (ring.posted, ring.counted, ring.culprits_agree) == ((25,), (4,), False)
    assert ring is setting.ring(26)
    assert ring is not setting.ring(27)
    assert setting.ring(9).pairs == frozenset()
    assert setting.ring(9) is not setting.ring(10)


def test_a_whole_large_job_is_judged_in_seconds() -> None:
    ranks = 24_000
    pairs = [[(rank + 8) % ranks, rank] for rank in range(ranks)]
    everyone = list(range(ranks))
    read = alarm(compute(nonfinite=everyone, pairs=pairs, culprits=everyone))
    topology = layout(ranks // 8)
    begun = time.process_time()
    found = findings(read, topology)
    assert time.process_time() - begun < 8
    assert len(found) == ranks
    assert all(one.software_first for one in found)
