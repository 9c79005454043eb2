"""What each rank does where a replay cannot be made, or where only one rank sees what is wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tests.witness_checks.ranks import DEFAULT, NO_AUDITS, QUIET, STRICT, train
from tests.witness_checks.workloads import WIDTH, WORKLOADS, Net, batch, loss_of
from witness.ddp import nonfinite
from witness.ddp.gradients import LocalGradients
from witness.ddp.guard import Guard
from witness.ddp.replay import Work, own_words, refuse_exchange, replay
from witness.ddp.ring_audit import confirm, ring_audit
from witness.ddp.schedule import Schedule
from witness.ddp.weights import find_divergent
from witness.inject import Fault

WEIGHTS = Schedule(audit_every=0, check_every=1, peer_offset=1)
PLAIN = WORKLOADS["plain"]


def quietly(call: Callable[[], Any]) -> Any:
    """Give the result, or the error as its kind, its words and the seconds until it came."""
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - began


class Exchanging(Net):
    """A forward that averages over the ranks."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.detach().mean()
        dist.all_reduce(mean)
        out: Tensor = super().forward(x - mean)
        return out


def guarded(
    model: DistributedDataParallel,
    schedule: Schedule = STRICT,
    compute: Any = None,
    rebuild: Any = None,
    **options: Any,
) -> Guard:
    return Guard(
        model,
        torch.optim.SGD(model.parameters(), lr=0.05),
        schedule,
        compute or loss_of(PLAIN),
        rebuild or (lambda step, rank: batch(PLAIN, step, rank)),
        after_alarm=QUIET,
        **options,
    )


def one_step(guard: Guard, model: DistributedDataParallel, step: int = 0) -> Any:
    with guard.forward(step):
        loss = guard.work.compute_loss(model, batch(PLAIN, step, dist.get_rank()))
        loss.backward()
    return guard.update(loss)


def rebuild_fails_on(rank: int) -> Any:
    """Let one rank fail to rebuild, on every step."""

    def rebuild(step: int, of: int) -> Tensor:
        if dist.get_rank() == rank:
            raise LookupError("no such shard")
        made: Tensor = batch(PLAIN, step, of)
        return made

    model = DistributedDataParallel(Net())
    guard = guarded(model, rebuild=rebuild)
    return one_step(guard, model)


def rebuild_fails_beside_a_fault(rank: int, faulty: int) -> Any:
    """Let one rank fail to rebuild while another has a NaN."""

    def rebuild(step: int, of: int) -> Tensor:
        if dist.get_rank() == rank:
            raise LookupError("no such shard")
        made: Tensor = batch(PLAIN, step, of)
        return made

    def compute(model: Any, x: Tensor) -> Tensor:
        loss: Tensor = loss_of(PLAIN)(model, x)
        return loss * float("nan") if dist.get_rank() == faulty else loss

    model = DistributedDataParallel(Net())
    return one_step(guarded(model, DEFAULT, compute, rebuild), model)


def forward_exchanges() -> Any:
    model = DistributedDataParallel(Exchanging())
    return one_step(guarded(model), model)


def loss_uses_the_wrapper() -> Any:
    """Let compute_loss ignore the module that it is given."""
    net = Net()
    net.register_buffer("seen", torch.zeros(1))
    model = DistributedDataParallel(net)
    return one_step(guarded(model, compute=lambda _, x: loss_of(PLAIN)(model, x)), model)


def synchronised_norm() -> Any:
    # DDP takes such a layer on GPUs only.
    refuse_exchange(Net(nn.SyncBatchNorm(16)))


def sparse_embedding() -> Any:
    return guarded(DistributedDataParallel(nn.Sequential(nn.Embedding(4, WIDTH, sparse=True))))


def ignored_parameter() -> Any:
    net = Net()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["first.weight"])
    return guarded(DistributedDataParallel(net))


def third_fails(faulty: int) -> Any:
    """Let the third rank fail in the confirmation of a fault that one step had."""
    made: list[int] = []

    def rebuild(step: int, of: int) -> Tensor:
        made.append(of)
        if dist.get_rank() == (faulty + 1) % 3 and of == faulty:
            raise LookupError("no such shard")
        again: Tensor = batch(PLAIN, step, of)
        return again

    model = DistributedDataParallel(Net())
    guard = guarded(model, DEFAULT, rebuild=rebuild)
    with guard.forward(0):
        loss = guard.work.compute_loss(model, batch(PLAIN, 0, dist.get_rank()))
        loss.backward()
    return guard.update(loss * (2 if dist.get_rank() == faulty else 1))


def only_one_reduced_copy_is_bad(rank: int, scaler: Any = None) -> Any:
    model = DistributedDataParallel(Net())
    guard = guarded(model, NO_AUDITS, scaler=scaler)
    before = [param.detach().clone() for param in model.parameters()]
    with guard.forward(0):
        loss = guard.work.compute_loss(model, batch(PLAIN, 0, dist.get_rank()))
        (loss if scaler is None else scaler.scale(loss)).backward()
    if dist.get_rank() == rank:
        next(model.parameters()).grad[0, 0] = float("inf")  # type: ignore[index]
    alarm = guard.update(loss)
    same = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    return alarm, same


