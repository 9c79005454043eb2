"""Do the checks catch faults in real GPU kernels, three ranks on one card?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from witness.simulate.gpu.measuring import Bench
from witness.simulate.model import Batch, Decoder, Job
from witness.simulate.scenarios import Layout, scenarios
from witness.simulate.table import run_table

THREE = Layout(nodes=3, gpus=1)
"""Three ranks over gloo: NCCL refuses several ranks on one card."""


@dataclass(frozen=True, slots=True)
class OnDevice(Job):
    """A drill's job that computes on a device."""

    device: str = "cuda"

    def model(self) -> Decoder:
        """Make the model on the device."""
        # The zero-argument `super` does not find its class in a dataclass with slots.
        return Job.model(self).to(self.device)

    def batch(self, step: int, rank: int) -> Batch:
        """Give a batch on the device."""
        made = Job.batch(self, step, rank)
        return Batch(made.tokens.to(self.device), made.seed)


def drills(bench: Bench) -> Iterator[dict[str, Any]]:
    """Run the fault table on the device; a row a scenario, with what it gave if not as expected."""
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
    job = OnDevice(device=str(bench.device))
    chosen = scenarios(THREE, job.shape)
    for row in run_table(THREE, job, chosen[:3] if bench.small else chosen, timeout_s=240.0):
        yield {"what": f"drill: {row.scenario.name}", "right": row.met, "said": _said(row.met, row)}


def _said(met: bool, row: Any) -> str:
    return "as expected" if met else str(row.said)
