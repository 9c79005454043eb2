"""Does an error inside the all-reduce reach every replica, each own gradient being right?"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.gradients import LocalGradients
from witness.inject import Fault, Injector
from witness.simulate import fleet

Seen = tuple[list[Tensor], Tensor, int]


def reduce_once(faults: list[Fault]) -> list[Seen]:
    """Do one backward a fault; give the reduced gradients, the own fingerprints, what fired."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
    own = LocalGradients.attach(model)
    original = dist.all_reduce
    seen = []
    # DDP lays its buckets out anew after the first step, and gloo then adds in another order.
    for fault in [Fault.on(1).once(9), *faults]:
        with Injector(model, dist.get_rank()).arm(fault) as injector:
            injector.begin(0)
            model.zero_grad()
            own.reset(record=True)
            model(torch.full((3, 4), float(dist.get_rank() + 1))).sum().backward()
            found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
            seen.append((found, own.fingerprints().clone(), len(injector.fired)))
    assert dist.all_reduce is original
    return seen[1:]


def test_contribution_and_reducer_faults_hit_the_sum_and_nothing_else() -> None:
    here = Fault.on(rank=1).multiply(1000, element=2)
    faults = [here.in_reduced().once(9), here.in_contribution().once(0), here.in_reduced().once(0)]
    by_rank = fleet.run(3, 1, reduce_once, faults)
    for none, contribution, reduced in by_rank:
        for wrong in (contribution, reduced):
            assert torch.equal(wrong[1], none[1])
            same = [torch.equal(*pair) for pair in zip(wrong[0], none[0], strict=True)]
            assert sum(same) == len(same) - 1
    for kind in range(3):
        first = by_rank[0][kind][0]
        assert all(
            torch.equal(one, two)
            for other in by_rank[1:]
            for one, two in zip(first, other[kind][0], strict=True)
        )
    assert [[seen[2] for seen in one] for one in by_rank] == [[0, 0, 1], [0, 1, 1], [0, 0, 1]]
