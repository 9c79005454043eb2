"""How does one simulated job train, report and stop, rank by rank, as a real one would?"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.after_alarm import AfterAlarm
from witness.ddp.checkpoints import Checkpoints
from witness.ddp.loop import train
from witness.ddp.schedule import Schedule
from witness.inject import Fault, Injector
from witness.report import Envelope, Reporter
from witness.simulate import fleet
from witness.simulate.model import Batch, Job
from witness.simulate.scenarios import Layout, Saved


@dataclass(frozen=True, slots=True)
class Training:
    """One job to simulate.

    `url` None posts nowhere; documents then stay in the `spool`. `checkpoints` None writes none,
    though the job says that it saved. `resume` starts from the newest checkpoint that may be
    resumed from, else from `start_step`. `replays` bounds those after an alarm, `post_s` how
    long the job waits at its end for a service; `show` prints the loss now and then, `logs` what
    the ranks log.
    """

    layout: Layout
    spool: str
    name: str = "drill"
    attempt: int = 1
    job: Job = field(default_factory=Job)
    schedule: Schedule = field(default_factory=Schedule)
    faults: tuple[Fault, ...] = ()
    start_step: int = 0
    last_step: int = 50
    url: str | None = None
    token: str | None = None
    cluster: str = "simulated"
    namespace: str = "drills"
    checkpoints: str | None = None
    resume: bool = False
    replays: int = 20
    post_s: float = 10.0
    show: bool = False
    logs: bool = False

    def envelope(self) -> Envelope:
        """Give what every document of this start of the job carries."""
        return Envelope(
            cluster=self.cluster,
            namespace=self.namespace,
            job=self.name,
            attempt=self.attempt,
            framework={"name": "torch", "version": torch.__version__},
            labels={"simulated": "yes"},
        )

    def spooled(self, folder: str) -> Training:
        """Give the same job with another spool."""
        return replace(self, spool=folder)

    def node(self, place: int) -> str:
        """Give a node's name as HyperPod forms it from an instance id, the same at every start."""
        digest = hashlib.sha256(f"{self.cluster}/{place}".encode()).hexdigest()
        return f"hyperpod-i-{digest[:17]}"

    def gpu(self, rank: int) -> str:
        """Give the identity of a GPU, the same at every start."""
        digest = hashlib.sha256(f"{self.cluster}/gpu/{rank}".encode()).hexdigest()
        parts = digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]
        return f"GPU-{'-'.join(parts)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, as rank 0 saw it.

    `fired` counts how often the faults of all ranks did; `left` the documents that still lie in
    the spool, those of an earlier job included; `trouble` says what kept them there.
    """

    alarm: dict[str, Any] | None
    saved: tuple[Saved, ...]
    first_step: int
    fired: int
    trouble: dict[str, str]
    left: int = 0


def simulate(training: Training, timeout_s: float = 600.0) -> Outcome:
    """Start the ranks, train until the last step or an alarm, and give what came of it."""
    layout = training.layout
    environments = [
        {
            "NODE_NAME": training.node(rank // layout.gpus),
            "HOSTNAME": f"{training.name}-worker-{rank // layout.gpus}",
        }
        for rank in range(layout.world_size)
    ]
    outcome: Outcome = fleet.run(
        layout.world_size,
        layout.gpus,
        run_rank,
        training,
        timeout_s=timeout_s,
        environments=environments,
    )[0]
    return replace(outcome, left=len(list(Path(training.spool).rglob("*.json"))))


class _SimulatedGpus(Reporter):
    """Reports a GPU for every rank, since the ranks of a simulation have none."""

    gpu: Callable[[int], str]

    def rank_map(self, rows: Any, *args: Any, **named: Any) -> None:
        """Report the map with the identities of the simulated GPUs."""
        super().rank_map(
            [{**row, "gpu_uuid": self.gpu(row["rank"])} for row in rows], *args, **named
        )


def run_rank(training: Training) -> Outcome:
    """Be one rank of the job; every rank of the process group runs it."""
    rank = dist.get_rank()
    if not training.logs:
        logging.disable(logging.CRITICAL)  # The outcome says it all.
    reporter = _reporter(training, rank)
    inner = training.job.model()
    optimizer = training.job.optimizer(inner)
    checkpoints, first = _resumed(training, inner, optimizer, reporter)
    saved: list[Saved] = []

    def save(step: int, tags: dict[str, int | None]) -> str | None:
        saved.append((step, tags["last_audit_pass"], tags["last_weight_check_pass"]))
        if checkpoints is None:
            return f"simulated://{training.name}/step-{step}"
        state = {"model": inner.state_dict(), "optimizer": optimizer.state_dict()}
        checkpoints.save(step, state, tags)
        return None

    def batches() -> Iterator[Batch]:
        return (training.job.batch(step, rank) for step in range(first, training.last_step + 1))

    with Injector(inner, rank, optimizer).arm(*training.faults) as injector:
        alarm = train(
            DistributedDataParallel(inner),
            optimizer,
            injector.over(batches(), first),
            training.job.loss,
            training.job.batch,
            save,
            training.schedule,
            start_step=first,
            reporter=reporter,
            on_step=_progress(training, rank),
            checkpoints=training.checkpoints,
            after_alarm=AfterAlarm(replays=training.replays),
        )
        fired = torch.tensor([len(injector.fired)])
    reporter.close(training.post_s)
    dist.all_reduce(fired)
    return Outcome(alarm, tuple(saved), first, int(fired), reporter.status()["last_failures"])


def _reporter(training: Training, rank: int) -> Reporter:
    reporter = _SimulatedGpus(
        training.envelope(),
        url=training.url,
        token=training.token,
        spool=training.spool,
        rank=rank,
        local_rank=rank % training.layout.gpus,
    )
    reporter.gpu = training.gpu
    return reporter


def _resumed(
    training: Training,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    reporter: Reporter,
) -> tuple[Checkpoints | None, int]:
    """Load the newest state that may be resumed from; give the first step to train."""
    if training.checkpoints is None:
        return None, training.start_step
    checkpoints = Checkpoints(Path(training.checkpoints), reporter=reporter)
    newest = checkpoints.latest_safe() if training.resume else None
    if newest is None:
        return checkpoints, training.start_step
    found = checkpoints.load(newest)
    model.load_state_dict(found.state["model"])
    optimizer.load_state_dict(found.state["optimizer"])
    return checkpoints, found.step + 1


def _progress(training: Training, rank: int) -> Callable[[int, torch.Tensor], None] | None:
    if rank != 0 or not training.show:
        return None

    def tell(step: int, loss: torch.Tensor) -> None:
        if step % 10 == 0 or step == training.last_step:
            sys.stdout.write(f"step {step:4d}  loss of rank 0 {loss.item():.3f}\n")
            sys.stdout.flush()

    return tell
