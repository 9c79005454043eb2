"""A small job of three ranks, each on a node of its own, for the tests of the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule
from witness.inject import Fault, Injector

SCHEDULE = Schedule(audit_every=5, check_every=5, ckpt_every=10, peer_offset=1)
QUICK = AfterAlarm(replays=4)
STEPS = 21


class Recorder:
    """A reporter that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_") or name == "envelope":
            raise AttributeError(name)
        return lambda *args, **named: self.calls.append((name, args, named))

    def told(self, what: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, named) for name, args, named in self.calls if name == what]


class Broken:
    """A reporter that raises whatever it is told."""

    envelope = None

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name} today")


def rebuild(step: int, rank: int) -> Tensor:
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    return torch.randn(4, 8, generator=generator)


def loss_of(model: Any, batch: Tensor) -> Tensor:
    loss: Tensor = model(batch).square().mean()
    return loss


class Job:
    """Model, optimizer and guard of one rank, new for every scenario."""

    def __init__(self, *faults: Fault, schedule: Schedule = SCHEDULE, **options: Any) -> None:
        torch.manual_seed(0)
        self.rank = dist.get_rank()
        inner = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 4))
        self.model = DistributedDataParallel(inner)
        fused = options.get("deferred", False)
        self.optimizer = torch.optim.AdamW(inner.parameters(), lr=1e-2, fused=fused)
        self.injector = Injector(inner, self.rank, self.optimizer).arm(*faults)
        self.reporter = options.pop("reporter", Recorder())
        self.guard = Guard(
            self.model,
            self.optimizer,
            schedule,
            options.pop("compute_loss", loss_of),
            options.pop("rebuild_batch", rebuild),
            reporter=self.reporter,
            **{"after_alarm": QUICK, **options},
        )

    def step(self, step: int) -> dict[str, Any] | None:
        self.injector.begin(step)
        with self.guard.forward(step):
            loss = loss_of(self.model, rebuild(step, self.rank))
            loss.backward()
        return self.guard.update(loss)

    def run(self, steps: Sequence[int] = range(1, STEPS)) -> dict[str, Any] | None:
        for step in steps:
            alarm = self.step(step)
            if alarm is not None:
                return alarm
        return None

    def bits(self) -> list[bytes]:
        """Give weights and optimizer state, bit for bit."""
        tensors = [*self.model.module.parameters()]
        for one in self.optimizer.state.values():
            tensors += [value for value in one.values() if isinstance(value, Tensor)]
        return [tensor.detach().numpy().tobytes() for tensor in tensors]

    def grads(self) -> int:
        return sum(p.grad is not None for p in self.model.module.parameters())
