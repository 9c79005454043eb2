"""What does a job say and make sure of once, before its first step?"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from witness.ddp.announcing import Announcer
from witness.ddp.collectives import global_rank, global_ranks
from witness.ddp.placement import PlacementError, check_placement, rank_map
from witness.ddp.schedule import MOST_TURNS, Schedule
from witness.rules.topology import NODES_NEEDED

_log = logging.getLogger(__name__)

Rows = list[dict[str, Any]]
Asked = list[tuple[str, int, int]]
"""Targeted audits: id, steps between two audits, audits that have to pass."""


def begin(
    schedule: Schedule,
    announcer: Announcer,
    group: dist.ProcessGroup | None,
    independent_nodes: bool,
    device: torch.device | None = None,
    start_step: int = 0,
) -> tuple[Rows, Schedule]:
    """Collect and report the rank map, log what the schedule gives away, check the placement.

    `device` is the model's, None the current one. Every rank must call it; gives the rows of the
    group's ranks, and the schedule, closer where the service asked for that. Raises
    `PlacementError` on every rank alike where an audit's replayer, target and third share a node,
    unless audits are off or `independent_nodes` is False.
    """
    rows = rank_map(group, device)
    size = len(rows)
    asked = _agree(announcer, group, rows if schedule.audit_every else [])
    per_node = os.environ.get("LOCAL_WORLD_SIZE", "")
    announcer.tell(
        "rank_map",
        rows,
        size,
        gpus_per_node=int(per_node) if per_node.isdigit() else None,
        peer_offset=schedule.peer_offset,
    )
    advise([f"schedule: {sentence}" for sentence in schedule.advice()], group)
    if schedule.audit_every and independent_nodes:
        _check(rows, schedule, group)
    return rows, _closer(schedule, asked, start_step, group)


def advise(sentences: Iterable[str], group: dist.ProcessGroup | None) -> None:
    """Log each sentence as a warning, on the group's first rank."""
    if dist.get_rank(group) == 0:
        for sentence in sentences:
            _log.warning("%s", sentence)


def _agree(announcer: Announcer, group: dist.ProcessGroup | None, rows: Rows) -> Asked:
    """Let every rank report under rank 0's count of starts, and audit on the same steps.

    Nodes may have counted differently. Only the group's first rank asks the service, and what it
    heard is everybody's: ranks that audit on different steps would wait for each other for ever.
    """
    told: list[Any] = [None, []]
    if dist.get_rank(group) == 0:
        told = [announcer.tell("identity"), _ask(announcer, rows)]
    dist.broadcast_object_list(told, src=global_rank(0, group), group=group)
    identity, asked = told
    if identity is not None:
        announcer.tell("adopt", *identity)
    if asked:
        announcer.tell("takes_audits", [one[0] for one in asked])
    found: Asked = asked
    return found


def _ask(announcer: Announcer, rows: Rows) -> Asked:
    """Ask which machines to audit closely; nothing where audits are off or nobody answers."""
    found = announcer.tell("audit_requests", rows) if rows else None
    try:
        return [(str(one.id), int(one.audit_every), int(one.passes)) for one in found or ()]
    except (AttributeError, TypeError, ValueError):
        return []  # a reporter of another make


def _closer(
    schedule: Schedule, asked: Asked, start_step: int, group: dist.ProcessGroup | None
) -> Schedule:
    """Audit as closely as the closest of the requests, for as long as the longest."""
    if not asked:
        return schedule
    every, passes = min(one[1] for one in asked), max(one[2] for one in asked)
    closer = schedule.closer(every, passes, start_step)
    if dist.get_rank(group) == 0:
        _log.info("audits every %d steps for %d audits: a machine is watched", every, passes)
    return closer


def _check(rows: Rows, schedule: Schedule, group: dist.ProcessGroup | None) -> None:
    # Replays go by a rank's position in the group, which is its number where the group is all.
    order = {rank: position for position, rank in enumerate(global_ranks(group))}
    placed = [{**row, "rank": order[row["rank"]]} for row in rows]
    audits = range(0, MOST_TURNS * schedule.audit_every, schedule.audit_every)
    for offset in sorted({schedule.offset(step, len(rows)) for step in audits}):
        try:
            check_placement(placed, offset)
        except PlacementError as error:
            raise PlacementError(f"{error} {_advice(rows)}") from None


def _advice(rows: Rows) -> str:
    nodes = {row.get("node") or row.get("instance_id") for row in rows} - {None}
    known = all(row.get("node") or row.get("instance_id") for row in rows)
    if known and len(nodes) == NODES_NEEDED - 1:
        return (
            "On two nodes a replay can show that one of two GPUs is wrong, not which: "
            "Schedule(audit_every=0) keeps the other checks; independent_nodes=False audits all "
            "the same, and an alarm then names both GPUs of a pair."
        )
    return (
        "peer_offset must be the number of ranks a node. Schedule(audit_every=0) switches audits "
        "off; independent_nodes=False, for trials, runs them without independence."
    )
