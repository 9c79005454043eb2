"""How is a tensor read as a row of integers, whatever its dtype and layout?

The order is the logical row-major one, so a transposed view and its copy read the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# Single bytes are read without a sign, everything wider with one.
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
WORD_BYTES = 4
# A tensor that is not contiguous is copied in blocks of about this size.
BLOCK_BYTES = 64 << 20
# Blocks begin at a multiple of this many rows, hence at a whole word for elements of any size.
ROWS = 4
# Element sizes of the dtypes whose contiguous tensors can be read where they lie.
_PLAIN = {
    dtype: dtype.itemsize
    for name, dtype in vars(torch).items()
    if isinstance(dtype, torch.dtype)
    and dtype.itemsize in INTEGERS
    and not dtype.is_complex
    and not name.startswith("q")
}
_OWN_TYPES = (Tensor, torch.nn.Parameter)
TABLE_COLUMNS = 5


def tables(
    tensors: Sequence[Tensor | None],
    start: int = 0,
    held_bytes: int = BLOCK_BYTES,
    whole: bool = False,
) -> Iterator[tuple[array[int], list[Tensor]]]:
    """Give tables of where the tensors lie, for code that reads memory itself.

    A row of TABLE_COLUMNS int64: address, element count, element size, index of the first element,
    place in `tensors`. One table takes all tensors that can be read in place; copies of the others
    are held in the list beside it, and a table ends when they reach about `held_bytes`; a tensor
    larger than that comes in several rows, with `whole` it does not. Both must be kept until the
    memory has been read. Raises ValueError where no memory lies behind a tensor.
    """
    table, kept, held = array("q"), list[Tensor](), 0
    for place, tensor in enumerate(tensors):
        if tensor is None:
            continue
        if _in_place(tensor):
            _enter(table, tensor, start, place)
            continue
        integers = as_integers(tensor)
        if whole:
            integers = integers.contiguous()
        for block, first in blocks(integers, held_bytes):
            _enter(table, block, start + first, place)
            kept.append(block)
            held += block.numel() * block.element_size()
            if held >= held_bytes:
                yield table, kept
                table, kept, held = array("q"), [], 0
    if table:
        yield table, kept


def _in_place(tensor: Tensor) -> bool:
    return (
        type(tensor) in _OWN_TYPES
        and tensor.dtype in _PLAIN
        and tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
    )


def _enter(table: array[int], row: Tensor, first: int, place: int) -> None:
    count, address = row.numel(), row.data_ptr()
    if not count:
        return
    if not address:
        raise ValueError(f"no memory lies behind a tensor of {count} elements")
    table.extend((address, count, _PLAIN[row.dtype], first, place))


def as_integers(tensor: Tensor) -> Tensor:
    """View a tensor as integers of its element size, without a copy.

    complex128 is read as its real and imaginary part in turn, complex64 as one element of 8 bytes.
    A lazily conjugated or negated view is made real first. Raises TypeError for what has no bits of
    its own in memory: sparse, quantized, nested, meta, and wrappers around other tensors (DTensor:
    give `to_local()`).
    """
    tensor = tensor.detach()
    if hasattr(tensor, "__tensor_flatten__"):
        raise TypeError(f"a {type(tensor).__name__} wraps other tensors: fingerprint its parts")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested or tensor.is_meta:
        raise TypeError(f"no bits to read: {tensor.dtype}, {tensor.layout}, {tensor.device}")
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype == torch.complex128:
        tensor = torch.view_as_real(tensor)
    if tensor.element_size() not in INTEGERS:
        raise TypeError(f"{tensor.dtype} has elements of {tensor.element_size()} bytes")
    return tensor.view(INTEGERS[tensor.element_size()])


def blocks(integers: Tensor, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[Tensor, int]]:
    """Give contiguous rows of all elements in order, each with the index of its first element.

    A contiguous tensor is one block and is not copied.
    """
    if integers.is_contiguous():
        # Not view(-1): a single element may keep a stride of its own, which other views refuse.
        yield integers.as_strided((integers.numel(),), (1,)), 0
        return
    integers = integers.squeeze()
    row = integers[0].numel()
    rows = max(block_bytes // (row * integers.element_size()) // ROWS, 1) * ROWS
    for first in range(0, integers.shape[0], rows):
        yield integers[first : first + rows].contiguous().view(-1), first * row


def words(row: Tensor) -> Tensor:
    """View a contiguous row of integers as 32-bit words, the last one filled up with zero bytes.

    The low half of an 8-byte element comes first. Only a row that does not fill its words, or does
    not begin at one, is copied.
    """
    raw = row.view(torch.uint8)
    missing = -raw.numel() % WORD_BYTES
    if missing:
        raw = torch.nn.functional.pad(raw, (0, missing))
    elif raw.storage_offset() % WORD_BYTES:
        raw = raw.clone()
    return raw.view(torch.int32)
