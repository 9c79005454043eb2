"""How does an armed fault get into the computation of one rank, and out again?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from witness.inject.fault import Fault
from witness.inject.modes import corrupted
from witness.inject.reduction import faulty_reduction

Batch = TypeVar("Batch")


class Injector:
    """Arms faults in the model of one rank.

    `model` may be wrapped by DDP. Give the `optimizer` where faults hit the weights: they strike
    right after its `step`, before anything else looks. Every rank builds one and arms the same
    faults; each fires on its own rank only (`reduced` on all, as a faulty reducer's result does).
    Persistent faults hit every computation of the rank, replays of other ranks' work included,
    each time with the same wrong answer; single ones fire once.
    """

    def __init__(
        self, model: nn.Module, rank: int, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        self.model = model.module if isinstance(model, DistributedDataParallel) else model
        self.rank, self.optimizer = rank, optimizer
        self.step: int | None = None
        self.fired: list[tuple[int, Fault]] = []
        self._strikes: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []

    def arm(self, *faults: Fault) -> Self:
        """Put faults in place; each waits for its step. An unknown layer raises AttributeError."""
        for fault in faults:
            self._arm(fault)
        return self

    def begin(self, step: int) -> None:
        """Say which step comes; before the first call nothing fires."""
        self.step = step

    def over(self, batches: Iterable[Batch], start_step: int = 0) -> Iterator[Batch]:
        """Pass batches on and say `begin` for each: for a loop that one does not write oneself."""
        for step, batch in enumerate(batches, start_step):
            self.begin(step)
            yield batch

    def after_update(self, step: int) -> None:
        """Strike the weights as after this step's update; the optimizer calls it where given."""
        self.step = step
        for strike in self._strikes:
            strike()

    def disarm(self) -> None:
        """Take every fault out; what one wrote into weights stays there."""
        while self._undo:
            self._undo.pop()()
        self.step = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.disarm()

    def _arm(self, fault: Fault) -> None:
        if fault.place in ("contribution", "reduced"):
            self._hold(faulty_reduction(fault, self.rank, self._trigger(fault)))
            return
        layer = self.model.get_submodule(fault.layer)
        if fault.rank != self.rank:
            return
        fires = self._trigger(fault)
        if fault.place in ("output", "gradient"):
            hook = _output_hook if fault.place == "output" else _gradient_hook
            self._undo.append(layer.register_forward_hook(hook(fault, fires)).remove)
            return
        parameter = layer.get_parameter(fault.parameter)
        if fault.place == "weight gradient":
            handle = parameter.register_hook(_changing(fault, fires))
            self._undo.append(handle.remove)
        else:
            self._arm_weights(parameter, fault, fires)

    def _arm_weights(self, weights: Tensor, fault: Fault, fires: Callable[[], bool]) -> None:
        def strike(*_: Any) -> None:
            if fires():
                with torch.no_grad():
                    weights.copy_(corrupted(weights, fault))

        self._strikes.append(strike)
        self._undo.append(lambda: self._strikes.remove(strike))
        if self.optimizer is not None:
            self._undo.append(self.optimizer.register_step_post_hook(strike).remove)

    def _hold(self, context: AbstractContextManager[None]) -> None:
        held = ExitStack()
        held.enter_context(context)
        self._undo.append(held.close)

    def _trigger(self, fault: Fault) -> Callable[[], bool]:
        """Give a function that is asked at each chance, and notes when the fault fires."""
        chance = random.Random(fault.seed)  # noqa: S311 drill, not secret
        spent = False

        def fires() -> bool:
            nonlocal spent
            if self.step is None or spent or not fault.due(self.step):
                return False
            if fault.share < 1 and chance.random() >= fault.share:
                return False
            spent = fault.single
            self.fired.append((self.step, fault))
            return True

        return fires


class _Faulty(torch.autograd.Function):
    """Another value forward, the same gradient back: the wrong value is an error, not a formula."""

    @staticmethod
    def forward(ctx: Any, right: Tensor, fault: Fault) -> Tensor:
        return corrupted(right, fault)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def _output_hook(fault: Fault, fires: Callable[[], bool]) -> Callable[..., Any]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        if not fires():
            return None
        wrong = _Faulty.apply(first, fault)  # type: ignore[no-untyped-call]
        return (wrong, *output[1:]) if isinstance(output, tuple) else wrong

    return hook


def _gradient_hook(fault: Fault, fires: Callable[[], bool]) -> Callable[..., Any]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if first.requires_grad:
            first.register_hook(_changing(fault, fires))

    return hook


def _changing(fault: Fault, fires: Callable[[], bool]) -> Callable[[Tensor], Tensor]:
    # A hook on a leaf runs for `backward` and for `autograd.grad` alike.
    return lambda gradient: corrupted(gradient, fault) if fires() else gradient
