"""On which node and GPU does each rank run, and do replayer, target and third stay apart?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from witness.rules import identity
from witness.rules.topology import Place, Topology

Rows = list[dict[str, Any]]


class PlacementError(RuntimeError):
    """The layout of the ranks takes independence away from the ring replay."""


def own_row(device: torch.device | None = None) -> dict[str, Any]:
    """Give this rank's row of the rank map; keys that are not known are left out.

    NODE_NAME comes from the pod's downward API. On HyperPod the node's name holds the instance id;
    elsewhere INSTANCE_ID can give it. `device` is the GPU of the model, None the current one.
    """
    node = identity.node_name(os.environ.get("NODE_NAME"))
    row: dict[str, Any] = {"rank": dist.get_rank(), "node": node}
    row["instance_id"] = identity.instance_id(node, os.environ.get("INSTANCE_ID"))
    local_rank = os.environ.get("LOCAL_RANK", "")
    if local_rank.isdigit():
        row["local_rank"] = int(local_rank)
    row["pod"] = os.environ.get("POD_NAME") or os.environ.get("HOSTNAME")
    if torch.cuda.is_available():
        index = None if device is None else device.index
        index = torch.cuda.current_device() if index is None else index
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        row.update(gpu(torch.cuda.get_device_properties(index), visible, index))
    return {key: value for key, value in row.items() if value is not None}


def gpu(properties: Any, visible: Sequence[str], index: int) -> dict[str, str]:
    """Say which GPU this is, by torch's properties of it and the entries of CUDA_VISIBLE_DEVICES.

    A slice of a GPU (MIG) is given as it is listed, which may name its GPU, else as `MIG-<uuid>`.
    """
    listed = visible[index].strip() if index < len(visible) else ""
    found = {}
    if listed.startswith("MIG-"):
        found["gpu_uuid"] = listed
    else:
        sliced = " MIG " in f"{getattr(properties, 'name', '')} "
        text = f"{'MIG' if sliced else 'GPU'}-{getattr(properties, 'uuid', '')}"
        canonical = identity.gpu_uuid(text).canonical
        if canonical is not None:
            found["gpu_uuid"] = canonical
    bus: list[Any] = [
        getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")
    ]
    if None not in bus:
        found["pci_bus_id"] = "{:08x}:{:02x}:{:02x}.0".format(*bus)
    return found


def first_of_node() -> bool:
    """Tell whether this rank writes for its node: local rank 0, or one that does not know its."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def rank_map(group: dist.ProcessGroup | None = None, device: torch.device | None = None) -> Rows:
    """Collect the rank map on every rank, sorted by rank; every rank must call it."""
    rows: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(rows, own_row(device), group=group)
    return sorted(rows, key=lambda row: int(row["rank"]))


def check_placement(rows: Rows, offset: int) -> None:
    """Raise `PlacementError` where replayer, target and third share a node, or one is unknown.

    `rows` are numbered by position in the group that audits, from 0 on. An offset that would do is
    named where there is one.
    """
    topology = _topology(rows)
    said = [problem.text for problem in topology.problems(offset)]
    if offset % topology.world_size == 0:
        said.append(f"With a peer offset of {offset} each of {len(rows)} ranks replays itself.")
    if topology.unplaced:
        ranks = [row["rank"] for row in rows if topology.host(row["rank"]) is None]
        said.append(
            f"{topology.unplaced} ranks do not know their node (the first is {ranks[0]}): set "
            "NODE_NAME."
        )
    if not said:
        return
    if not topology.unplaced:
        fitting = next(iter(independent_offsets(rows, range(1, len(rows)))), None)
        if fitting is not None:
            said.append(f"A peer offset of {fitting} keeps them apart.")
    raise PlacementError(" ".join(said))


def independent_offsets(rows: Rows, offsets: Iterable[int]) -> tuple[int, ...]:
    """Keep the offsets at which replayer, target and third are known to be on three nodes."""
    topology = _topology(rows)
    if topology.unplaced:
        return ()
    size = topology.world_size
    return tuple(offset for offset in offsets if offset % size and not topology.problems(offset))


def in_job_numbers(ranks: Sequence[int], offset: int, world_size: int) -> tuple[int, int | None]:
    """Say a group's ring in the numbers of the whole job: its size, and how far a target lies.

    `ranks` are the group's global ranks by position, `offset` counts positions. The offset is None
    where the group's ranks do not lie evenly, so that no one number gives every target.
    """
    size = len(ranks)
    if list(ranks) == list(range(size)):
        return size, offset
    ahead = (ranks[offset % size] - ranks[0]) % world_size
    members = set(ranks)
    for position, rank in enumerate(ranks):
        meant, target = (rank + ahead) % world_size, ranks[(position + offset) % size]
        if meant != target and meant in members:
            return world_size, None
    return world_size, ahead


def _topology(rows: Rows) -> Topology:
    places = [Place(row["rank"], row.get("node"), row.get("instance_id")) for row in rows]
    return Topology.from_places(places, len(rows))
