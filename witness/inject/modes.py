"""What does a tensor look like after a fault has hit it?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from witness.inject.fault import Fault, Mode

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def corrupted(tensor: Tensor, fault: Fault) -> Tensor:
    """Give a contiguous copy that the fault has hit; the same tensor gives the same copy.

    Positions wrap around the number of elements, so that one fault fits tensors of any size; an
    empty tensor stays as it is.
    """
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    if copy.numel():
        _MODES[fault.mode](copy, fault)
    return copy


def bits(tensor: Tensor) -> Tensor:
    """View a contiguous tensor as flat integers of the same width."""
    return tensor.view(-1).view(_BITS[tensor.element_size()])


def _places(flat: Tensor, fault: Fault) -> tuple[int, int]:
    return fault.element % flat.numel(), fault.other % flat.numel()


def _multiply(copy: Tensor, fault: Fault) -> None:
    flat = copy.view(-1)
    flat[_places(flat, fault)[0]] *= fault.factor


def _noise(copy: Tensor, fault: Fault) -> None:
    # Drawn on the CPU from a generator of its own: the same on every device, and no step's
    # random numbers move.
    chance = torch.Generator().manual_seed(fault.seed)
    spread = torch.randn(copy.shape, generator=chance).to(copy.device, torch.float32)
    copy.mul_((1 + fault.factor * spread).to(copy.dtype))


def _flip(copy: Tensor, fault: Fault) -> None:
    width = 8 * copy.element_size()
    flat = bits(copy)
    mask = 1 << fault.bit % width
    signed = mask - (1 << width) if mask >> (width - 1) else mask
    flat[_places(flat, fault)[0]] ^= signed


def _column(copy: Tensor, fault: Fault) -> None:
    last = copy.view(-1, copy.shape[-1] if copy.dim() else 1)
    last[:, fault.element % last.shape[1]] *= fault.factor


def _swap(copy: Tensor, fault: Fault) -> None:
    flat = copy.view(-1)
    one, two = _places(flat, fault)
    flat[[one, two]] = flat[[two, one]]


def _pair(copy: Tensor, fault: Fault) -> None:
    flat = bits(copy)
    one, two = _places(flat, fault)
    flat[one] += int(fault.factor)
    flat[two] -= int(fault.factor)


def _fill(value: float) -> Callable[[Tensor, Fault], None]:
    def fill(copy: Tensor, fault: Fault) -> None:
        flat = copy.view(-1)
        flat[_places(flat, fault)[0]] = value

    return fill


_MODES: dict[Mode, Callable[[Tensor, Fault], None]] = {
    "multiply": _multiply,
    "noise": _noise,
    "flip": _flip,
    "column": _column,
    "swap": _swap,
    "pair": _pair,
    "nan": _fill(float("nan")),
    "inf": _fill(float("inf")),
}
