"""Does a block give back exactly what was put in, stay small, and refuse what would harm?"""

from __future__ import annotations

import math
import random
import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from witness.rules.blocks import (
    CODEC,
    MAX_SAMPLES,
    Block,
    BlockError,
    content_hash,
    decode,
    encode,
)

# Every bit pattern there is: signalling and quiet NaN with any payload, infinities, -0.0.
any_pattern = st.integers(0, 2**64 - 1).map(
    lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]
)
as_printed = st.decimals(-1e9, 1e9, places=6, allow_nan=False).map(float)
blanks = st.sampled_from([9223372036854775808.0, 2147483632.0, 140737488355328.0, math.nan])
number = any_pattern | as_printed | blanks | st.integers(-(2**53), 2**53).map(float)


def bits(numbers: tuple[float, ...] | list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def unpacked(block: Block) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return decode(block.codec, block.data, block.sha256)


@given(st.lists(st.tuples(number, number), max_size=60))
def test_every_bit_of_every_number_comes_back(samples: list[tuple[float, float]]) -> None:
    times, values = [t for t, _ in samples], [v for _, v in samples]
    block = encode(times, values)
    got_times, got_values = unpacked(block)
    assert bits(got_times) == bits(times)
    assert bits(got_values) == bits(values)
    assert block.samples == len(samples)


@pytest.mark.parametrize("pattern", [0x7FF0000000000002, 0x7FF8DEADBEEF0001, 0xFFF8000000000000])
def test_the_payload_of_nan_is_kept(pattern: int) -> None:
    nan = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    _, values = unpacked(encode([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, nan, 2.0, 3.0, 4.0]))
    assert struct.unpack("<Q", struct.pack("<d", values[1]))[0] == pattern


def test_minus_nought_stays_minus_nought() -> None:
    _, values = unpacked(encode([1.0, 2.0, 3.0, 4.0, 5.0], [0.0, -0.0, 0.0, 1.0, 2.0]))
    assert [math.copysign(1, value) for value in values] == [1, -1, 1, 1, 1]


def test_an_empty_series_is_a_block_too() -> None:
    block = encode([], [])
    assert unpacked(block) == ((), ())
    assert block.first is None
    assert block.last is None


def test_equal_content_has_an_equal_hash_and_one_bit_another_one() -> None:
    assert encode([1.0], [2.0]).sha256 == content_hash([1.0], [2.0])
    assert content_hash([1.0], [0.0]) != content_hash([1.0], [-0.0])
    assert content_hash([1.0, 2.0], [3.0, 4.0]) != content_hash([1.0, 2.0], [4.0, 3.0])


def two_hours(seed: int) -> list[tuple[list[float], list[float]]]:
    """Make 26 fields of one GPU for two hours at 15 s: noise, counters, much that never moves."""
    rng = random.Random(seed)
    count = 481
    # The server keeps milliseconds, and now and then a scrape is one early or late.
    times = [
        round(1_772_446_200.123 + 15 * at + rng.choice([0, 0, 0, 0.001, -0.001]), 3)
        for at in range(count)
    ]
    energy, spent = [], 0.0
    for _ in times:
        spent += rng.gauss(600, 30) * 15_000
        energy.append(float(int(spent)))
    noisy = [
        [41.0 + rng.choice([0, 0, 1]) for _ in times],
        [round(rng.gauss(600, 30), 3) for _ in times],
        energy,
        *([round(rng.uniform(0.55, 0.65), 6) for _ in times] for _ in range(3)),
        *([float(int(rng.gauss(1.2e9, 1e8))) for _ in times] for _ in range(2)),
        [float(rng.choice([99, 100, 100, 98])) for _ in times],
        [rng.choice([1980.0, 1980.0, 1965.0]) for _ in times],
        [3.0 if at < 300 else 5.0 for at in range(count)],
    ]
    constant = [[float(level)] * count for level in (0,) * 10 + (2619, 70_000, 5_000, 600, 1)]
    return [(times, values) for values in (*noisy, *constant)]


def test_realistic_data_take_at_most_two_bytes_a_sample() -> None:
    fields = two_hours(1)
    assert len(fields) == 26
    packed = sum(len(encode(times, values).data) for times, values in fields)
    samples = sum(len(times) for times, _ in fields)
    assert packed / samples <= 2.0


@given(st.integers(0, 2**31), st.data())
@settings(max_examples=60)
def test_damage_is_noticed_or_harmless(seed: int, data: st.DataObject) -> None:
    times, values = two_hours(seed % 3)[seed % 26]
    block = encode(times, values)
    damaged = bytearray(block.data)
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    try:
        got = decode(block.codec, bytes(damaged), block.sha256)
    except BlockError:
        return
    assert bits(got[1]) == bits(values)


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_and_raise_nothing_else(data: bytes) -> None:
    with pytest.raises(BlockError):
        decode(CODEC, data, "0" * 64)


@given(
    st.integers(0, 300),
    st.binary(max_size=400),
    st.tuples(
        st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), st.integers(0, 2**32 - 1)
    ),
)
def test_columns_made_to_harm_are_refused(
    count: int, body: bytes, column: tuple[int, int, int, int]
) -> None:
    raw = struct.pack("<BBBI", *column) + body
    with pytest.raises(BlockError):
        decode(CODEC, struct.pack("<I", count) + zlib.compress(raw), "0" * 64)


def test_a_small_block_cannot_unpack_to_gigabytes() -> None:
    bomb = struct.pack("<I", 100) + zlib.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    with pytest.raises(BlockError, match="another size"):
        decode(CODEC, bomb, "0" * 64)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_claim_of_too_many_samples_is_refused_before_anything_is_unpacked() -> None:
    block = encode([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(BlockError, match="claims 2 samples"):
        decode(block.codec, block.data, block.sha256, most=1)
    with pytest.raises(BlockError, match="claims"):
        decode(CODEC, struct.pack("<I", MAX_SAMPLES + 1), "0" * 64)


def test_another_codec_or_hash_is_refused() -> None:
    block = encode([1.0], [2.0])
    with pytest.raises(BlockError, match="not known"):
        decode("delta-planes-zlib-2", block.data, block.sha256)
    with pytest.raises(BlockError, match="hash"):
        decode(block.codec, block.data, content_hash([1.0], [3.0]))


def test_lengths_must_agree_and_have_a_bound() -> None:
    with pytest.raises(ValueError, match="1 times and 2 values"):
        encode([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at most"):
        encode([0.0] * (MAX_SAMPLES + 1), [0.0] * (MAX_SAMPLES + 1))
