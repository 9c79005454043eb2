"""Does the rank map say where every rank runs, and is every bad layout refused?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from witness.ddp import start
from witness.ddp.announcing import Announcer
from witness.ddp.placement import (
    PlacementError,
    check_placement,
    gpu,
    in_job_numbers,
    independent_offsets,
    rank_map,
)
from witness.ddp.schedule import Schedule
from witness.rules.identity import gpu_uuid
from witness.simulate import fleet

UUID = "b66cf7a0-3f1c-4d0a-9a77-3f5f6a1b2c3d"


def rows(*nodes: str | None) -> list[dict[str, Any]]:
    return [{"rank": rank, "node": node} for rank, node in enumerate(nodes)]


def in_order(nodes: int, gpus: int) -> list[dict[str, Any]]:
    return rows(*(f"n{rank // gpus}" for rank in range(nodes * gpus)))


@pytest.mark.parametrize(
    ("layout", "offset"),
    [
        (in_order(3, 1), 1),
        (in_order(3, 8), 8),
        (in_order(4, 8), 8),
        (in_order(5, 2), 4),
        # Rank after rank on another node.
        (rows("a", "b", "c", "a", "b", "c"), 1),
        # Node order is not rank order.
        (rows("c", "c", "a", "a", "b", "b"), 2),
        (in_order(7, 4), 12),
    ],
)
def test_independent_layouts_pass(layout: list[dict[str, Any]], offset: int) -> None:
    check_placement(layout, offset)
    assert offset in independent_offsets(layout, range(1, len(layout)))


@pytest.mark.parametrize(
    ("layout", "offset", "words"),
    [
        (in_order(1, 1), 1, "each of 1 ranks replays itself"),
        (in_order(1, 8), 8, "each of 8 ranks replays itself"),
        (in_order(2, 8), 8, "needs 3 nodes, and this job has 2"),
        (in_order(4, 8), 1, "A peer offset of 8 keeps them apart"),
        (in_order(4, 4), 8, "third rank is on a node that already takes part"),
        (in_order(4, 4), 8, "A peer offset of 4 keeps them apart"),
        (in_order(4, 2), 8, "replays itself"),
        (rows("a", "a", "b", "c"), 1, "Target and replayer share a node"),
        (rows("a", "b", "a", "c", "d", "e"), 1, "third rank"),
        (rows("a", None, "c"), 1, "the first is 1): set NODE_NAME"),
        (rows(None, None, None), 1, "3 ranks do not know their node"),
    ],
)
def test_other_layouts_are_refused_with_a_way_out(
    layout: list[dict[str, Any]], offset: int, words: str
) -> None:
    with pytest.raises(PlacementError) as caught:
        check_placement(layout, offset)
    assert words in str(caught.value)
    assert offset not in independent_offsets(layout, [offset])


def test_instances_stand_for_nodes_without_a_name() -> None:
    layout = [{"rank": rank, "instance_id": f"i-0000000{rank}"} for rank in range(3)]
    check_placement(layout, 1)


@pytest.mark.parametrize(
    ("properties", "visible", "expected"),
    [
        ({"uuid": UUID}, [""], f"GPU-{UUID}"),
        ({"uuid": UUID.upper()}, ["3", "5"], f"GPU-{UUID}"),
        ({"uuid": UUID, "name": "NVIDIA H100 80GB HBM3"}, ["GPU-b66cf7a0"], f"GPU-{UUID}"),
        ({"uuid": UUID, "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb"}, [""], f"MIG-{UUID}"),
        ({"uuid": UUID}, ["MIG-GPU-" + UUID + "/3/0"], f"MIG-GPU-{UUID}/3/0"),
        ({"uuid": "0"}, [""], None),
        ({}, [""], None),
    ],
)
def test_a_gpu_is_known_by_its_uuid(
    properties: dict[str, str], visible: list[str], expected: str | None
) -> None:
    found = gpu(SimpleNamespace(**properties), visible, 0).get("gpu_uuid")
    assert found == expected
    if found is not None:
        assert gpu_uuid(found).canonical is not None


def test_a_gpu_says_where_it_sits_on_the_bus() -> None:
    place = SimpleNamespace(uuid=UUID, pci_domain_id=0, pci_bus_id=0x9B, pci_device_id=0)
    assert gpu(place, [""], 0)["pci_bus_id"] == "00000000:9b:00.0"


@pytest.mark.parametrize(
    ("ranks", "offset", "world", "expected"),
    [
        (range(8), 2, 8, (8, 2)),
        # Every other rank: a target lies twice as far in the job.
        ([1, 3, 5, 7], 1, 8, (8, 2)),
        # A block of ranks: only the last step would come round differently, and leaves the group.
        ([4, 5, 6, 7], 1, 8, (8, 1)),
        ([0, 1, 2], 1, 6, (3, 1)),
        # No one number gives every target.
        ([0, 1, 2, 4], 2, 6, (6, None)),
    ],
)
def test_a_groups_ring_is_said_in_the_jobs_numbers(
    ranks: Any, offset: int, world: int, expected: tuple[int, int | None]
) -> None:
    assert in_job_numbers(list(ranks), offset, world) == expected


def test_every_rank_knows_the_whole_map() -> None:
    named = {"NODE_NAME": "hyperpod-i-0123456789abcdef0", "HOSTNAME": "job-worker-0"}
    unset = {"NODE_NAME": "$(NODE_NAME)", "POD_NAME": "the-pod", "LOCAL_RANK": ""}
    maps = fleet.run(3, 1, rank_map, environments=[named, {"HOSTNAME": "two"}, unset])
    assert maps[0] == maps[1] == maps[2]
    assert maps[0] == [
        {
            "rank": 0,
            "node": "hyperpod-i-0123456789abcdef0",
            "instance_id": "i-0123456789abcdef0",
            "local_rank": 0,
            "pod": "job-worker-0",
        },
        {"rank": 1, "node": "node-1", "local_rank": 0, "pod": "two"},
        {"rank": 2, "pod": "the-pod"},
    ]
    assert not torch.cuda.is_available()


def test_the_rank_map_names_the_models_gpu_and_not_the_current_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def map_of(group: Any, device: Any) -> list[dict[str, Any]]:
        seen.append(device)
        return rows("a")

    monkeypatch.setattr(start, "rank_map", map_of)
    monkeypatch.setattr(start, "_agree", lambda *_: [])
    monkeypatch.setattr(start, "advise", lambda *_: None)
    start.begin(Schedule(audit_every=0), Announcer(None), None, True, torch.device("cuda", 3))
    assert seen == [torch.device("cuda", 3)]
