"""How is one series kept in few bytes, so that exactly the same numbers come out again?

A block holds the times and values of one series. Numbers with few decimals, which nearly all are,
become integers; their differences are cut into byte planes and deflated. Whatever does not fit
(NaN with its payload, infinities, -0.0, DCGM's blanks) is kept beside them by its bits, so every
float64 pattern comes back as it was. Decoding trusts nothing: size and structure are bounded by the
count in the header, and the content must have the hash that was written down.
"""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import copysign, isfinite

CODEC = "delta-planes-zlib-1"
"""Names this form; another form gets another name, and old blocks keep theirs."""

MAX_SAMPLES = 1_000_000
"""More than half a year at 15 s: longer series must be cut. Bounds what a decoder may allocate."""

_DECIMALS = 9
_PROBES = 16
_GUESSES = 3
_RAW = 255
_LARGEST = 2**60
"""Second differences of smaller integers fit 64 bits with a sign."""
_SHARED = 20_000
"""Longer columns of times are not remembered: they would hold too much memory."""
_WORD = 2**64
_HALF = 2**63
_HEAD = struct.Struct("<I")
_COLUMN = struct.Struct("<BBBI")
_ODD = struct.Struct("<IQ")


class BlockError(ValueError):
    """A block that cannot be decoded: damaged, cut, of another codec, or made to harm."""


@dataclass(frozen=True, slots=True)
class Block:
    """A packed series.

    `sha256` is over the numbers, not over the bytes of `data`: equal content has an equal hash
    whatever version packed it. `first` and `last` are its times, None where it is empty.
    """

    codec: str
    sha256: str
    samples: int
    first: float | None
    last: float | None
    data: bytes


def content_hash(times: Sequence[float], values: Sequence[float]) -> str:
    """Hash count, times and values as little-endian words; hexadecimal SHA-256."""
    digest = hashlib.sha256(_HEAD.pack(len(times)))
    digest.update(_doubles(times))
    digest.update(_doubles(values))
    return digest.hexdigest()


def encode(times: Sequence[float], values: Sequence[float]) -> Block:
    """Pack a series; ValueError where the lengths differ or it is longer than MAX_SAMPLES."""
    if len(times) != len(values):
        raise ValueError(f"{len(times)} times and {len(values)} values")
    if len(times) > MAX_SAMPLES:
        raise ValueError(f"a block holds at most {MAX_SAMPLES:,} samples")
    body = zlib.compress(_times_column(times) + _column(values), 9)
    return Block(
        codec=CODEC,
        sha256=content_hash(times, values),
        samples=len(times),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        data=_HEAD.pack(len(times)) + body,
    )


