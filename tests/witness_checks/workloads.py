"""Small models and steps, each with one thing that a replay could get wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf
from torch.utils.checkpoint import checkpoint

WIDTH = 8


@dataclass(frozen=True)
class Workload:
    """How to build a model and its loss; `layer` is where a fault is put."""

    build: Callable[[], nn.Module]
    ddp: dict[str, Any] = field(default_factory=dict)
    micro_batches: int = 1
    dtype: torch.dtype = torch.float32
    seed: int | None = None
    scaler: bool = False
    noise: bool = False
    layer: str = "last"


class Net(nn.Module):
    """Two layers and something between them."""

    def __init__(self, between: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.between = between or nn.Tanh()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.between(self.first(x)))
        return out


class TwoBiases(nn.Module):
    """Two parameters whose gradients are one and the same tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Parameter(torch.zeros(16)), nn.Parameter(torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x) + self.one + self.other


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = nn.Embedding(11, WIDTH), nn.Linear(WIDTH, 11, bias=False)
        self.last.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        tokens = (x * 3).long().remainder(11)
        out: Tensor = self.last(torch.tanh(self.embed(tokens).mean(dim=1)))
        return out


class Unused(Net):
    """One layer that nobody uses, and one that only some batches use."""

    def __init__(self) -> None:
        super().__init__()
        self.never, self.sometimes = nn.Linear(WIDTH, WIDTH), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        if float(x.detach().sum()) > 0:
            hidden = self.sometimes(hidden)
        out: Tensor = self.last(torch.tanh(hidden))
        return out


class Checkpointed(Net):
    def __init__(self, reentrant: bool) -> None:
        super().__init__(nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Tanh()))
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        hidden = checkpoint(self.between, self.first(x), use_reentrant=self.reentrant)
        out: Tensor = self.last(hidden)
        return out


class OddBuffers(Net):
    """Buffers that forward reads and writes, in every way that a module can."""

    count: Tensor
    history: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("nothing", None)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("history", torch.zeros(1), persistent=False)
        self.register_buffer("scale", torch.ones(16))
        self.register_buffer("late", None)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.history = torch.cat([self.history, x.detach().mean().reshape(1).float()])
        hidden = self.first(x) * self.scale + self.count * 0.01 + self.history.mean()
        self.scale = self.scale * 1.01
        self.late = hidden.detach()
        out: Tensor = self.last(torch.tanh(hidden))
        return out


class OwnBuffers(Net):
    """A running mean of this rank's own data, which forward subtracts."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = super().forward(x - self.mean)
        self.mean.mul_(0.9).add_(x.detach().mean(dim=0), alpha=0.1)
        return out


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.first(x).view(1, 1, -1, 3 * WIDTH).chunk(3, dim=-1)
        seen = nnf.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.last(seen.reshape(x.shape))
        return out


def frozen() -> nn.Module:
    net = Net()
    net.first.requires_grad_(requires_grad=False)
    return net


def mixed() -> nn.Module:
    net = Net(nn.LayerNorm(16))
    net.first.to(torch.float64)
    return net


def with_dropout() -> nn.Module:
    return Net(nn.Sequential(nn.Dropout(0.5), nn.Tanh()))


def with_norm() -> nn.Module:
    return Net(nn.BatchNorm1d(16))


def changing_view() -> nn.Module:
    return Net(TwoBiases())


WORKLOADS: dict[str, Workload] = {
    "plain": Workload(Net),
    "float64": Workload(Net, dtype=torch.float64),
    "bfloat16": Workload(Net, dtype=torch.bfloat16),
    "float16": Workload(Net, dtype=torch.float16),
    "two dtypes": Workload(mixed),
    "attention": Workload(Attention),
    "frozen layer": Workload(frozen),
    "tied weights": Workload(Tied),
    "unused": Workload(Unused, {"find_unused_parameters": True}),
    "unused, 2 micro-batches": Workload(Unused, {"find_unused_parameters": True}, 2),
    "bucket views": Workload(changing_view, {"gradient_as_bucket_view": True}),
    "static graph": Workload(Net, {"static_graph": True}),
    "tiny buckets": Workload(Net, {"bucket_cap_mb": 0.0001}),
    "2 micro-batches": Workload(changing_view, micro_batches=2),
    "4 micro-batches, views": Workload(changing_view, {"gradient_as_bucket_view": True}, 4),
    "batch norm": Workload(with_norm),
    "batch norm, own statistics": Workload(with_norm, {"broadcast_buffers": False}, 2),
    "dropout": Workload(with_dropout, seed=5),
    "dropout, 2 micro-batches": Workload(with_dropout, micro_batches=2, seed=5),
    "noise of python and numpy": Workload(Net, seed=5, noise=True),
    "checkpoint": Workload(lambda: Checkpointed(False), seed=5),
    "checkpoint, reentrant": Workload(lambda: Checkpointed(True), seed=5),
    "checkpoint, reentrant, 2 micro-batches": Workload(
        lambda: Checkpointed(True), {"gradient_as_bucket_view": True}, 2, seed=5
    ),
    "odd buffers": Workload(OddBuffers, {"broadcast_buffers": False}, 2),
    "own buffers": Workload(OwnBuffers, {"broadcast_buffers": False}),
    "broadcast buffers": Workload(OwnBuffers),
    "scaler": Workload(Net, scaler=True),
    "scaler, 2 micro-batches": Workload(changing_view, micro_batches=2, scaler=True),
}


def batch(workload: Workload, step: int, rank: int) -> Any:
    """Make what a rank trains on: a tensor, or a list of them."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    # A loader may draw from the global generator; a replay must not let it move on.
    torch.rand(1)
    parts = [torch.randn(4, WIDTH, generator=generator) for _ in range(workload.micro_batches)]
    return parts if workload.micro_batches > 1 else parts[0]


def loss_of(workload: Workload) -> Callable[[Any, Tensor], Tensor]:
    """Give the loss: a mean square in the model's dtype, divided by the micro-batches."""

    def compute(model: Any, x: Tensor) -> Tensor:
        if workload.noise:
            x = x + random.random() + float(np.random.random())
        inner = getattr(model, "module", model)
        x = x.to(next(inner.parameters()).dtype)
        if isinstance(inner, Net) and workload.build is mixed:
            hidden = model_in_two_dtypes(model, x)
        elif workload.scaler:
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model(x)
        else:
            hidden = model(x)
        loss: Tensor = (hidden * 0.5).square().mean() / workload.micro_batches
        return loss

    return compute


def model_in_two_dtypes(model: Any, x: Tensor) -> Tensor:
    inner = getattr(model, "module", model)
    if not hasattr(inner, "narrowing"):
        inner.first.register_forward_hook(lambda layer, args, out: out.float())
        inner.narrowing = True
    out: Tensor = model(x)
    return out
