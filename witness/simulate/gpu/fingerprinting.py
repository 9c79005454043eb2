"""What does a fingerprint of a whole model cost, against one pass over its memory?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from witness.ddp.fingerprints import fingerprints, path, reference
from witness.simulate.gpu.measuring import Bench

WIDTH, MLP, LAYERS, VOCABULARY = 2048, 5632, 16, 32000
CHUNK = 1 << 24


def shapes(small: bool) -> list[tuple[int, ...]]:
    """List the 147 tensors of a Llama-like decoder of 953 million parameters, or a sixteenth."""
    width, mlp, words = (
        (WIDTH // 16, MLP // 16, VOCABULARY // 16) if small else (WIDTH, MLP, VOCABULARY)
    )
    block: list[tuple[int, ...]] = [*[(width, width)] * 4, (mlp, width), (mlp, width)]
    block += [(width, mlp), (width,), (width,)]
    return [(words, width), *(block * LAYERS), (width,), (words, width)]


def measure(bench: Bench) -> Iterator[dict[str, Any]]:
    """Measure every form on many tensors and on one, in fp32 and bf16; check that all agree."""
    for dtype in (torch.float32, torch.bfloat16):
        made = torch.Generator(bench.device).manual_seed(0)
        many = [
            torch.randn(shape, generator=made, device=bench.device).mul_(0.02).to(dtype)
            for shape in shapes(bench.small)
        ]
        yield from _compare(bench, f"147 tensors, {dtype}", many)
        yield from _compare(bench, f"one tensor, {dtype}", [torch.cat([t.flatten() for t in many])])


def _compare(bench: Bench, what: str, tensors: Sequence[Tensor]) -> Iterator[dict[str, Any]]:
    expected = naive(tensors)
    floor = bench.milliseconds(lambda: [one_pass(tensor) for tensor in tensors])
    forms: dict[str, Callable[[], Tensor]] = {
        "long formulation (a position and an int64 an element)": lambda: naive(tensors),
        "rows and columns, plain torch": lambda: torch.stack([reference.sums(t) for t in tensors]),
        f"ours, version 1 ({path(bench.device)})": lambda: fingerprints(tensors),
        f"ours, version 2 ({path(bench.device)})": lambda: fingerprints(tensors, version=2, key=7),
    }
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    yield {"what": f"{what}: floor, one torch.sum pass", "ms": floor, "gb_s": size / floor / 1e6}
    for name, form in forms.items():
        took = bench.milliseconds(form, rounds=3)
        row = {"what": f"{what}: {name}", "ms": took, "to_floor": took / floor}
        yield row | {"gb_s": size / took / 1e6, "right": bool(torch.equal(form()[:, :2], expected))}
    on_cpu = fingerprints([tensors[-1].cpu()])
    yield {"what": f"{what}: same as on the CPU", "right": torch.equal(on_cpu, expected[-1:].cpu())}


def one_pass(tensor: Tensor) -> Tensor:
    """Read the same bytes once: the sum of a view as 64-bit integers."""
    flat = tensor.view(-1)
    whole = flat.numel() * flat.element_size() // 8 * 8 // flat.element_size()
    return flat[:whole].view(torch.int64).sum()


def naive(tensors: Sequence[Tensor]) -> Tensor:
    """Compute version 1 the long way round: every element and every position as an int64."""
    views = {2: torch.int16, 4: torch.int32}
    rows = []
    for tensor in tensors:
        row = torch.zeros(2, dtype=torch.int64, device=tensor.device)
        integers = tensor.view(-1).view(views[tensor.element_size()])
        for first in range(0, integers.numel(), CHUNK):
            wide = integers[first : first + CHUNK].to(torch.int64)
            places = torch.arange(first + 1, first + 1 + wide.numel(), device=tensor.device)
            row += torch.stack([wide.sum(), (wide * places).sum()])
        rows.append(row)
    return torch.stack(rows)
