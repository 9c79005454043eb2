"""Does a standby name the wrong one of two replicas, and nobody where it cannot know?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.witness_beyond.jobs import backward, batch, guarded, loss_of, model
from witness.ddp.beyond.link import groups
from witness.ddp.beyond.replicas import Replicas
from witness.ddp.beyond.standby import Standby
from witness.ddp.guard import Guard
from witness.ddp.schedule import Schedule
from witness.rules.alarm import read_alarm
from witness.rules.findings import findings
from witness.simulate import fleet

STANDBY = 2
WEIGHTS = Schedule(audit_every=0, check_every=3, peer_offset=1)
RING = Schedule(audit_every=2, check_every=3, peer_offset=1)
Fault = Callable[[Guard, int], None]
Groups = tuple[dist.ProcessGroup, dist.ProcessGroup]


def adamw(params: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, lr=0.02)


def fused(params: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, lr=0.02, fused=True)


def job(
    made: Groups,
    schedule: Schedule,
    fault: Fault,
    disturb: Fault | None = None,
    kind: type[Replicas] = Replicas,
    scaled: bool = False,
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = adamw,
) -> dict[str, Any] | None:
    """Train seven steps on two replicas; `fault` acts after an update, `disturb` before a step."""
    training, link = made
    if dist.get_rank() == STANDBY:
        _stand_by(link, disturb, make)
        return None
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0) if scaled else None
    guard = guarded(schedule, make=make, group=training, norm=True, scaler=scaler)
    replicas = kind(guard, STANDBY, link)
    alarm = None
    for step in range(7):
        for group in guard.optimizer.param_groups:
            group["lr"] = 0.02 / (1 + step)
        if disturb is not None:
            disturb(guard, step)
        alarm = guard.update(backward(guard, step))
        if alarm is None:
            fault(guard, step)
            alarm = guard.stop(replicas.passed(step))
        if alarm is not None:
            break
    replicas.close()
    return alarm


def _stand_by(
    link: dist.ProcessGroup,
    disturb: Fault | None,
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = adamw,
) -> None:
    module = model(norm=True)
    optimizer = make(list(module.parameters()))
    if disturb is faulty_standby:
        optimizer.register_step_post_hook(lambda *_: flip(next(module.parameters())))
    Standby(module, optimizer, loss_of, batch, link).serve()


def flip(tensor: torch.Tensor) -> None:
    tensor.data.view(-1)[1:2].view(torch.int32).bitwise_xor_(1 << 14)


def weight_of(rank: int, when: int) -> Fault:
    def act(guard: Guard, step: int) -> None:
        if step == when and dist.get_rank() == rank:
            flip(guard.gradients.params[2])

    return act


def state_of(rank: int, when: int) -> Fault:
    def act(guard: Guard, step: int) -> None:
        if step == when and dist.get_rank() == rank:
            flip(guard.optimizer.state[guard.gradients.params[0]]["exp_avg"])

    return act


def skipped_step(made: Groups) -> tuple[dict[str, Any] | None, list[int]]:
    """Let the gradients of step 1 overflow; give the alarm and how often the standby was helped."""
    copies: list[int] = []

    class Counting(Replicas):
        def passed(self, step: int) -> dict[str, Any] | None:
            alarm = super().passed(step)
            copies.append(self.copies)
            return alarm

    def overflow(guard: Guard, step: int) -> None:
        if step == 1:
            hook = guard.gradients.params[0].register_hook(lambda grad: grad * float("inf"))
            hooks.append(hook)
        elif hooks:
            hooks.pop().remove()

    hooks: list[Any] = []
    alarm = job(made, WEIGHTS, nothing, overflow, kind=Counting, scaled=True, make=fused)
    return alarm, copies


def compute_of(rank: int, when: int, calls: int | None = None) -> Fault:
    """Have a rank's layer give a wrong number from a step on, or only so many times."""
    left = [calls]

    def wrong(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor | None:
        if left[0] == 0:
            return None
        if left[0] is not None:
            left[0] -= 1
        output = output.clone()
        output[0, 0] = output[0, 0] * 2 + 1
        return output

    def act(guard: Guard, step: int) -> None:
        if step == when and dist.get_rank() == rank:
            guard.work.module[3].register_forward_hook(wrong)  # type: ignore[index]

    return act


def faulty_standby(guard: Guard, step: int) -> None:
    """Do nothing here: the standby looks for this one."""


def nothing(guard: Guard, step: int) -> None:
    """Have no fault."""


class Spoiled(Replicas):
    """The leader's gradient goes wrong just before its update and before it is sent."""

    def _follow(self, optimizer: Any, *_: Any) -> None:
        if self.leading:
            self.guard.gradients.params[2].grad.add_(1)  # type: ignore[union-attr]
        super()._follow(optimizer)


def another_start(made: Groups) -> dict[str, Any] | None:
    """Let the replicas begin from weights that the standby has not loaded."""
    training, link = made
    if dist.get_rank() == STANDBY:
        _stand_by(link, None)
        return None
    guard = guarded(WEIGHTS, make=adamw, group=training, norm=True)
    with torch.no_grad():
        for param in guard.gradients.params:
            param.mul_(2)
    replicas = Replicas(guard, STANDBY, link)
    assert guard.update(backward(guard, 1)) is None
    weight_of(1, 1)(guard, 1)
    alarm = guard.check_weights()
    assert replicas.copies == 1
    replicas.close()
    return alarm


def everything() -> dict[str, Any]:
    made = groups([0, 1], STANDBY)
    found: dict[str, Any] = {"nothing": job(made, RING, nothing)}
    for rank in (0, 1):
        found[f"weights {rank}"] = job(made, WEIGHTS, weight_of(rank, 4))
        found[f"state {rank}"] = job(made, WEIGHTS, state_of(rank, 3))
        found[f"persistent {rank}"] = job(made, RING, nothing, compute_of(rank, 4))
        found[f"transient {rank}"] = job(made, RING, nothing, compute_of(rank, 4, calls=1))
    found["scaled weights"] = job(made, WEIGHTS, weight_of(1, 4), scaled=True)
    found["scaled compute"] = job(made, RING, nothing, compute_of(1, 4), scaled=True)
    found["skipped"] = skipped_step(made)
    found["another start"] = another_start(made)
    found["weights before an audit"] = job(made, RING, weight_of(1, 4))
    found["faulty standby"] = job(made, WEIGHTS, weight_of(1, 1), faulty_standby)
    found["spoiled"] = job(made, WEIGHTS, nothing, kind=Spoiled)
    found["after a wrong gradient"] = job(made, WEIGHTS, weight_of(1, 4), compute_of(0, 4))
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Give what both replicas found alike."""
    results = fleet.run(3, 1, everything, timeout_s=100)
    assert results[0] == results[1]
    first: dict[str, Any] = results[0]
    return first


def test_a_healthy_pair_has_no_alarm(found: dict[str, Any]) -> None:
    assert found["nothing"] is None


@pytest.mark.parametrize("rank", [0, 1])
def test_the_replica_whose_weights_changed_is_named(found: dict[str, Any], rank: int) -> None:
    alarm = found[f"weights {rank}"]
    assert (alarm["check"], alarm["step"], alarm["suspects"]) == ("weights", 6, [rank])
    assert alarm["suspect_window"] == [4, 6]
    assert alarm["standby"] == {"rank": STANDBY, "sound": True}
    own = {who: entry["own"] for who, entry in alarm["digests"].items()}
    assert own[str(STANDBY)] == own[str(1 - rank)] != own[str(rank)]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_replica_whose_optimizer_state_changed_is_named(
    found: dict[str, Any], rank: int
) -> None:
    alarm = found[f"state {rank}"]
    assert (alarm["check"], alarm["step"], alarm["suspects"]) == ("optimizer state", 3, [rank])
    assert alarm["suspect_window"] == [1, 3]
    assert alarm["standby"]["sound"]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_replica_that_computes_wrong_is_named(found: dict[str, Any], rank: int) -> None:
    alarm = found[f"persistent {rank}"]
    assert (alarm["check"], alarm["step"]) == ("compute", 4)
    assert sorted(alarm["mismatched_pairs"]) == [[0, 1], [1, 0]]
    assert alarm["culprits"] == []
    verdicts = {tuple(one["pair"]): (one["suspect"], one["kind"]) for one in alarm["verdicts"]}
    assert verdicts == {
        (rank, 1 - rank): (rank, "persistent"),
        (1 - rank, rank): (rank, "replayer computed wrong"),
    }
    assert {one["third"] for one in alarm["verdicts"]} == {STANDBY}


def test_gradients_that_a_scaler_scales_are_followed_and_replayed(found: dict[str, Any]) -> None:
    assert found["scaled weights"]["suspects"] == [1]
    kinds = {one["kind"]: one["suspect"] for one in found["scaled compute"]["verdicts"]}
    assert kinds == {"persistent": 1, "replayer computed wrong": 1}


def test_a_step_that_a_fused_optimizer_skips_leaves_the_standby_sound(
    found: dict[str, Any],
) -> None:
    alarm, copies = found["skipped"]
    assert alarm is None
    assert len(copies) == 7
    assert not any(copies)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_replica_that_computed_wrong_once_is_named(found: dict[str, Any], rank: int) -> None:
    alarm = found[f"transient {rank}"]
    assert alarm["mismatched_pairs"] == [[rank, 1 - rank]]
    assert [(one["suspect"], one["kind"]) for one in alarm["verdicts"]] == [(rank, "transient")]


def test_a_standby_that_begins_elsewhere_is_given_the_replicas_state(
    found: dict[str, Any],
) -> None:
    assert found["another start"]["suspects"] == [1]


def test_a_wrong_gradient_that_both_applied_hides_nothing_from_the_standby(
    found: dict[str, Any],
) -> None:
    assert found["after a wrong gradient"]["suspects"] == [1]


def test_replicas_that_computed_from_other_weights_are_told_apart_by_these(
    found: dict[str, Any],
) -> None:
    alarm = found["weights before an audit"]
    assert (alarm["check"], alarm["step"]) == ("compute", 6)
    assert alarm["suspects"] == [1]
    assert alarm["verdicts"] == alarm["culprits"] == []


@pytest.mark.parametrize(("case", "sound"), [("faulty standby", True), ("spoiled", False)])
def test_nobody_is_named_where_the_standby_cannot_know(
    found: dict[str, Any], case: str, sound: bool
) -> None:
    alarm = found[case]
    assert (alarm["check"], alarm["suspects"]) == ("weights", None)
    assert alarm["standby"]["sound"] is sound


@pytest.mark.parametrize(
    ("case", "rules"), [("weights 1", {"W1"}), ("persistent 1", {"R2", "R4"}), ("state 1", {None})]
)
def test_the_service_reads_what_the_standby_found(
    found: dict[str, Any], case: str, rules: set[Any]
) -> None:
    read = findings(read_alarm(found[case]))
    assert {one.rule for one in read} == rules
    if rules != {None}:
        assert {one.rank for one in read} == {1}
    said = [caution.code for one in read for caution in one.cautions]
    assert not any("digest" in code for code in said), said


def two_nodes() -> dict[str, Any] | None:
    """Train four replicas on two nodes with one at fault, a fifth rank standing by."""
    training, link = groups([0, 1, 2, 3], 4)
    if dist.get_rank() == 4:
        _stand_by(link, None)
        return None
    schedule = Schedule(audit_every=2, check_every=3, peer_offset=2)
    guard = guarded(schedule, make=adamw, group=training, norm=True)
    replicas = Replicas(guard, 4, link)
    fault = compute_of(3, 4)
    alarm = None
    for step in range(5):
        fault(guard, step)
        alarm = guard.update(backward(guard, step)) or guard.stop(replicas.passed(step))
    replicas.close()
    return alarm


def test_of_two_nodes_with_several_ranks_the_right_one_is_named() -> None:
    alarms = fleet.run(5, 2, two_nodes)
    assert all(alarm == alarms[0] for alarm in alarms[:4])
    alarm = alarms[0]
    assert alarm["step"] == 4
    assert sorted(alarm["mismatched_pairs"]) == [[1, 3], [3, 1]]
    verdicts = {tuple(one["pair"]): (one["suspect"], one["kind"]) for one in alarm["verdicts"]}
    assert verdicts == {(3, 1): (3, "persistent"), (1, 3): (3, "replayer computed wrong")}
    assert alarm["standby"] == {"rank": 4, "sound": True}


def one_replica() -> str:
    made = groups([0], 1)
    if dist.get_rank() == 0:
        return ""
    module = model()
    with pytest.raises(ValueError, match="two replicas or more") as caught:
        Standby(module, adamw(list(module.parameters())), loss_of, batch, made[1])
    return str(caught.value)


def test_one_replica_is_refused() -> None:
    said = "a standby serves two replicas or more, and the link has not as many"
    assert fleet.run(2, 1, one_replica)[1] == said
