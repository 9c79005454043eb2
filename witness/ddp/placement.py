"""On which node and GPU does each rank run, and do replayer, target and third stay apart?"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist

from witness.rules.identity import instance_id
from witness.rules.topology import Place, Topology


class PlacementError(RuntimeError):
    """The layout of the ranks takes independence away from the ring replay."""


def own_row() -> dict[str, Any]:
    """Give this rank's row of the rank map; keys that are not known are left out.

    NODE_NAME comes from the pod's downward API. On HyperPod the node's name holds the instance id.
    """
    node = os.environ.get("NODE_NAME")
    row: dict[str, Any] = {"rank": dist.get_rank(), "node": node}
    row["instance_id"] = instance_id(node, os.environ.get("INSTANCE_ID"))
    if "LOCAL_RANK" in os.environ:
        row["local_rank"] = int(os.environ["LOCAL_RANK"])
    if os.environ.get("HOSTNAME"):
        row["pod"] = os.environ["HOSTNAME"]
    if torch.cuda.is_available():
        row["gpu_uuid"] = (
            f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        )
    return {key: value for key, value in row.items() if value is not None}


def rank_map(group: dist.ProcessGroup | None = None) -> list[dict[str, Any]]:
    """Collect the rank map on every rank, sorted by rank; every rank must call it."""
    rows: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(rows, own_row(), group=group)
    return sorted(rows, key=lambda row: int(row["rank"]))


def check_placement(rows: list[dict[str, Any]], offset: int) -> None:
    """Raise `PlacementError` where replayer, target and third share a node, or one is unknown."""
    places = [Place(row["rank"], row.get("node"), row.get("instance_id")) for row in rows]
    topology = Topology.from_places(places, len(rows), peer_offset=offset)
    said = [problem.text for problem in topology.problems(offset)]
    if topology.unplaced:
        said.append(f"{topology.unplaced} ranks do not know their node: set NODE_NAME.")
    if said:
        raise PlacementError(" ".join(said))
