"""Is a wrong sum of the all-reduce seen, and the rank named that made it, and nobody else?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from tests.witness_beyond.jobs import RANKS, backward, guarded, wrong_gradient
from witness.ddp.beyond.reducers import judge
from witness.ddp.beyond.reduction import OWNER, THIRD, WITNESS, WitnessedReduction
from witness.rules.alarm import read_alarm
from witness.rules.findings import findings
from witness.simulate import fleet

ROLES = {"owner": OWNER, "witness": WITNESS, "third": THIRD}


class Drill(WitnessedReduction):
    """Adds up wrongly in some roles: one element, by a little more than rounding."""

    roles: tuple[int, ...] = ()
    bit = 3

    def sum_inputs(self, role: int, inputs: Tensor) -> Tensor:
        total = super().sum_inputs(role, inputs)
        if role in self.roles and self.step >= 2:
            total[total.numel() // 2].view(torch.int32).bitwise_xor_(1 << self.bit)
        return total


def drill(rank: int, roles: tuple[int, ...], **options: Any) -> list[dict[str, Any] | None]:
    """Train four steps with `rank` at fault in these roles from step 2 on."""
    guard = guarded()
    reduction = Drill(guard.gradients, peer_offset=1, **options)
    reduction.roles = roles if dist.get_rank() == rank else ()
    alarms: list[dict[str, Any] | None] = []
    for step in range(4):
        reduction.before(step)
        loss = backward(guard, step)
        alarms.append(guard.stop(reduction.after()))
        if alarms[-1] is not None:
            break
        assert guard.update(loss) is None
    return alarms


def three_faults() -> dict[str, Any]:
    """Run the faults one after the other in one group of ranks: starting them costs most."""
    found: dict[str, Any] = {name: drill(1, (role,), slices=1) for name, role in ROLES.items()}
    found["all roles"] = drill(2, (OWNER, WITNESS, THIRD), slices=1)
    found["nothing"] = drill(1, (), slices=1)
    found["a slice of four"] = drill(1, (OWNER,), slices=4)
    found["every third step"] = drill(1, (OWNER,), slices=1, every=3)
    return found


def test_the_rank_that_added_up_wrong_is_named_in_whatever_role() -> None:
    results = fleet.run(RANKS, 1, three_faults)
    assert results[1] == results[0] == results[2]
    found = results[0]
    assert found["nothing"] == [None] * 4
    for name in ROLES:
        clean, last = found[name][:-1], found[name][-1]
        assert clean == [None, None]
        assert (last["check"], last["step"], last["suspects"]) == ("reduction", 2, [1])
        assert {(one["kind"], one["suspect"], one[name]) for one in last["reductions"]} == {
            ("sum", 1, 1)
        }
        assert last["suspect_window"] == [2, 2]
        assert last["update_applied"] is False
    assert read_alarm(found["witness"][-1]).suspects == (1,)
    assert [one.rule for one in findings(read_alarm(found["witness"][-1]))] == [None]
    everywhere = found["all roles"][-1]
    assert everywhere["suspects"] == [2]
    assert {one["kind"] for one in everywhere["reductions"]} == {"sum"}
    # Four slices take turns: the one with the wrong element comes at step 2, the middle one.
    assert found["a slice of four"][-1]["suspects"] == [1]
    assert found["a slice of four"][-1]["suspect_window"] == [0, 2]
    assert [one and one["step"] for one in found["every third step"]] == [None, None, None, 3]


def faults_elsewhere() -> dict[str, Any]:
    """Let a sender compute wrong, a NaN pass, a sum be sent on wrongly."""
    found: dict[str, Any] = {}
    for name, factor in (("finite", 1000.0), ("nan", float("nan"))):
        guard = guarded()
        reduction = WitnessedReduction(guard.gradients, peer_offset=1, slices=1)
        reduction.before(0)
        with wrong_gradient(guard.work.module, factor if dist.get_rank() == 1 else 1.0):
            loss = backward(guard, 0)
        found[name] = reduction.after()
        alarm = guard.update(loss)
        found[f"{name} guard"] = alarm and alarm.get("nonfinite")
    return found


def test_a_wrong_gradient_is_no_fault_of_those_who_add_it_up() -> None:
    for found in fleet.run(RANKS, 1, faults_elsewhere):
        assert found == {"finite": None, "finite guard": None, "nan": None, "nan guard": [1]}


def compared_with_the_library(dtype: torch.dtype) -> dict[str, Any]:
    watched, plain = guarded(dtype=dtype), guarded(dtype=dtype)
    reduction = WitnessedReduction(watched.gradients, peer_offset=1, slices=5)
    reduction.before(0)
    for guard in (watched, plain):
        backward(guard, 0)
    assert reduction.after() is None
    mine, library = (
        torch.cat([p.grad.flatten() for p in guard.gradients.params if p.grad is not None])
        for guard in (watched, plain)
    )
    everybody = [torch.empty_like(mine) for _ in range(RANKS)]
    dist.all_gather(everybody, mine)
    return {
        "equal on all ranks": all(torch.equal(one, mine) for one in everybody),
        "off by roundings": ((mine - library).abs().max() / library.abs().max()).item()
        / torch.finfo(dtype).eps,
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_mean_is_the_librarys_but_for_rounding_and_equal_on_all_ranks(
    dtype: torch.dtype,
) -> None:
    for found in fleet.run(RANKS, 1, compared_with_the_library, dtype):
        assert found["equal on all ranks"]
        assert found["off by roundings"] <= 2


def a_wrong_copy() -> dict[int, Any]:
    """Have rank 2 receive one sum otherwise than its owner made it: its own, or another's."""
    alarms: dict[int, Any] = {}
    for shard in (0, 2):
        guard = guarded()
        reduction = WitnessedReduction(guard.gradients, peer_offset=1, slices=1)
        reduction.before(0)
        backward(guard, 0)
        if dist.get_rank() == 2:
            reduction._kept[0].received[shard, 0] += 1
        alarms[shard] = reduction.after()
    guard = guarded()
    reduction = WitnessedReduction(guard.gradients, peer_offset=1)
    reduction.before(0)
    backward(guard, 0)
    if dist.get_rank() == 1:
        reduction._kept[0].wrong.fill_(True)
    alarms[-1] = reduction.after()
    return alarms


