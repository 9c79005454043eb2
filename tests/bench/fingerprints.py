"""How long does a fingerprint take, in reads of the same memory?

The floor is one `torch.sum` over an int64 view of the same bytes: memory once, one addition for 8
bytes. Against it: the compiled path, plain torch, and the obvious formulation, which converts a
chunk to int64 and multiplies it by a vector of positions. One thread, and its processor time, so
that waiting for other programs does not count. The ways take turns, and each figure is the best of
its rounds: whatever else uses the memory only ever adds time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from tests.bench.report import Report
from witness.ddp.fingerprints import compiled, layout, reference

AIM = 1.5
CHUNK = 1 << 24
Way = Callable[[Sequence[Tensor]], object]
# What is measured: name, number of tensors, elements of each, dtype.
CASES = (
    ("1 x 64M fp32", 1, 64_000_000, torch.float32),
    ("1 x 64M bf16", 1, 64_000_000, torch.bfloat16),
    ("200 x 300k fp32", 200, 300_000, torch.float32),
    ("200 x 300k bf16", 200, 300_000, torch.bfloat16),
    ("2000 x 1000 fp32", 2000, 1000, torch.float32),
    ("2000 x 1000 bf16", 2000, 1000, torch.bfloat16),
)
QUICK = 8
ROUNDS, SLOW_ROUNDS = 15, 3
SLOW = ("plain torch", "obvious")


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Take the time of every way on every case; `folder` is not needed."""
    del folder
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, number, elements, dtype in CASES:
            count = max(elements // QUICK, 1000) if quick else elements
            tensors = [torch.randn(count).to(dtype) * 0.02 for _ in range(number)]
            _case(report, name if count == elements else f"{name}, an eighth", tensors)
    finally:
        torch.set_num_threads(threads)


def _case(report: Report, name: str, tensors: Sequence[Tensor]) -> None:
    words = [one.view(torch.int64) for one in tensors]
    ways: dict[str, Way] = {
        "floor": lambda those: [one.sum() for one in words],
        "compiled, 2 sums": lambda those: compiled.sums(those, 1),
        "compiled, 3 sums": lambda those: compiled.sums(those, 2, 1),
        "plain torch, 2 sums": lambda those: [reference.sums(one, 1) for one in those],
        "plain torch, 3 sums": lambda those: [reference.sums(one, 2, 1) for one in those],
        "obvious, 2 sums": lambda those: [obvious(one) for one in those],
    }
    want = torch.stack([obvious(one) for one in tensors])
    if not torch.equal(compiled.sums(tensors, 1), want):
        raise AssertionError(f"{name}: the ways give different sums")
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(ROUNDS):
        for what, way in ways.items():
            if turn >= SLOW_ROUNDS and what.startswith(SLOW):
                continue
            began = time.thread_time()
            way(tensors)
            best[what] = min(best[what], time.thread_time() - began)
    for what, took in best.items():
        ratio = took / best["floor"]
        aimed = what == "compiled, 2 sums"
        report.add(
            "fingerprints",
            f"{name}: {what}",
            f"{took * 1000:.2f} ms",
            floor="one torch.sum",
            ratio=ratio,
            aim=f"<= {AIM:g}" if aimed else "",
            met=ratio <= AIM if aimed else None,
        )


def obvious(tensor: Tensor) -> Tensor:
    """Give the two sums as one would write them down first."""
    row = layout.as_integers(tensor).reshape(-1)
    plain = torch.zeros((), dtype=torch.int64)
    weighted = torch.zeros((), dtype=torch.int64)
    for first in range(0, row.numel(), CHUNK):
        part = row[first : first + CHUNK].to(torch.int64)
        places = torch.arange(first + 1, first + 1 + part.numel(), dtype=torch.int64)
        plain += part.sum()
        weighted += (part * places).sum()
    return torch.stack((plain, weighted))
