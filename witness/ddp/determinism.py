"""Under which kernels does an audit step run, so that healthy GPUs must agree bit for bit?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

STRICT = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
"""Flash attention has a deterministic backward in strict mode; where it cannot run, math does."""

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_VALUES = (":4096:8", ":16:8")


@contextmanager
def deterministic(backends: list[SDPBackend] | None = None) -> Iterator[None]:
    """Run with deterministic algorithms; an operator that has none raises RuntimeError.

    `backends` are the attention kernels in order of preference, `STRICT` where None; a model that
    chooses its own inside keeps its choice. cuDNN may not choose a kernel by timing it: two GPUs
    could choose differently. The caller's settings come back afterwards, also after an error. They
    are the process's, so other threads run under them meanwhile.
    """
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    by_timing = torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        with sdpa_kernel(backends or STRICT, set_priority=True):
            yield
    finally:
        torch.backends.cudnn.benchmark = by_timing
        torch.use_deterministic_algorithms(before, warn_only=warn_only)


def advice(device: torch.device, deterministic_audits: bool) -> tuple[str, ...]:
    """Say in sentences what stands against bit-equal results of two healthy ranks.

    To be asked once at the start, with the device of the model's parameters.
    """
    if device.type != "cuda":
        return ()
    said = []
    if deterministic_audits and os.environ.get(CUBLAS) not in CUBLAS_VALUES:
        said.append(
            f"{CUBLAS} is not set: matrix products raise an error at the first deterministic "
            f"audit. Set it to {CUBLAS_VALUES[0]} before the job starts, on every rank."
        )
    if not deterministic_audits and torch.backends.cudnn.benchmark:
        said.append(
            "torch.backends.cudnn.benchmark is on: healthy GPUs may choose different kernels, and "
            "an audit with default kernels then accuses one of them. Switch it off."
        )
    return tuple(said)
