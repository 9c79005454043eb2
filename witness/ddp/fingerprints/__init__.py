"""Do two tensors hold the same bits, asked by comparing a few integers?

`fingerprints` reads tensors once; `fold` makes one word of many, to compare before tables. Which
code reads them (`path`): compiled C on the CPU, a Triton kernel on a GPU, plain torch wherever
those are missing; all give the same integers. The variable WITNESS_FINGERPRINTS insists on one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module

import torch
from torch import Tensor

from witness.ddp.fingerprints import compiled, reference
from witness.ddp.fingerprints.mixing import fold

__all__ = ["VARIABLE", "fingerprints", "fold", "path"]

VARIABLE = "WITNESS_FINGERPRINTS"
# Imported only where it is used: it needs Triton.
ON_GPU = "witness.ddp.fingerprints.on_gpu"
PATHS = ("auto", "torch", "compiled", "triton")
_log = logging.getLogger(__name__)


def fingerprints(tensors: Sequence[Tensor | None], *, version: int = 1, key: int = 0) -> Tensor:
    """Give the sums of each tensor's bit patterns, int64 [len(tensors), version + 1].

    Version 1 has two sums, version 2 a third one with weights drawn from `key` (64 bits, ignored
    in version 1). The order of elements is the logical row-major one, whatever the layout. None
    gives a row of zeros, as an empty tensor does. The result lies on the device of the first tensor
    that is not None, without waiting for it; rows of tensors on other devices are copied there.
    Every rank computes its own, without communication and without a gradient.

    Raises ValueError for an unknown version, and where no memory lies behind a tensor; TypeError
    for tensors that have no bits of their own (sparse, quantized, nested, meta, DTensor). Equal
    fingerprints are strong evidence of equal bits, not proof.
    """
    if version not in (1, 2):
        raise ValueError(f"fingerprints have version 1 or 2, not {version}")
    devices = {tensor.device: None for tensor in tensors if tensor is not None}
    if len(devices) <= 1:
        return _on(next(iter(devices), torch.device("cpu")), tensors, version, key)
    found = torch.zeros(len(tensors), version + 1, dtype=torch.int64, device=next(iter(devices)))
    for device in devices:
        those = [n for n, one in enumerate(tensors) if one is not None and one.device == device]
        rows = _on(device, [tensors[n] for n in those], version, key)
        found[torch.tensor(those, device=found.device)] = rows.to(found.device)
    return found


def path(device: torch.device, version: int = 1) -> str:
    """Name what reads tensors of this device: `torch`, `compiled` or `triton`.

    Loads it and tries it once, so that a call at the start compiles then and not inside a step.
    Waits for the device the first time, never later.
    Raises ValueError for an unknown value of the variable, RuntimeError where it insists on what is
    not to be had.
    """
    asked = os.environ.get(VARIABLE) or "auto"
    if asked not in PATHS:
        raise ValueError(f"{VARIABLE} is one of {', '.join(PATHS)}, not {asked!r}")
    interpreted = asked == "triton" and os.environ.get("TRITON_INTERPRET") == "1"
    best = "triton" if device.type == "cuda" or interpreted else "compiled"
    if asked == "torch" or (best == "compiled" and device.type != "cpu"):
        return "torch"
    missing = _missing(best, device, version)
    if missing and asked == best:
        raise RuntimeError(f"{VARIABLE}={asked}: {missing}")
    return "torch" if missing else best


@cache
def _missing(wanted: str, device: torch.device, version: int) -> str:
    """Say why this path is not to be had, empty where it is; logged once for each."""
    try:
        if wanted == "compiled":
            compiled.library()
        else:
            import_module(ON_GPU).check(device, version)
    except Exception as error:  # Triton fails in many ways; plain torch is right wherever it does.
        reason = f"{type(error).__name__}: {error}"
        _log.warning("fingerprints on %s are slow, in plain torch: %s", device, reason)
        return reason
    return ""


def _on(device: torch.device, tensors: Sequence[Tensor | None], version: int, key: int) -> Tensor:
    taken = path(device, version)
    if taken == "compiled":
        return compiled.sums(tensors, version, key)
    if taken == "triton":
        found: Tensor = import_module(ON_GPU).sums(tensors, version, key)
        return found
    nothing = torch.zeros(version + 1, dtype=torch.int64, device=device)
    rows = [nothing if one is None else reference.sums(one, version, key) for one in tensors]
    return torch.stack(rows) if rows else nothing.new_zeros(0, version + 1)
