"""What are the sums of GPU tensors, by one launch for all tensors of an element size?

Nothing waits for the device. Needs Triton, which torch's builds for GPUs bring along. Where
TRITON_INTERPRET=1 was set before, the same code runs on CPU tensors.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from witness.ddp.fingerprints import layout, mixing, reference
from witness.ddp.fingerprints.triton_kernel import add_sums

BLOCK = 1024
STEPS = 16
SPAN = BLOCK * STEPS
WARPS = 4
# Copies of tensors that are not contiguous are held until a launch with about so many bytes.
HELD_BYTES = 1 << 30


def sums(tensors: Sequence[Tensor | None], version: int = 1, key: int = 0) -> Tensor:
    """Give the sums of tensors of one GPU, int64 [len(tensors), version + 1]; None gives zeros.

    On the current stream of their device, without waiting for it.
    """
    device = next((one.device for one in tensors if one is not None), torch.device("cpu"))
    out = torch.zeros(len(tensors), version + 1, dtype=torch.int64, device=device)
    for table, _kept in layout.tables(tensors, held_bytes=HELD_BYTES, whole=True):
        for size in layout.INTEGERS:
            told, programs = plan(table, size, key)
            if programs:
                _launch(told, programs, size, out)
    return out


def check(device: torch.device, version: int) -> None:
    """Compare a small row with plain torch; waits for the device, and compiles one kernel.

    Raises ArithmeticError where they differ, and whatever Triton raises where it cannot run.
    """
    row = torch.arange(-20_000, 20_001, dtype=torch.int32, device=device)
    if not torch.equal(sums([row], version, 1)[0], reference.sums(row, version, 1)):
        raise ArithmeticError("the kernel gives other sums than plain torch")


def plan(table: array[int], size: int, key: int) -> tuple[list[int], list[int]]:
    """Give what the kernel is told of the tensors with this element size, and their programs."""
    told, programs, first = [mixing.signed(key, 64)], list[int](), 0
    per_program = SPAN * max(layout.WORD_BYTES // size, 1)
    for row in range(0, len(table), layout.TABLE_COLUMNS):
        address, count, element, _start, place = table[row : row + layout.TABLE_COLUMNS]
        if element == size:
            programs.append(-(-count // per_program))
            told += (address, count, first, place)
            first += programs[-1]
    return told, programs


def _launch(told: list[int], programs: list[int], size: int, out: Tensor) -> None:
    """Start the kernel; only a copy from pinned memory does not wait for the device."""
    on_gpu = out.device.type != "cpu"
    padded = told + [0] * (len(told) % 2)  # so that what follows begins at 16 bytes, like a tensor
    owner = torch.repeat_interleave(torch.tensor(programs))
    both = torch.cat((torch.tensor(padded, dtype=torch.int64), owner))
    if on_gpu:
        both = both.pin_memory().to(out.device, non_blocking=True)
    constants = (out.shape[1], size, BLOCK, STEPS)
    with torch.cuda.device(out.device) if on_gpu else nullcontext():
        add_sums[(len(owner),)](both, both[len(padded) :], out, *constants, num_warps=WARPS)
