"""Start an example under torch's own elastic agent, as torchrun does, with a fault in one attempt.

    python -m tests.witness_loop.elastic EXAMPLE FAULT FOLDER

The agent forks its workers, so that torch is imported once; under torchrun itself this is a worker.
EXAMPLE is a name in `examples`; FAULT
is what `Fault.parse` reads, and is armed in the first attempt only.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import torch._dynamo
import torch.profiler
from torch import nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from witness.inject import Fault, Injector

RANKS = 3


def worker(name: str, fault: str, folder: str) -> None:
    """Be one rank of one attempt, on a node of its own."""
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    os.environ["NODE_NAME"] = f"node-{rank}"
    example: Any = importlib.import_module(f"examples.{name}")
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and fault:
        arm(example, Fault.parse(fault), rank)
    sys.argv = [name, "--steps", "60", "--checkpoints", str(Path(folder, "checkpoints"))]
    example.main()


def arm(example: Any, fault: Fault, rank: int) -> None:
    """Put the fault into the example's model, and tell it the step with each batch."""
    armed: list[Injector] = []
    make, data = example.make_model, "batch_of" if hasattr(example, "batch_of") else "batches_of"
    given = getattr(example, data)

    def make_faulty() -> nn.Module:
        model: nn.Module = make()
        armed.append(Injector(model, rank).arm(fault))
        return model

    def give(step: int, of_rank: int) -> Any:
        armed[0].begin(step)
        return given(step, of_rank)

    example.make_model = make_faulty
    setattr(example, data, give)


def main() -> None:
    """Launch with as many restarts as torchrun would be given."""
    name, fault, folder = sys.argv[1:]
    os.environ["WITNESS_SPOOL"] = str(Path(folder, "spool"))
    if "RANK" in os.environ:
        worker(name, fault, folder)
        return
    importlib.import_module(f"examples.{name}")
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=RANKS,
        run_id="example",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=1,
        monitor_interval=0.1,
        start_method="fork",
    )
    elastic_launch(config, worker)(name, fault, folder)


if __name__ == "__main__":
    main()
