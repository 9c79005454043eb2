"""Under which kernels does an audit step run, so that healthy GPUs must agree bit for bit?"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

STRICT = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
"""Flash attention has a deterministic backward in strict mode; where it cannot run, math does."""


@contextmanager
def deterministic(backends: list[SDPBackend] | None = None) -> Iterator[None]:
    """Run with deterministic algorithms; an operator that has none raises RuntimeError.

    `backends` are the attention kernels in order of preference, `STRICT` where None. The caller's
    settings come back afterwards, also after an error.
    """
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        with sdpa_kernel(backends or STRICT, set_priority=True):
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
