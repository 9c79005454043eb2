# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
"""Which program does a GPU run to read tensors once?

A program takes up to `most` blocks of units of one tensor: 32-bit words, or whole elements of 8
bytes. Each lane keeps a, the sum of its elements, and h, the sum of all a so far; sums.c says why
that is enough. Programs add their results atomically: of integers that is exact in any order.

Triton reads annotations as code, so these functions have none but its own.
"""

import triton  # type: ignore[import-not-found]
import triton.language as tl  # type: ignore[import-not-found]


@triton.jit
def add_sums(
    told,
    owner,
    out,
    sums: tl.constexpr,
    size: tl.constexpr,
    block: tl.constexpr,
    most: tl.constexpr,
):
    """Add two or three sums of one program's units to the tensor's row of `out`."""
    program = tl.program_id(0).to(tl.int64)
    item = told + 1 + tl.load(owner + program) * 4
    address = tl.load(item)
    count = tl.load(item + 1)
    unit = (program - tl.load(item + 2)) * (block * most)
    per_unit: tl.constexpr = 1 if size == 8 else 4 // size
    keys = _keys(tl.load(told), (unit * 2 if size == 8 else unit) >> 32)
    # Sixteen bytes at a time where the address allows it and all units are whole.
    steps = tl.minimum(tl.cdiv(tl.cdiv(count, per_unit) - unit, block), most)
    if (address % 16 == 0) & ((unit + block * most) * per_unit <= count):
        a, h, r, t = _walk(address, count, unit, most, keys, True, sums, size, block)
    else:
        a, h, r, t = _walk(address, count, unit, steps, keys, False, sums, size, block)
    lane = tl.arange(0, block).to(tl.int64)
    a = a.to(tl.int64)
    plain = tl.sum(a)
    units = tl.sum(lane * a + block * (steps * a - h.to(tl.int64))) + unit * plain
    weighted = units * per_unit + tl.sum(r.to(tl.int64)) + plain
    cell = out + tl.load(item + 3) * sums
    tl.atomic_add(cell, plain, sem="relaxed")
    tl.atomic_add(cell + 1, weighted, sem="relaxed")
    if sums == 3:
        tl.atomic_add(cell + 2, tl.sum(t), sem="relaxed")


@triton.jit
def _walk(  # noqa: PLR0917 - Triton before 3.3 takes no tuples
    address,
    count,
    unit,
    steps,
    keys,
    full: tl.constexpr,
    sums: tl.constexpr,
    size: tl.constexpr,
    block: tl.constexpr,
):
    """Read some blocks; give a, h, the places inside units r and the third sum t of each lane."""
    # Of narrow elements, all sums but the third stay below 2^31 in so few steps.
    kind: tl.constexpr = tl.int64 if size >= 4 else tl.int32
    a = tl.zeros([block], kind)
    h = tl.zeros([block], kind)
    r = tl.zeros([block], kind)
    t = tl.zeros([block], tl.int64)
    lane = tl.arange(0, block)
    for step in range(steps):
        here = unit + step * block
        if full:
            bits = _whole_units(address, here, lane, size)
        else:
            bits = _units_by_element(address, count, here, lane, size)
        if size >= 4:
            a += bits
        if size == 2:
            a += (bits << 16 >> 16) + (bits >> 16)
            r += bits >> 16
        if size == 1:
            b1, b2, b3 = (bits >> 8) & 0xFF, (bits >> 16) & 0xFF, (bits >> 24) & 0xFF
            a += (bits & 0xFF) + b1 + b2 + b3
            r += b1 + 2 * b2 + 3 * b3
        h += a
        if sums == 3:
            t += _third(bits, here, lane, keys, size)
    return a, h, r, t


@triton.jit
def _whole_units(address, here, lane, size: tl.constexpr):
    if size == 8:
        start = address.to(tl.pointer_type(tl.int64))
    else:
        start = address.to(tl.pointer_type(tl.int32))
    return tl.load(tl.multiple_of(start + here, 16) + lane)


@triton.jit
def _units_by_element(address, count, here, lane, size: tl.constexpr):
    """Put units together from single elements, with zeros behind the last."""
    if size == 8:
        start = address.to(tl.pointer_type(tl.int64))
    elif size == 4:
        start = address.to(tl.pointer_type(tl.int32))
    elif size == 2:
        start = address.to(tl.pointer_type(tl.int16))
    else:
        start = address.to(tl.pointer_type(tl.uint8))
    if size >= 4:
        bits = tl.load(start + (here + lane), mask=here + lane < count, other=0)
    else:
        bits = tl.zeros_like(lane)
        for n in tl.static_range(4 // size):
            place = (here + lane) * (4 // size) + n
            element = tl.load(start + place, mask=place < count, other=0).to(tl.int32)
            bits |= (element & ((1 << 8 * size) - 1)) << (n * 8 * size)
    return bits


@triton.jit
def _third(bits, here, lane, keys, size: tl.constexpr):
    if size == 8:
        low = (here * 2).to(tl.uint32) + (lane * 2).to(tl.uint32)
        of_low = (bits << 32 >> 32) * _weights(low, keys)
        return of_low + (bits >> 32) * _weights(low + 1, keys)
    else:  # noqa: RET505 - Triton compiles both branches unless they exclude each other
        low = here.to(tl.uint32) + lane.to(tl.uint32)
        return bits.to(tl.int64) * _weights(low, keys)


@triton.jit
def _weights(low, keys):
    x = low + keys.to(tl.uint32)
    x ^= x >> 16
    x *= 0x85EBCA6B
    x ^= x >> 13
    x += (keys >> 32).to(tl.uint32)
    x *= 0xC2B2AE35
    x ^= x >> 16
    return x.to(tl.int32, bitcast=True).to(tl.int64)


@triton.jit
def _keys(key, high):
    x = (key + (high + 1) * -0x61C8864680B583EB).to(tl.uint64, bitcast=True)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)
