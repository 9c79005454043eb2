"""Which random numbers does a step see, and does its replay leave the generators alone?"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from witness.ddp.fingerprints.mixing import mix64

_SEED_BITS = 63
_NUMPY_BITS = 32


@contextmanager
def untouched(devices: Iterable[torch.device]) -> Iterator[None]:
    """Put torch's (CPU and these devices), Python's and NumPy's generators back afterwards.

    NumPy's global one, where the program has imported it. Generators that the program made for
    itself are not seen.
    """
    numpy = sys.modules.get("numpy")
    python = random.getstate()
    arrays = None if numpy is None else numpy.random.get_state()
    places = sorted({device.index or 0 for device in devices if device.type == "cuda"})
    with torch.random.fork_rng(devices=places):
        try:
            yield
        finally:
            random.setstate(python)
            if numpy is not None and arrays is not None:
                numpy.random.set_state(arrays)


def seed_all(seed: int, step: int, rank: int) -> None:
    """Seed torch's generators on all devices, Python's and NumPy's, from seed, step and rank."""
    mixed = mix64(mix64(mix64(seed) + step) + rank)
    torch.manual_seed(mixed >> (64 - _SEED_BITS))
    random.seed(mixed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(mixed >> (64 - _NUMPY_BITS))