def test_a_rank_that_received_another_sum_or_compared_wrongly_is_named() -> None:
    for alarms in fleet.run(RANKS, 1, a_wrong_copy):
        compared = alarms.pop(-1)
        assert compared["suspects"] == [1]
        assert [one["kind"] for one in compared["reductions"]] == ["comparison"]
        for shard, alarm in alarms.items():
            (found,) = alarm["reductions"]
            assert (found["bucket"], found["owner"], found["kind"]) == (0, shard, "copy")
            assert alarm["suspects"] == [2]


def two_nodes() -> str:
    with pytest.raises(ValueError, match="three nodes") as caught:
        WitnessedReduction(guarded().gradients, peer_offset=1)
    return str(caught.value)


def test_two_nodes_are_refused() -> None:
    assert fleet.run(2, 1, two_nodes) == ["2 ranks, 1 a node, are not three nodes"] * 2


# Five ranks, one a node: the table as it would be gathered, with one row changed.
def table() -> Tensor:
    ranks = 5
    rows = torch.zeros(ranks, 5 * ranks + 3, 2, dtype=torch.int64)
    for me in range(ranks):
        for other in range(ranks):
            rows[me, other] = 100 * me + other  # given to the shard of `other`
            for role in range(3):
                shard = (me - role) % ranks
                rows[me, (1 + role) * ranks + other] = 100 * other + shard
            rows[me, 4 * ranks + 3 + other] = 7000 + other
        for role in range(3):
            rows[me, 4 * ranks + role] = 7000 + (me - role) % ranks
    return rows


def test_a_clean_table_names_nobody() -> None:
    assert judge(table(), 1) == []


def test_three_different_sums_name_nobody() -> None:
    rows = table()
    rows[2, 20], rows[3, 21] = 1, 2
    kinds = [(one["kind"], one["owner"], one["suspect"]) for one in judge(rows, 1)]
    assert ("sum", 2, None) in kinds
    assert all(suspect in (None, 2) for _, _, suspect in kinds)


def test_a_wrong_copy_of_an_input_names_nobody_but_where() -> None:
    rows = table()
    rows[4, 2 * 5 + 0] = 1  # rank 4, witness of rank 3's shard, took rank 0's part wrongly
    assert judge(rows, 1) == [
        {
            "owner": 3, "witness": 4, "third": 0,
            "kind": "input", "sender": 0, "receiver": 4, "suspect": None,
        }
    ]  # fmt: skip


def test_a_sender_whose_three_receivers_agree_against_it_is_named() -> None:
    rows = table()
    rows[0, 3] = 1
    (found,) = judge(rows, 1)
    assert (found["kind"], found["sender"], found["suspect"]) == ("input", 0, 0)


@pytest.mark.parametrize(
    ("holders", "same", "suspect"),
    [
        ((1,), True, [1]),
        ((0, 1), True, [0, 1]),
        ((0, 1, 3, 4), True, [2]),
        ((0, 1, 3), False, [None]),
    ],
)
def test_a_wrong_copy_of_a_sum(holders: tuple[int, ...], same: bool, suspect: list[Any]) -> None:
    rows = table()
    for number, holder in enumerate(holders):
        rows[holder, 23 + 2] = 1 if same else number
    assert [(one["kind"], one["suspect"]) for one in judge(rows, 1)] == [
        ("copy", one) for one in suspect
    ]
