"""What does one rank do in a campaign?"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.loop import train
from witness.ddp.schedule import Schedule
from witness.inject import Injector
from witness.simulate.campaign_plan import LAST, START, Trial
from witness.simulate.model import Batch, Job


def run_trials(job: Job, trials: Sequence[Trial]) -> list[dict[str, Any] | None]:
    """Train every trial in the process group that there is; give the alarms."""
    logging.disable(logging.CRITICAL)  # An alarm is what is wanted here.
    return [_run(job, trial) for trial in trials]


def _run(job: Job, trial: Trial) -> dict[str, Any] | None:
    rank, inner = dist.get_rank(), job.model()
    model, optimizer = DistributedDataParallel(inner), job.optimizer(inner)
    schedule = Schedule(**({"audit_every": 2, "check_every": 2, "peer_offset": 1} | trial.schedule))
    with Injector(inner, rank, optimizer).arm(*trial.faults) as injector:
        return train(
            model,
            optimizer,
            injector.over(_batches(job, START, LAST + 1), START),
            job.loss,
            job.batch,
            _keep_nothing,
            schedule,
            start_step=START,
            after_alarm=AfterAlarm(replays=0),
        )


def run_clean(job: Job, steps: int, deterministic: bool) -> tuple[int, dict[str, Any] | None]:
    """Train without a fault, every step audited and compared; give the steps done and an alarm."""
    logging.disable(logging.CRITICAL)
    inner = job.model()
    model, optimizer = DistributedDataParallel(inner), job.optimizer(inner)
    done = 0

    def counted() -> Iterator[Batch]:
        nonlocal done
        for batch in _batches(job, 0, steps):
            yield batch
            done += 1

    schedule = Schedule(
        audit_every=1, check_every=1, peer_offset=1, deterministic_audits=deterministic
    )
    alarm = train(model, optimizer, counted(), job.loss, job.batch, _keep_nothing, schedule)
    return done, alarm


def _batches(job: Job, first: int, end: int) -> Iterator[Batch]:
    rank = dist.get_rank()
    return (job.batch(step, rank) for step in range(first, end))


def _keep_nothing(step: int, tags: dict[str, int | None]) -> None:
    """Save no checkpoint."""