def settling_fails() -> Any:
    def gone(alarm: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("the standby is gone")

    model = DistributedDataParallel(Net())
    guard = guarded(model, NO_AUDITS)
    guard.settle = gone
    with guard.forward(0):
        loss = guard.work.compute_loss(model, batch(PLAIN, 0, dist.get_rank())) * float("inf")
        loss.backward()
    return guard.update(loss)


def nan_loss(faulty: int) -> Any:
    fault = Fault.on(faulty, "last").nan().since(1)
    return train(PLAIN, NO_AUDITS, fault)[0], train(PLAIN, STRICT, fault)[0]


def a_scaler_skips() -> Any:
    """Overflow on all ranks, then on one alone for many steps; give the alarms and the warnings."""
    logging.disable(logging.NOTSET)
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("witness.ddp.nonfinite").addHandler(handler)
    workload = WORKLOADS["scaler"]
    everybody = [Fault.on(rank, "last").inf().in_gradient().since(0, 1) for rank in range(3)]
    alone = Fault.on(1, "last").inf().in_weight_gradient().since(0)
    alarms = [
        train(workload, STRICT, *everybody)[0],
        train(workload, NO_AUDITS, alone, steps=10)[0],
    ]
    logging.getLogger("witness.ddp.nonfinite").removeHandler(handler)
    return alarms, seen


def weights_differ() -> Any:
    """Compare tensors in the ways in which replicas can differ; give (suspects, rows) of each."""
    rank = dist.get_rank()
    found = {}

    def compare(name: str, *tensors: Tensor) -> None:
        result = find_divergent(tensors)
        found[name] = (result.diverged, result.suspects, result.tensors, result.digests)

    ones = torch.ones(5)
    compare("same", ones, torch.zeros(0), torch.tensor(float("nan")))
    compare("one", ones, torch.full((3,), 7.0 + (rank == 2)))
    compare("sign of zero", torch.zeros(3) * (-1 if rank == 0 else 1))
    compare("all", ones * rank)
    compare("two in two tensors", ones + (rank == 0), ones + (rank == 1))
    compare("nothing")
    return found


def everything() -> dict[str, Any]:
    cases: dict[str, Callable[[], Any]] = {
        "rebuild fails": lambda: rebuild_fails_on(1),
        "rebuild fails beside a fault": lambda: rebuild_fails_beside_a_fault(1, 2),
        "exchanges": forward_exchanges,
        "wrapper": loss_uses_the_wrapper,
        "synchronised norm": synchronised_norm,
        "sparse": sparse_embedding,
        "ignored": ignored_parameter,
        "third fails": lambda: third_fails(1),
        "copy": lambda: only_one_reduced_copy_is_bad(2),
        "copy, scaled": lambda: only_one_reduced_copy_is_bad(2, torch.amp.GradScaler("cpu")),
        "settling": settling_fails,
        "nan": lambda: nan_loss(1),
        "scaler": a_scaler_skips,
        "weights": weights_differ,
    }
    return {name: quietly(case) for name, case in cases.items()}


def in_a_group(faulty: int) -> Any:
    """Train on ranks 1, 3 and 5 only, the others beside them; give alarms, and a bare audit."""
    logging.disable(logging.CRITICAL)
    sides = [dist.new_group([0, 2, 4]), dist.new_group([1, 3, 5])]
    group = sides[dist.get_rank() % 2]

    def run(schedule: Schedule, *faults: Fault) -> Any:
        workload = WORKLOADS["plain"]
        inside = type(workload)(workload.build, {"process_group": group})
        # Without `group=`: the guard takes the model's own.
        return train(inside, schedule, *faults)[0]

    fault = Fault.on(faulty, "last").multiply(1000.0)
    first = [
        run(STRICT),
        run(STRICT, fault.since(2)),
        run(STRICT, fault.once(2)),
        run(WEIGHTS, fault.in_weights().once(1)),
    ]
    return first, bare_audit(group)


def bare_audit(group: Any) -> Any:
    """Compare without a guard, one step of rank 3 scaled by hand."""
    torch.manual_seed(0)
    net = Net()
    work = Work(
        net, list(net.parameters()), loss_of(PLAIN), lambda step, rank: batch(PLAIN, step, rank)
    )
    work.remember_buffers()
    own = replay(work, 4, dist.get_rank(), True)
    if dist.get_rank() == 3:
        own = own + 1
    ring = ring_audit(work, own, 4, 1, True, group)
    return ring.pairs, ring.differing.loss, confirm(work, ring.ambiguous, ring, 4, True, group)


def names_nonfinite() -> Any:
    """Name by a flag on tensors alone, with norms as they come in each dtype."""
    rank = dist.get_rank()
    norm = torch.tensor(float("nan") if rank == 1 else 1.0)
    total = torch.tensor(1.0, dtype=torch.float64)
    assert nonfinite.flag(norm, total).tolist() == [1]
    assert nonfinite.flag(torch.tensor(1.0), total).tolist() == [0]
    return nonfinite.name_ranks(norm, total)


def half_precision_norm() -> tuple[float, float]:
    """Give the own and the reduced norm of a float16 gradient beyond float16's largest number."""
    net = nn.Linear(256, 256, bias=False).half()
    model = DistributedDataParallel(net)
    gradients = LocalGradients.attach(model)
    gradients.reset(record=False)
    (model(torch.full((1, 256), 8.0, dtype=torch.float16)).sum() * 64).backward()
    words = own_words([torch.tensor(1.0)], None)
    assert words.shape == (1,)
    return float(gradients.norm()), float(nonfinite.reduced_norm(gradients.params))
