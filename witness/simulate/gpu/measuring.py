"""How long does a piece of work take on a device, and how much memory does it need?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Bench:
    """The device to measure on; `small` shrinks every size, to rehearse where no GPU is."""

    device: torch.device
    small: bool = False

    def finish(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def milliseconds(self, work: Callable[[], Any], rounds: int = 7) -> float:
        """Give the median time of one call, after two that do not count."""
        rounds = 2 if self.small else rounds
        for _ in range(2):
            work()
        took = []
        for _ in range(rounds):
            self.finish()
            began = time.perf_counter()
            work()
            self.finish()
            took.append(1e3 * (time.perf_counter() - began))
        return median(took)

    def peak_gib(self, work: Callable[[], Any]) -> float | None:
        """Give the most memory held during a call in GiB; None where the device does not tell."""
        if self.device.type != "cuda":
            return None
        torch.cuda.reset_peak_memory_stats(self.device)
        work()
        self.finish()
        return torch.cuda.max_memory_allocated(self.device) / 2**30
