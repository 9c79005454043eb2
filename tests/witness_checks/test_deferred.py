"""Does the device skip exactly the flagged step, and does the host learn of it a step later?"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from witness.ddp.deferred import CannotDeferError, DeferredFlag, Pending

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
FUSED: dict[str, Make] = {
    "AdamW": lambda params: torch.optim.AdamW(params, lr=0.1, fused=True),
    "Adam": lambda params: torch.optim.Adam(params, lr=0.1, amsgrad=True, fused=True),
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, fused=True),
    "plain SGD": lambda params: torch.optim.SGD(params, lr=0.1, fused=True),
}
NOT: dict[str, Make] = {
    "AdamW": lambda params: torch.optim.AdamW(params, fused=False),
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1),
    "RMSprop": torch.optim.RMSprop,
}


def flag(value: int) -> Tensor:
    return torch.tensor([value], dtype=torch.int32)


def pending(step: int) -> Pending:
    return Pending(step, torch.tensor(1.0), torch.tensor(1.0))


class Steps:
    """Two parameters under an optimizer, with fixed gradients for every step."""

    def __init__(self, make: Make) -> None:
        self.params = [nn.Parameter(torch.ones(5)), nn.Parameter(torch.full((2, 3), 2.0))]
        self.optimizer = make(self.params)

    def gradients(self, step: int, *, broken: bool = False) -> None:
        for place, param in enumerate(self.params):
            param.grad = torch.full_like(param, 0.5 + step + place)
            if broken:
                param.grad[0] = float("nan")

    def state(self) -> tuple[object, ...]:
        return copy.deepcopy((self.params, self.optimizer.state_dict()["state"]))


def same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("name", FUSED)
def test_healthy_steps_are_those_of_the_bare_optimizer(name: str) -> None:
    bare, deferred = Steps(FUSED[name]), Steps(FUSED[name])
    waits = DeferredFlag(deferred.optimizer)
    for step in range(3):
        bare.gradients(step)
        bare.optimizer.step()
        deferred.gradients(step)
        waits.step(flag(0), pending(step))
        assert waits.read() is None
    assert same(bare.state(), deferred.state())
    assert not hasattr(deferred.optimizer, "found_inf")


@pytest.mark.parametrize("name", FUSED)
def test_a_flagged_step_leaves_everything_as_it_was(name: str) -> None:
    steps = Steps(FUSED[name])
    waits = DeferredFlag(steps.optimizer)
    steps.gradients(0)
    waits.step(flag(0), pending(0))
    assert waits.read() is None
    before = steps.state()
    steps.gradients(1, broken=True)
    waits.step(flag(1), pending(1))
    assert same(steps.state(), before)
    late = waits.read()
    assert late is not None
    assert late.step == 1
    assert waits.read() is None


@pytest.mark.parametrize("name", NOT)
def test_an_optimizer_that_cannot_skip_is_refused(name: str) -> None:
    with pytest.raises(CannotDeferError, match="fused=True"):
        DeferredFlag(NOT[name]([nn.Parameter(torch.ones(2))]))


def test_two_flags_are_never_pending() -> None:
    steps = Steps(FUSED["AdamW"])
    waits = DeferredFlag(steps.optimizer)
    assert waits.read() is None
    steps.gradients(0)
    waits.step(flag(0), pending(0))
    with pytest.raises(RuntimeError, match="step 0 has not been read"):
        waits.step(flag(0), pending(1))
