"""What is a fingerprint, said once more in whole numbers, and which tensors is it tried on?

Nothing here comes from the package: the elements are read by numpy, the weights are written out.
"""

from __future__ import annotations

import hypothesis.strategies as st
import torch
from torch import Tensor

M64, M32 = (1 << 64) - 1, (1 << 32) - 1
DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.int16, torch.uint16, torch.float16, torch.bfloat16,
    torch.int32, torch.uint32, torch.float32,
    torch.int64, torch.uint64, torch.float64, torch.complex64,
)  # fmt: skip
LAYOUTS = (
    "plain", "transposed", "permuted", "strided", "narrowed", "expanded", "offset", "channels_last"
)  # fmt: skip


def signed(value: int) -> int:
    value &= M64
    return value - (1 << 64) if value >> 63 else value


def raw(tensor: Tensor) -> bytes:
    """Give the bytes of all elements in logical row-major order."""
    flat = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return flat.reshape(-1).view(torch.uint8).numpy().tobytes()


def weight(word: int, key: int) -> int:
    m = (key + ((word >> 32) + 1) * 0x9E3779B97F4A7C15) & M64
    m = (m ^ m >> 30) * 0xBF58476D1CE4E5B9 & M64
    m = (m ^ m >> 27) * 0x94D049BB133111EB & M64
    m ^= m >> 31
    x = (word + m) & M32
    x = (x ^ x >> 16) * 0x85EBCA6B & M32
    x = ((x ^ x >> 13) + (m >> 32)) * 0xC2B2AE35 & M32
    x ^= x >> 16
    return x - (1 << 32) if x >> 31 else x


def integers(data: bytes, size: int) -> list[int]:
    parts = range(0, len(data), size)
    return [int.from_bytes(data[n : n + size], "little", signed=size > 1) for n in parts]


def words(data: bytes) -> list[int]:
    return integers(data + bytes(-len(data) % 4), 4)


def defined(tensor: Tensor, version: int = 1, key: int = 0, start: int = 0) -> list[int]:
    """Give the sums by their definition."""
    data, size = raw(tensor), min(tensor.element_size(), 8)
    elements = integers(data, size)
    sums = [sum(elements), sum((start + n + 1) * b for n, b in enumerate(elements))]
    if version == 2:
        first = start * size // 4
        sums.append(sum(u * weight(first + k, key) for k, u in enumerate(words(data))))
    return [signed(one) for one in sums]


def drawn(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> Tensor:
    """Make a tensor of random bits, NaNs and infinities among them."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    size = dtype.itemsize
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 256, (count * size,), dtype=torch.uint8, generator=generator)
    if dtype == torch.bool:
        bits = bits & 1
    return bits.view(dtype).view(shape)


def laid_out(tensor: Tensor, layout: str) -> Tensor:
    """Give the tensor another layout in memory; some change which elements it has."""
    if layout == "channels_last" and tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    if layout == "permuted":
        return tensor.permute(tuple(reversed(range(tensor.dim()))))
    if layout == "offset" and tensor.dim():
        return tensor[1:]
    if tensor.dim() < 2:
        return tensor
    return {
        "transposed": lambda: tensor.transpose(0, -1),
        "strided": lambda: tensor[..., ::2],
        "expanded": lambda: tensor[:1].expand(tensor.shape),
        "narrowed": lambda: tensor[:, 1:],
    }.get(layout, lambda: tensor)()


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw tensors of every dtype and layout, empty and 0-d ones among them."""
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    if draw(st.booleans()) and shape:
        shape = (draw(st.integers(1, 700)), *shape[1:2])
    tensor = drawn(draw(st.sampled_from(DTYPES)), shape, draw(st.integers(0, 2**32)))
    return laid_out(tensor, draw(st.sampled_from(LAYOUTS)))
