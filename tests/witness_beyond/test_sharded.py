"""Is optimizer state that one rank alone holds seen to go wrong, and the right rank named?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from tests.witness_beyond.jobs import RANKS, backward, guarded
from witness.ddp.beyond.replayed_update import Before
from witness.ddp.beyond.sharded import Place, ShardedState, judge_update
from witness.ddp.guard import Guard
from witness.simulate import fleet

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def sharded(name: str = "adamw") -> Make:
    """Shard one of PyTorch's optimizers by its own library."""
    # Imported by the ranks alone: the import warns of a deprecation inside torch.
    from torch.distributed.optim import ZeroRedundancyOptimizer

    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "adamw": (torch.optim.AdamW, {"lr": 0.01}),
        "adam by tensor lists": (torch.optim.Adam, {"lr": 0.01, "foreach": True}),
        "fused adamw": (torch.optim.AdamW, {"lr": 0.01, "fused": True, "amsgrad": True}),
        "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        "plain sgd": (torch.optim.SGD, {"lr": 0.1}),
    }
    kind, options = kinds[name]
    return lambda params: ZeroRedundancyOptimizer(params, optimizer_class=kind, **options)


class Drill(ShardedState):
    """Replays wrongly in one role."""

    wrong_role = 0

    def replay(self, role: int, place: Place, before: Before) -> Tensor:
        if role == self.wrong_role:
            before.value.view(-1)[0] += 1
        return super().replay(role, place, before)


def flip(tensor: Tensor) -> None:
    tensor.data.view(-1)[1:2].view(torch.int32).bitwise_xor_(1 << 12)


def first_owned(guard: Guard) -> nn.Parameter:
    local: Any = guard.optimizer.optim  # type: ignore[attr-defined]
    return next(p for group in local.param_groups for p in group["params"])


def steps(
    guard: Guard, watch: ShardedState, last: int, between: Any = None
) -> dict[str, Any] | None:
    """Train up to a step with a fault between two steps; give the alarm."""
    for step in range(last + 1):
        loss = backward(guard, step)
        alarm = guard.stop(watch.before(step)) or guard.update(loss) or guard.stop(watch.after())
        if alarm is not None:
            return alarm
        if between is not None:
            between(step)
    return None