def decode(
    codec: str, data: bytes, sha256: str, most: int = MAX_SAMPLES
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Unpack times and values; BlockError unless they are exactly what was packed.

    `most` refuses a block that claims more samples, before anything is unpacked.
    """
    if codec != CODEC:
        raise BlockError(f"the codec {codec[:40]!r} is not known here")
    if len(data) < _HEAD.size:
        raise BlockError("the block is cut short")
    (count,) = _HEAD.unpack_from(data)
    if count > min(most, MAX_SAMPLES):
        raise BlockError(f"the block claims {count:,} samples")
    raw = _inflated(data[_HEAD.size :], 2 * (_COLUMN.size + count * (8 + _ODD.size)))
    end = _end_of_column(raw, 0, count)
    times = _read_times(raw[:end], count) if count <= _SHARED else _read_column(raw[:end], count)
    offset = _end_of_column(raw, end, count)
    values = _read_column(raw[end:offset], count)
    if offset != len(raw):
        raise BlockError("the block holds more than its two columns")
    if content_hash(times, values) != sha256:
        raise BlockError("the content does not have the hash that was written down")
    return times, values


def _inflated(data: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(data, most + 1)
    except zlib.error as error:
        raise BlockError("the block is damaged") from error
    if len(raw) > most or not inflater.eof or inflater.unused_data:
        raise BlockError("the block has another size than it says")
    return raw


def _doubles(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _bits(numbers: Sequence[float]) -> tuple[int, ...]:
    return struct.unpack(f"<{len(numbers)}Q", _doubles(numbers))


def _times_column(times: Sequence[float]) -> bytes:
    if len(times) > _SHARED:
        return _column(times)
    return _packed_times(_doubles(times))


@lru_cache(maxsize=8)
def _packed_times(doubles: bytes) -> bytes:
    """Lay out times that several series have alike; by their bits, as -0.0 and 0 are equal."""
    return _column(struct.unpack(f"<{len(doubles) // 8}d", doubles))


def _column(numbers: Sequence[float]) -> bytes:
    """Lay one column out: decimals, order of differences, width, odd ones, planes, odd ones."""
    if len(numbers) > 1 and _doubles(numbers) == _doubles(numbers[:1]) * len(numbers):
        decimals, order, differences, odd = _constant(numbers)
    else:
        decimals, odd = _decimals(numbers)
        raw = decimals == _RAW
        words = list(_bits(numbers)) if raw else _integers(numbers, decimals, odd)
        order, differences = _differences(words)
    packed = struct.pack(f"<{len(numbers)}Q", *differences)
    width = (max(differences, default=0).bit_length() + 7) // 8
    planes = b"".join(packed[plane::8] for plane in range(width))
    bits = _bits([numbers[at] for at in odd])
    return b"".join(
        (
            _COLUMN.pack(decimals, order, width, len(odd)),
            planes,
            *(_ODD.pack(at, pattern) for at, pattern in zip(odd, bits, strict=True)),
        )
    )


def _constant(numbers: Sequence[float]) -> tuple[int, int, list[int], list[int]]:
    """Lay out numbers that are all alike without looking at each: half of all fields never move."""
    decimals, odd = _decimals(numbers[:1])
    words = _bits(numbers[:1]) if decimals == _RAW else _integers(numbers[:1], decimals, odd)
    (first,) = _folded(words)
    return decimals, 1 if first else 0, [first] + [0] * (len(numbers) - 1), []


def _decimals(numbers: Sequence[float]) -> tuple[int, list[int]]:
    """Find the fewest decimals that give the numbers back, and the places of those that none does.

    A few numbers are probed to guess how many decimals, then all are checked with that many. With
    more than a quarter of odd places the bit patterns themselves are kept.
    """
    decimals, odd = 0, _odd(numbers, 1)
    for _ in range(_GUESSES):
        probes = [numbers[at] for at in odd if _has_decimals(numbers[at])]
        if not probes:
            break
        spread = probes[:: 1 + len(probes) // _PROBES]
        guess = min(range(decimals, _DECIMALS + 1), key=lambda n: (len(_odd(spread, 10**n)), n))
        missed = _odd(numbers, 10**guess)
        if len(missed) >= len(odd):
            break
        decimals, odd = guess, missed
    return (decimals, odd) if len(odd) * 4 <= len(numbers) else (_RAW, [])


def _odd(numbers: Sequence[float], power: int) -> list[int]:
    """List the places of numbers that do not come back from an integer of that many decimals."""
    return [
        at
        for at, number in enumerate(numbers)
        if not -_LARGEST < number * power < _LARGEST
        or round(number * power) / power != number
        or (number == 0 and copysign(1, number) < 0)
    ]


def _has_decimals(number: float) -> bool:
    """Tell whether more decimals could help: not for NaN, infinities and whole numbers."""
    return isfinite(number) and number != int(number)


def _integers(numbers: Sequence[float], decimals: int, odd: list[int]) -> list[int]:
    """Scale to integers; where a number is odd, repeat the one before it."""
    power = 10**decimals
    apart = frozenset(odd)
    words, last = [], 0
    for at, number in enumerate(numbers):
        if at not in apart:
            last = round(number * power)
        words.append(last)
    return words


def _differences(words: Sequence[int]) -> tuple[int, list[int]]:
    """Take first or second differences where they are smaller, and fold the sign in."""
    best, order = _folded(words), 0
    current = list(words)
    for number in (1, 2):
        current = [*current[:1], *(later - sooner for sooner, later in pairwise(current))]
        folded = _folded(current)
        if sum(map(int.bit_length, folded)) < sum(map(int.bit_length, best)):
            best, order = folded, number
    return order, best


def _folded(words: Sequence[int]) -> list[int]:
    """Map words with sign to words without: 0, -1, 1, -2 become 0, 1, 2, 3.

    What 64 bits with a sign do not hold wraps around; only differences of bit patterns get there.
    """
    if words and (max(words) >= _HALF or min(words) < -_HALF):
        words = [(word + _HALF) % _WORD - _HALF for word in words]
    return [(word << 1) ^ (word >> 63) for word in words]


def _end_of_column(raw: bytes, offset: int, count: int) -> int:
    """Find where a column ends, by its header; BlockError where it cannot be one."""
    if len(raw) < offset + _COLUMN.size:
        raise BlockError("the block is cut short")
    decimals, order, width, odd = _COLUMN.unpack_from(raw, offset)
    end: int = offset + _COLUMN.size + width * count + odd * _ODD.size
    wrong = decimals not in {*range(_DECIMALS + 1), _RAW} or order > 2 or width > 8 or odd > count
    if wrong or len(raw) < end:
        raise BlockError("a column's header does not fit its content")
    return end


def _read_column(column: bytes, count: int) -> tuple[float, ...]:
    decimals, order, width, _ = _COLUMN.unpack_from(column)
    offset = _COLUMN.size
    spread = bytearray(8 * count)
    for plane in range(width):
        spread[plane::8] = column[offset + plane * count : offset + (plane + 1) * count]
    words = [(word >> 1) ^ -(word & 1) for word in struct.unpack(f"<{count}Q", spread)]
    for _ in range(order):
        words = list(accumulate(words))
    numbers = _numbers(words, decimals)
    for at, pattern in _ODD.iter_unpack(column[offset + width * count :]):
        if at >= count:
            raise BlockError("a number stands behind the end of its column")
        numbers[at] = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    return tuple(numbers)


_read_times = lru_cache(maxsize=8)(_read_column)
"""All fields of a GPU come in one scrape: the blocks of a window have their times alike."""


def _numbers(words: list[int], decimals: int) -> list[float]:
    if decimals == _RAW:
        packed = struct.pack(f"<{len(words)}Q", *(word % _WORD for word in words))
        return list(struct.unpack(f"<{len(words)}d", packed))
    power = 10**decimals
    return [word / power for word in words]
