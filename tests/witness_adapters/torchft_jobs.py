"""Replicas of one process each under a real torchft lighthouse."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import TCPStore
from torchft import Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer
from torchft.ddp import DistributedDataParallel

from witness.ddp.adapters.torchft import refuse_step, unwatch, watch
from witness.report import Envelope, Reporter

ALARM = {
    "check": "compute",
    "step": 3,
    "culprits": [1],
    "suspect_window": [1, 3],
    "update_applied": False,
}


class Replica:
    """One replica group of one rank, with a small model and its optimizer."""

    def __init__(self, lighthouse: str, number: int, spool: str) -> None:
        wait = timedelta(seconds=30)
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        torch.manual_seed(4)
        self.model = nn.Linear(4, 2)
        self.manager = Manager(
            pg=ProcessGroupGloo(timeout=wait),
            load_state_dict=self.model.load_state_dict,
            state_dict=self.model.state_dict,
            min_replica_size=1,
            rank=0,
            world_size=1,
            store_addr="127.0.0.1",
            store_port=self.store.port,
            lighthouse_addr=lighthouse,
            replica_id=f"replica_{number}",
            hostname="127.0.0.1",
            timeout=wait,
            quorum_timeout=wait,
            connect_timeout=wait,
            use_async_quorum=False,
        )
        envelope = Envelope("alpine", "research", "elastic", 1)
        self.reporter = Reporter(envelope, url=None, token=None, spool=spool)
        self.handler = watch(self.manager, self.reporter)
        self.ddp = DistributedDataParallel(self.manager, self.model)
        inner = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = Optimizer(self.manager, inner)

    def step(self, alarm: dict[str, Any] | None = None) -> tuple[bool, list[list[float]]]:
        """Do a step; tell whether the weights moved, and what they are."""
        before = self.model.weight.detach().clone()
        self.optimizer.zero_grad()  # starts the quorum
        self.ddp(torch.ones(3, 4)).sum().backward()
        if alarm is not None:
            refuse_step(self.manager, alarm)
        self.optimizer.step()  # asks should_commit
        return not torch.equal(before, self.model.weight), self.model.weight.tolist()

    def close(self) -> None:
        unwatch(self.handler)
        self.manager.shutdown(wait=False)
        self.reporter.close()


def job(folder: str) -> dict[str, Any]:
    """Steps that both replicas take, refuse together, or one refuses; then replica 1 leaves."""
    rank = dist.get_rank()
    lighthouse = None
    if rank == 0:
        lighthouse = LighthouseServer(
            bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=3000, heartbeat_timeout_ms=1000
        )
    address: list[Any] = [None if lighthouse is None else lighthouse.address()]
    dist.broadcast_object_list(address, src=0)
    replica = Replica(address[0], rank, folder)
    dist.barrier()
    only_1 = ALARM if rank == 1 else None
    plan = [("plain", None), ("refused by both", ALARM), ("refused by 1", only_1), ("last", None)]
    said = {name: replica.step(alarm) for name, alarm in plan}
    dist.barrier()
    if rank == 1:
        replica.close()
    dist.barrier()
    if rank == 0:
        said["alone"] = replica.step()
        replica.close()
    return said
