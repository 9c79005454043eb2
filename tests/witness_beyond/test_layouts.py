"""Do owner, witnesses and verdicts find their places on nodes of several ranks, and over time?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.witness_beyond.jobs import backward, guarded
from tests.witness_beyond.test_reduction import Drill as WrongSum
from tests.witness_beyond.test_sharded import Drill as WrongReplay
from tests.witness_beyond.test_sharded import sharded
from witness.ddp.beyond.reduction import OWNER, WitnessedReduction
from witness.ddp.beyond.rounding import RoundingBound
from witness.ddp.beyond.sharded import ShardedState
from witness.ddp.gradients import LocalGradients
from witness.simulate import fleet


def drills(per_node: int) -> dict[str, Any]:
    """Let rank 4 of six add up wrongly, and replay wrongly as neighbour."""
    guard = guarded()
    reduction = WrongSum(guard.gradients, peer_offset=per_node, slices=1)
    reduction.roles = (OWNER,) if dist.get_rank() == 4 else ()
    reduction.before(2)
    backward(guard, 2)
    found: dict[str, Any] = {"reduction": reduction.after()}

    guard = guarded(make=sharded())
    params = guard.gradients.params
    watch = WrongReplay(guard.optimizer, params, peer_offset=per_node, every=1)
    watch.wrong_role = 1 if dist.get_rank() == 4 else 0
    loss = backward(guard, 0)
    found["update"] = watch.before(0) or guard.update(loss) or watch.after()
    found["owned"] = watch.owned
    return found


def test_six_ranks_on_three_nodes() -> None:
    results = fleet.run(6, 2, drills, 2, timeout_s=100)
    assert all(result == results[0] for result in results)
    found = results[0]
    assert found["reduction"]["suspects"] == [4]
    for one in found["reduction"]["reductions"]:
        assert (one["owner"], one["witness"], one["third"]) == (4, 0, 2)
    # The neighbour two ranks on replays the parameters of rank 2, if rank 2 has any.
    assert found["owned"][2]
    assert found["update"]["suspects"] == [4]
    assert [(one["owner"], one["neighbour"]) for one in found["update"]["updates"]] == [(2, 4)]


def long_run(steps: int) -> dict[str, Any]:
    """Train healthily with every check on at once."""
    guard = guarded(make=sharded())
    gradients: LocalGradients = guard.gradients
    reduction = WitnessedReduction(gradients, peer_offset=1, slices=3, every=2)
    bound = RoundingBound(gradients, slices=2)
    watch = ShardedState(guard.optimizer, gradients.params, peer_offset=1, every=1)
    for step in range(steps):
        reduction.before(step)
        bound.before(step)
        loss = backward(guard, step)
        alarm = reduction.after() or bound.after() or watch.before(step)
        alarm = alarm or guard.update(loss) or watch.after()
        if alarm is not None:
            return alarm
    norms = torch.stack([param.norm() for param in gradients.params])
    return {"healthy": bool(norms.isfinite().all())}


def test_all_at_once_give_no_alarm() -> None:
    assert fleet.run(3, 1, long_run, 12) == [{"healthy": True}] * 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_at_once_give_no_alarm_in_thousands_of_steps() -> None:
    assert fleet.run(3, 1, long_run, 2000, timeout_s=800) == [{"healthy": True}] * 3
