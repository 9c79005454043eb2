"""How are bits spread: the keyed weights of the third sum, and the mix of 64 bits?

`mix64` is the finaliser of SplitMix64, `weights` that of MurmurHash3 for 32 bits with a second part
of the key added half-way. Both are bijections. Neither is a cryptographic function.
"""

from __future__ import annotations

import torch
from torch import Tensor

MASK_32 = (1 << 32) - 1
MASK_64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
MULTIPLIERS_64 = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
MULTIPLIERS_32 = (0x85EBCA6B, 0xC2B2AE35)


def signed(value: int, bits: int) -> int:
    """Give the integer in two's complement, as tensors hold it."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def mix64(value: int) -> int:
    """Spread 64 bits over 64 bits."""
    value &= MASK_64
    value = (value ^ (value >> 30)) * MULTIPLIERS_64[0] & MASK_64
    value = (value ^ (value >> 27)) * MULTIPLIERS_64[1] & MASK_64
    return value ^ (value >> 31)


def key_halves(key: int, high: int) -> tuple[int, int]:
    """Give the two 32-bit keys of the words whose index has these upper 32 bits."""
    mixed = mix64(key + (high + 1) * GAMMA)
    return mixed & MASK_32, mixed >> 32


def weights(first: int, count: int, key: int, device: torch.device) -> Tensor:
    """Give the weights of words first ... first + count - 1, int32 [count].

    All of them must have the same upper 32 bits of their index.
    """
    low_key, high_key = key_halves(key, first >> 32)
    x = torch.arange(count, dtype=torch.int32, device=device)
    x += signed(first + low_key, 32)
    x ^= _shift(x, 16)
    x *= signed(MULTIPLIERS_32[0], 32)
    x ^= _shift(x, 13)
    x += signed(high_key, 32)
    x *= signed(MULTIPLIERS_32[1], 32)
    x ^= _shift(x, 16)
    return x


def _shift(x: Tensor, by: int) -> Tensor:
    """Shift int32 to the right without its sign."""
    return (x >> by) & (MASK_32 >> by)


def mix64_of(words: Tensor) -> Tensor:
    """Spread the bits of each int64 like `mix64`."""
    for by, multiplier in ((30, MULTIPLIERS_64[0]), (27, MULTIPLIERS_64[1])):
        words = (words ^ ((words >> by) & (MASK_64 >> by))) * signed(multiplier, 64)
    return words ^ ((words >> 31) & (MASK_64 >> 31))


def fold(words: Tensor) -> Tensor:
    """Mix all words of an int64 tensor into one, depending on each word's position.

    0-d int64 on the same device, without waiting for it. Tensors of other values, order or length
    give the same word with a chance of about 2^-64 for faults that know nothing of the mix; this
    is not proven, and not meant against somebody who looks for a collision. Raises TypeError for
    any other dtype.
    """
    if words.dtype != torch.int64:
        raise TypeError(f"words are int64, not {words.dtype}")
    flat = words.detach().reshape(-1)
    places = torch.arange(1, flat.numel() + 1, dtype=torch.int64, device=flat.device)
    each = mix64_of(flat ^ mix64_of(places * signed(GAMMA, 64)))
    length = signed(flat.numel() * GAMMA, 64)
    return mix64_of(each.sum() + length)
