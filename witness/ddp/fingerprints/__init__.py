"""Do two tensors hold the same bits, asked by comparing a few integers?

`fingerprints` reads tensors once; `fold` makes one word of many, to compare before tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from witness.ddp.fingerprints import reference
from witness.ddp.fingerprints.mixing import fold

__all__ = ["fingerprints", "fold"]


def fingerprints(tensors: Sequence[Tensor | None], *, version: int = 1, key: int = 0) -> Tensor:
    """Give the sums of each tensor's bit patterns, int64 [len(tensors), version + 1].

    None gives a row of zeros, as an empty tensor does.
    """
    if version not in (1, 2):
        raise ValueError(f"fingerprints have version 1 or 2, not {version}")
    device = next((one.device for one in tensors if one is not None), torch.device("cpu"))
    found = torch.zeros(len(tensors), version + 1, dtype=torch.int64, device=device)
    for row, tensor in enumerate(tensors):
        if tensor is not None:
            found[row] = reference.sums(tensor, version, key)
    return found
