"""Does an armed fault fire where, when and as often as it says, and never after it is disarmed?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from witness.inject import Fault, Injector

DOWN = Fault.on(rank=1, layer="1")
STEP = 5


@pytest.fixture
def model() -> Iterator[nn.Sequential]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    clean = sum(len(m._forward_hooks) for m in model.modules())
    yield model
    assert sum(len(m._forward_hooks) for m in model.modules()) == clean
    assert not any(p._backward_hooks for p in model.parameters())


X = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])


def weights_of(model: nn.Module) -> Tensor:
    return model.get_submodule("1").get_parameter("weight")


def gradients(model: nn.Module, by_grad: bool = False) -> list[Tensor]:
    if by_grad:
        return list(torch.autograd.grad(model(X).sum(), list(model.parameters())))
    model.zero_grad()
    model(X).sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_an_output_is_wrong_forward_and_its_gradient_goes_straight_through(
    model: nn.Sequential,
) -> None:
    right, slope = model(X).detach(), gradients(model)
    with Injector(model, rank=1).arm(DOWN.multiply(10).since(STEP)) as injector:
        injector.begin(STEP)
        wrong = model(X)
        assert wrong[0, 0] == right[0, 0] * 10
        assert torch.equal(wrong.flatten()[1:], right.flatten()[1:])
        # The sum's slope does not depend on the outputs, so it stays what it was.
        assert all(torch.equal(*pair) for pair in zip(gradients(model), slope, strict=True))
    assert torch.equal(model(X), right)


@pytest.mark.parametrize("by_grad", [False, True])
def test_a_fault_of_the_gradient_into_a_layer_leaves_the_forward_right(
    model: nn.Sequential, by_grad: bool
) -> None:
    right, slopes = model(X), gradients(model)
    with Injector(model, rank=1).arm(DOWN.multiply(10).in_gradient().since(STEP)) as injector:
        injector.begin(STEP)
        assert torch.equal(model(X), right)
        wrong = gradients(model, by_grad)
    assert not any(torch.equal(*pair) for pair in zip(wrong, slopes, strict=True))


@pytest.mark.parametrize("by_grad", [False, True])
def test_a_fault_of_a_weight_gradient_hits_that_gradient_alone(
    model: nn.Sequential, by_grad: bool
) -> None:
    slopes = gradients(model)
    fault = DOWN.multiply(10, element=3).in_weight_gradient().since(STEP)
    with Injector(model, rank=1).arm(fault) as injector:
        injector.begin(STEP)
        wrong = gradients(model, by_grad)
    same = [torch.equal(*pair) for pair in zip(wrong, slopes, strict=True)]
    assert same == [True, True, False, True]
    assert wrong[2].flatten()[3] == slopes[2].flatten()[3] * 10


def test_a_single_fault_fires_once_and_a_persistent_one_in_every_computation(
    model: nn.Sequential,
) -> None:
    right = model(X)
    with Injector(model, 1).arm(DOWN.multiply().once(STEP)) as injector:
        seen = []
        for step in range(STEP - 1, STEP + 2):
            injector.begin(step)
            seen += [torch.equal(model(X), right) for _ in range(2)]
        assert seen == [True, True, False, True, True, True]
        assert [step for step, _ in injector.fired] == [STEP]
    with Injector(model, 1).arm(DOWN.multiply().since(STEP)) as injector:
        injector.begin(STEP - 1)
        assert torch.equal(model(X), right)
        injector.begin(STEP + 3)
        wrong = model(X)
        assert not torch.equal(wrong, right)
        assert torch.equal(model(X), wrong)


def test_a_fault_that_shows_sometimes_does(model: nn.Sequential) -> None:
    with Injector(model, 1).arm(DOWN.multiply().since(0).sometimes(0.25, seed=3)) as injector:
        injector.begin(0)
        for _ in range(400):
            model(X)
        assert 60 < len(injector.fired) < 140


def test_nothing_fires_on_another_rank_or_before_a_step_is_said(model: nn.Sequential) -> None:
    right = model(X)
    with Injector(model, rank=0).arm(DOWN.multiply().since(0)) as injector:
        injector.begin(3)
        assert torch.equal(model(X), right)
    with Injector(model, rank=1).arm(DOWN.multiply().since(0)):
        assert torch.equal(model(X), right)


def test_weights_are_hit_right_after_the_update_of_their_step(model: nn.Sequential) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    fault = DOWN.flip(22, element=3).in_weights().once(STEP)
    before = [p.detach().clone() for p in model.parameters()]
    with Injector(model, 1, optimizer).arm(fault) as injector:
        for step, batch in enumerate(injector.over([X] * 3, STEP - 1), STEP - 1):
            model(batch).sum().backward()
            optimizer.step()
            after = [p.detach() for p in model.parameters()]
            same = [torch.equal(*pair) for pair in zip(after, before, strict=True)]
            assert same == [True, True, step < STEP, True]
    assert len(injector.fired) == 1


def test_without_an_optimizer_the_caller_says_when_the_update_was(model: nn.Sequential) -> None:
    before = weights_of(model).detach().clone()
    with Injector(model, 1).arm(DOWN.swap().in_weights().once(STEP)) as injector:
        injector.after_update(STEP - 1)
        assert torch.equal(weights_of(model), before)
        injector.after_update(STEP)
    assert not torch.equal(weights_of(model), before)


def test_an_optimizer_is_let_go(model: nn.Sequential) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    before = weights_of(model).detach().clone()
    injector = Injector(model, 1, optimizer).arm(DOWN.multiply().in_weights().since(0))
    injector.begin(0)
    injector.disarm()
    model(X).sum().backward()
    optimizer.step()
    assert torch.equal(weights_of(model), before)


def test_a_layer_that_is_not_there_is_an_error_on_every_rank(model: nn.Sequential) -> None:
    for rank in (0, 1):
        with pytest.raises(AttributeError):
            Injector(model, rank).arm(Fault.on(1, "blocks.9.down"))


def test_a_layer_that_gives_several_tensors_is_hit_in_its_first() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, str]:
            return x * 2, "kept"

    model = nn.Sequential(Two())
    with Injector(model, 0).arm(Fault.on(0, "0").nan().since(0)) as injector:
        injector.begin(0)
        first, second = model(torch.ones(3))
    assert (first.isnan().tolist(), second) == ([True, False, False], "kept")
