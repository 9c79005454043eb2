"""Train with a loop of one's own, each step checked before it is applied.

On one machine, as a trial (on CPUs where there is no GPU):

    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1  # else no restart under torchrun gets through
    torchrun --standalone --nproc-per-node=3 --max-restarts=3 examples/ddp_guard.py --one-machine

On a cluster every rank needs NODE_NAME, and `--peer-offset` is the number of ranks a node.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from witness.ddp import Checkpoints, Guard, Schedule, leave
from witness.report import Reporter

log = logging.getLogger("example")


def make_model() -> nn.Module:
    """Build the model; a small one, so that the example runs anywhere."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 1))


def batch_of(step: int, rank: int) -> tuple[Tensor, Tensor]:
    """Give exactly the micro-batch that a rank trains on at a step, on any rank that asks."""
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    inputs = torch.randn(16, 32, generator=generator)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return inputs.to(device), inputs.sum(dim=1, keepdim=True).tanh().to(device)


def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Give what backward is called on; here and in a replay it is the same code."""
    inputs, wanted = batch
    return nn.functional.mse_loss(model(inputs), wanted)


def main() -> None:
    """Train to the last step, or end with exit code 3 at the first alarm."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    parser.add_argument("--peer-offset", type=int, default=1)
    parser.add_argument("--one-machine", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        model = DistributedDataParallel(make_model().cuda(), device_ids=[local_rank])
    else:
        model = DistributedDataParallel(make_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    reporter = Reporter.from_environment(rank, local_rank, dist.get_world_size())
    checkpoints = Checkpoints(args.checkpoints, reporter=reporter)
    schedule = Schedule(audit_every=10, check_every=10, ckpt_every=20, peer_offset=args.peer_offset)
    first = 1
    path = checkpoints.latest_safe()
    if path is not None:
        saved = checkpoints.load(path)
        model.module.load_state_dict(saved.state["model"])
        optimizer.load_state_dict(saved.state["optimizer"])
        first = saved.step + 1

    guard = Guard(
        model,
        optimizer,
        schedule,
        loss_of,
        batch_of,
        start_step=first,
        reporter=reporter,
        checkpoints=args.checkpoints,
        independent_nodes=not args.one_machine,
    )
    if guard.check_loaded() is not None:
        leave(reporter)
    for step in range(first, args.steps + 1):
        with guard.forward(step):
            loss = loss_of(model, batch_of(step, rank))
            loss.backward()
        if guard.update(loss) is not None:
            leave(reporter)
        if schedule.is_checkpoint(step):
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            checkpoints.save(step, state, guard.tags())
            if rank == 0:
                log.info("step %d: loss %.4f, saved", step, loss.item())
    reporter.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
