"""What does one rank of a drill do: train a scenario, and say what it saw?"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.loop import train
from witness.ddp.schedule import Schedule
from witness.inject import Injector
from witness.simulate.model import Batch, Job
from witness.simulate.scenarios import LAST, START, Alarm, Layout, Saved, Scenario

USUAL = {"audit_every": 10, "check_every": 10, "ckpt_every": 20, "rotate": False}
"""The schedule of the published table; without rotation, so that every row has its peers."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one scenario; `document` is the whole alarm, the same on every rank."""

    alarm: Alarm | None
    saved: tuple[Saved, ...]
    document: dict[str, Any] | None

    def met(self, scenario: Scenario) -> bool:
        """Tell whether this is what the scenario expects."""
        return (self.alarm, self.saved) == (scenario.expected, scenario.saved)


def run_scenarios(layout: Layout, job: Job, drills: Sequence[Scenario]) -> list[Seen]:
    """Train every scenario from the same first state, in the process group that there is."""
    logging.disable(logging.CRITICAL)  # An alarm is what is wanted here.
    return [run_scenario(layout, job, one) for one in drills]


def run_scenario(layout: Layout, job: Job, scenario: Scenario) -> Seen:
    """Train one scenario until its alarm, or to its end."""
    rank = dist.get_rank()
    inner = job.model()
    model = DistributedDataParallel(inner)
    optimizer = job.optimizer(inner)
    saved: list[Saved] = []

    def save(step: int, tags: dict[str, int | None]) -> None:
        saved.append((step, tags["last_audit_pass"], tags["last_weight_check_pass"]))

    def batches() -> Iterator[Batch]:
        return (job.batch(step, rank) for step in range(START, LAST + 1))

    with Injector(inner, rank, optimizer).arm(*scenario.faults) as injector:
        if scenario.restored:
            injector.after_update(START - 1)
        document = train(
            model,
            optimizer,
            injector.over(batches(), START),
            job.loss,
            job.batch,
            save,
            Schedule(**(USUAL | {"peer_offset": layout.gpus} | scenario.schedule)),
            start_step=START,
            after_alarm=AfterAlarm(replays=0),
        )
    alarm = None if document is None else Alarm.read(document)
    return Seen(alarm, tuple(saved), document)
