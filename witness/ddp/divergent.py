"""In which tensors do two results differ?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from witness.ddp.gradients import COLUMNS
from witness.rules.ring import Pair

MOST_PAIRS = 8
MOST_NAMES = 32


@dataclass(frozen=True, slots=True)
class Differing:
    """What differs in the mismatched pairs: some loss, and the gradients of these rows.

    Of the first `MOST_PAIRS` pairs. `rows` is empty where gradients were not compared.
    """

    loss: bool = False
    rows: tuple[int, ...] = ()


def differing(
    pairs: Sequence[Pair],
    own: Tensor,
    again: Tensor | None,
    losses: int,
    group: dist.ProcessGroup | None = None,
) -> Differing:
    """Find what differs in mismatched pairs; every rank must call it with the same pairs.

    `own` is this rank's own result and `again` its replay, both beginning with `losses` words of
    loss bits. Two broadcasts a pair, so that the healthy case costs nothing.
    """
    loss, rows = False, set[int]()
    for target, replayer in pairs[:MOST_PAIRS]:
        mine = own.clone()
        dist.broadcast(mine, src=target, group=group)
        theirs = torch.zeros_like(own) if again is None else again.to(own.device, copy=True)
        dist.broadcast(theirs, src=replayer, group=group)
        differs = mine != theirs
        loss = loss or bool(differs[:losses].any())
        table = differs[losses:].view(-1, COLUMNS).any(dim=1)
        rows.update(table.nonzero().flatten().tolist())
    return Differing(loss, tuple(sorted(rows)))


def as_keys(rows: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Give the keys of an alarm that say which tensors differ; empty where none is known.

    `tensors` names at most `MOST_NAMES` of them in the model's order, `divergent_tensors` counts
    all.
    """
    if not rows:
        return {}
    return {
        "tensors": [names[row] for row in rows[:MOST_NAMES]],
        "divergent_tensors": len(rows),
    }
