"""Train with the package's whole loop: accumulated micro-batches, a learning rate that falls.

On one machine, as a trial (on CPUs where there is no GPU):

    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1  # else no restart under torchrun gets through
    torchrun --standalone --nproc-per-node=3 --max-restarts=3 examples/ddp_train.py --one-machine
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

from witness.ddp import Checkpoints, Schedule, leave, train
from witness.report import Reporter

log = logging.getLogger("example")

PARTS = 2
VOCABULARY = 64


def make_model() -> nn.Module:
    """Build a model that guesses the next of a few tokens."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(VOCABULARY, 32), nn.Tanh(), nn.Linear(32, VOCABULARY))


def batches_of(step: int, rank: int) -> list[Tensor]:
    """Give the micro-batches that a rank trains on at a step, on any rank that asks."""
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    starts = torch.randint(VOCABULARY, (PARTS, 8, 1), generator=generator)
    tokens = (starts + 3 * torch.arange(17)) % VOCABULARY
    return list(tokens.cuda() if torch.cuda.is_available() else tokens)


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    """Give what backward is called on: with micro-batches, its part of the step's mean."""
    scores = model(tokens[:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten()) / PARTS


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
    inner = make_model()
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        inner.cuda()
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.AdamW(inner.parameters(), lr=1e-2)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)

    reporter = Reporter.from_environment(rank, local_rank, dist.get_world_size())
    checkpoints = Checkpoints(args.checkpoints, reporter=reporter)
    parts = {"model": inner, "optimizer": optimizer, "rate": rate}
    first = 1
    path = checkpoints.latest_safe()
    if path is not None:
        saved = checkpoints.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved.state[name])
        first = saved.step + 1

    def save(step: int, tags: dict[str, int | None]) -> None:
        checkpoints.save(step, {name: part.state_dict() for name, part in parts.items()}, tags)

    def after(step: int, loss: Tensor) -> None:
        rate.step()
        if rank == 0 and step % 20 == 0:
            log.info("step %d: loss %.4f", step, PARTS * loss.item())

    alarm = train(
        model,
        optimizer,
        (batches_of(step, rank) for step in range(first, args.steps + 1)),
        loss_of,
        batches_of,
        save,
        Schedule(audit_every=10, check_every=10, ckpt_every=20, peer_offset=args.peer_offset),
        start_step=first,
        micro_batches=PARTS,
        reporter=reporter,
        checkpoints=args.checkpoints,
        independent_nodes=not args.one_machine,
        on_step=after,
    )
    if alarm is not None:
        leave(reporter)
    reporter.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
