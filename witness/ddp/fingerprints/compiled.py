"""What are the sums of CPU tensors, by one call into compiled C for all of them?

The call releases the interpreter's lock and runs on one thread. Addresses are read anew in each
call and kept in none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from witness.ddp.fingerprints import build, layout, mixing, reference

_TRIAL_KEY = 0x0123456789ABCDEF


@cache
def library() -> ctypes.CDLL:
    """Load the compiled sums once a process. Raises build.NotBuilt."""
    return build.load(_works)


def sums(
    tensors: Sequence[Tensor | None], version: int = 1, key: int = 0, start: int = 0
) -> Tensor:
    """Give the sums of CPU tensors, int64 [len(tensors), version + 1]; None gives zeros.

    `start` as in reference.sums, for all tensors alike. Raises build.NotBuilt.
    """
    return _sums(library(), tensors, version, key, start)


def _sums(
    loaded: ctypes.CDLL, tensors: Sequence[Tensor | None], version: int, key: int, start: int
) -> Tensor:
    out = torch.zeros(len(tensors), version + 1, dtype=torch.int64)
    for table, _kept in layout.tables(tensors, start):
        address, cells = table.buffer_info()
        loaded.witness_sums(
            ctypes.c_void_p(address),
            ctypes.c_int64(cells // layout.TABLE_COLUMNS),
            ctypes.c_int64(version),
            ctypes.c_uint64(key & mixing.MASK_64),
            ctypes.c_void_p(out.data_ptr()),
        )
    return out


def _works(loaded: ctypes.CDLL) -> bool:
    """Compare with plain torch: a library in a cache may be damaged, a compiler wrong."""
    try:
        loaded.witness_sums.restype = None
    except AttributeError:
        return False
    drawn = torch.Generator().manual_seed(1)
    seen = torch.randint(-(2**63), 2**63 - 1, (3_001,), generator=drawn, dtype=torch.int64)
    rows = [seen.view(dtype)[1:-1] for dtype in layout.INTEGERS.values()]
    for version in (1, 2):
        want = [reference.sums(row, version, _TRIAL_KEY, 8) for row in rows]
        if not torch.equal(_sums(loaded, rows, version, _TRIAL_KEY, 8), torch.stack(want)):
            return False
    return True
