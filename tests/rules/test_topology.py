"""Does a rank map tell rings, nodes and gaps as they are?"""

from __future__ import annotations

import time

import pytest

from tests.rules.documents import layout
from witness.rules.topology import Place, Topology


def test_a_regular_layout() -> None:
    topology = layout(nodes=4)
    assert (topology.world_size, topology.node_count, topology.unplaced) == (32, 4, 0)
    assert (topology.gpus_per_node, topology.offset) == (8, 8)
    assert topology.ring(13) == (13, 21, 29, 5)
    assert topology.ring(13, 16) == (13, 29)
    assert topology.problems() == ()


def test_what_the_map_says_outweighs_what_can_be_derived() -> None:
    topology = layout(nodes=4, gpus_per_node=8, peer_offset=16)
    assert topology.offset == 16
    assert topology.ring(13) == (13, 29)


def test_the_place_of_a_rank() -> None:
    topology = layout()
    place = topology.place(13)
    assert place is not None
    assert (place.node, place.host) == ("hyperpod-i-0c0ffee0000000002",) * 2
    assert topology.place(99) is None
    assert topology.host(99) is None


def test_ranks_without_a_node_do_not_make_one_together() -> None:
    places = [Place(rank, "a" if rank < 8 else None) for rank in range(32)]
    topology = Topology.from_places(places, 32)
    assert (topology.node_count, topology.unplaced) == (1, 24)
    assert topology.gpus_per_node is None
    assert topology.offset is None
    assert not topology.share_a_node(13, 14)
    assert topology.share_a_node(0, 7)
    assert topology.nodes_of([0, 7]) == 1
    assert topology.nodes_of([0, 13]) is None


def test_an_instance_tells_machines_apart_where_the_node_is_not_named() -> None:
    places = [Place(rank, None, f"i-0000000{rank // 8}") for rank in range(24)]
    topology = Topology.from_places(places, 24)
    assert (topology.node_count, topology.unplaced, topology.offset) == (3, 0, 8)


def test_missing_rows_count_as_unplaced() -> None:
    topology = Topology.from_places([Place(0, "a"), Place(1, "b")], 32)
    assert (topology.world_size, topology.unplaced) == (32, 30)


def test_a_rank_given_twice_keeps_its_first_row() -> None:
    topology = Topology.from_places([Place(0, "a"), Place(0, "b"), Place(1, "b")], 2)
    assert topology.host(0) == "a"
    assert topology.unplaced == 0


def test_uneven_nodes_give_no_offset() -> None:
    places = [Place(0, "a"), Place(1, "a"), Place(2, "b")]
    assert Topology.from_places(places, 3).offset is None


def test_a_ring_without_an_offset_is_the_rank_alone() -> None:
    topology = Topology.from_places([Place(0, "a"), Place(1, None)], 2)
    assert topology.ring(1) == (1,)
    assert topology.ring(1, 2) == (1,)
    assert topology.ring(99, 1) == (99,)
    assert topology.ring(-1, 1) == (-1,)
    assert topology.ring(2, 1) == (2,)
    assert topology.ring(1, 1) == (1, 0)
    assert topology.ring(0, 1) == (0, 1)


@pytest.mark.parametrize(
    ("nodes", "offset", "codes", "ranks"),
    [
        (1, 4, ["too_few_nodes", "target_shares_node"], [0, 8]),
        (2, 8, ["too_few_nodes", "third_shares_node"], [0, 16]),
        (4, 16, ["third_shares_node"], [32]),
        (3, 8, [], []),
        (4, 4, ["target_shares_node", "third_shares_node"], [16, 16]),
        (4, 32, [], []),
    ],
)
def test_layouts_that_take_independence_away(
    nodes: int, offset: int, codes: list[str], ranks: list[int]
) -> None:
    problems = layout(nodes=nodes).problems(offset)
    assert [one.code for one in problems] == codes
    assert [len(one.ranks) for one in problems] == ranks
    assert all(one.text.endswith(".") for one in problems)


def test_a_job_of_one_node_has_no_ring() -> None:
    (problem,) = layout(nodes=1).problems()
    assert problem.text == "The ring check needs 3 nodes, and this job has 1 node."
    unknown = Topology.from_places([Place(0, "a"), Place(1, None)], 2)
    assert unknown.problems() == ()


def test_nodes_in_any_order_have_their_problems_named() -> None:
    nodes = ["a", "b", "a", "c"]
    topology = Topology.from_places([Place(r, node) for r, node in enumerate(nodes)], 4, 1)
    (problem,) = topology.problems()
    assert problem.ranks == (0, 2)
    assert "third rank is on a node that already takes part" in problem.text
    near = Topology.from_places([Place(r, node) for r, node in enumerate("aabcd")], 5, 1)
    assert near.problems()[0].code == "target_shares_node"
    assert near.problems()[0].text == (
        "Target and replayer share a node where rank 0 would replay."
    )


def test_a_hundred_thousand_ranks_are_quick() -> None:
    begun = time.process_time()
    topology = layout(nodes=12_500)
    assert topology.node_count == 12_500
    assert len(topology.ring(13)) == 12_500
    assert topology.problems() == ()
    assert time.process_time() - begun < 5