def clean(name: str) -> dict[str, Any]:
    guard = guarded(make=sharded(name))
    watch = ShardedState(guard.optimizer, guard.gradients.params, peer_offset=1, every=1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(guard.optimizer, 0.9)
    alarm = steps(guard, watch, 5, lambda _: schedule.step())
    watched = sum(len(places) for places in watch.owned)
    return {"alarm": alarm, "all are owned": watched == len(guard.gradients.params)}


NAMES = ["adamw", "adam by tensor lists", "fused adamw", "sgd", "plain sgd"]


def faults() -> dict[str, Any]:
    """Run every fault one after the other in one group of ranks."""
    me = dist.get_rank()
    found: dict[str, Any] = {}

    def start(kind: type[ShardedState] = ShardedState, **options: Any) -> tuple[Guard, Any]:
        guard = guarded(make=sharded())
        params = guard.gradients.params
        return guard, kind(guard.optimizer, params, peer_offset=1, **options)

    guard = guarded(make=sharded())
    param = first_owned(guard)
    if me == 2:
        # Registered before the watch: a wrong update, which the optimizer itself has made.
        local: Any = guard.optimizer.optim  # type: ignore[attr-defined]
        local.register_step_post_hook(lambda *_: flip(param))
    watch = ShardedState(guard.optimizer, guard.gradients.params, peer_offset=1, every=2)
    found["wrong update"] = steps(guard, watch, 8)

    for role in (1, 2):
        guard, watch = start(Drill, every=1)
        watch.wrong_role = role if me == 0 else 0
        found[f"wrong replay in role {role}"] = steps(guard, watch, 2)

    for every, parts in ((0, 1), (0, 50), (1, 0)):
        guard, watch = start(every=every, parts=parts)

        def corrupt(step: int, guard: Guard = guard) -> None:
            if me == 1 and step == 3:
                flip(guard.optimizer.optim.state[first_owned(guard)]["exp_avg"])  # type: ignore[attr-defined]

        found[f"state at rest, {every}, {parts}"] = steps(guard, watch, 5, corrupt)

    for holder in (0, 1):
        guard, watch = start(every=1)
        backward(guard, 0)
        if me == holder:
            for param in guard.gradients.params:
                flip(param.grad)  # type: ignore[arg-type]
        guard.optimizer.step()
        found[f"gradient of {holder}"] = watch.after()
    return found


def loads() -> Any:
    guard = guarded(make=sharded())
    watch = ShardedState(guard.optimizer, guard.gradients.params, peer_offset=1)

    def reload(step: int) -> None:
        local: Any = guard.optimizer.optim  # type: ignore[attr-defined]
        state = local.state_dict()
        for one in state["state"].values():
            one["exp_avg"] = one["exp_avg"] * 0
        local.load_state_dict(state)

    return steps(guard, watch, 3, reload)


def everything() -> dict[str, Any]:
    """Run all in one group of ranks: starting them, and importing the library, costs most."""
    return {
        "clean": {name: clean(name) for name in NAMES},
        "faults": faults(),
        "loads": loads(),
    }


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Give what every rank found alike."""
    results = fleet.run(RANKS, 1, everything, timeout_s=100)
    assert results[0] == results[1] == results[2]
    first: dict[str, Any] = results[0]
    return first


def test_a_healthy_sharded_optimizer_of_any_kind_gives_no_alarm(found: dict[str, Any]) -> None:
    assert found["clean"] == {name: {"alarm": None, "all are owned": True} for name in NAMES}


def test_a_wrong_update_or_replay_names_its_rank_and_no_other(found: dict[str, Any]) -> None:
    wrong = found["faults"]["wrong update"]
    assert (wrong["check"], wrong["suspects"]) == ("sharded update", [2])
    assert wrong["update_applied"] is True
    assert wrong["suspect_window"][1] == wrong["step"]
    (update,) = wrong["updates"]
    assert (update["kind"], update["owner"], update["suspect"]) == ("update", 2, 2)

    for role, name in ((1, "neighbour"), (2, "third")):
        alarm = found["faults"][f"wrong replay in role {role}"]
        assert alarm["suspects"] == [0]
        assert [(one[name], one["suspect"]) for one in alarm["updates"]] == [(0, 0)]


def test_a_state_that_changed_at_rest_names_its_holder_before_it_is_used(
    found: dict[str, Any],
) -> None:
    rest = found["faults"]["state at rest, 0, 1"]
    assert (rest["check"], rest["step"], rest["suspects"]) == ("sharded state", 4, [1])
    assert rest["suspect_window"] == [3, 4]
    assert rest["update_applied"] is False
    # Its turn had not come, or nobody looked: the state is then part of what all compute from.
    assert found["faults"]["state at rest, 0, 50"] is None
    assert found["faults"]["state at rest, 1, 0"] is None


def test_a_gradient_that_changed_on_one_rank_after_the_reduction(found: dict[str, Any]) -> None:
    for holder in (0, 1):
        alarm = found["faults"][f"gradient of {holder}"]
        assert alarm["suspects"] == [holder]
        assert {(one["kind"], one["owner"], one["suspect"]) for one in alarm["updates"]} == {
            ("input", owner, holder if owner == holder else None) for owner in range(RANKS)
        }


def test_a_state_that_was_loaded_is_no_alarm(found: dict[str, Any]) -> None:
    assert found["loads"] is None


@pytest.mark.parametrize(
    ("read", "wrote", "judged"),
    [
        ((1, 1, 1), (5, 5, 5), None),
        ((1, 1, 1), (6, 5, 5), {"kind": "update", "suspect": 4}),
        ((1, 1, 1), (5, 5, 6), {"kind": "update", "suspect": 2}),
        ((1, 1, 1), (5, 6, 7), {"kind": "update", "suspect": None}),
        ((2, 1, 1), (6, 5, 5), {"kind": "input", "suspect": 4}),
        ((1, 2, 1), (5, 6, 5), {"kind": "input", "suspect": None}),
        ((1, 2, 3), (5, 5, 5), {"kind": "input", "suspect": None}),
    ],
)
def test_three_ranks_judge_an_update(
    read: tuple[int, ...], wrote: tuple[int, ...], judged: dict[str, Any] | None
) -> None:
    assert judge_update((4, 0, 2), read, wrote) == judged
