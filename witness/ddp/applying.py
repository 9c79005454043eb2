"""How is a step that passed its checks applied?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from witness.ddp.deferred import CannotDeferError, DeferredFlag


@dataclass(frozen=True, slots=True)
class Update:
    """Clips, steps the optimizer, through the gradient scaler where there is one.

    `scaler` None, or one that is switched off, means gradients that are not scaled.
    """

    optimizer: torch.optim.Optimizer
    params: list[nn.Parameter]
    max_grad_norm: float | None
    scaler: Any = None

    def __post_init__(self) -> None:
        """Refuse an optimizer that computes the loss itself."""
        closure = inspect.signature(self.optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise TypeError(
                f"{type(self.optimizer).__name__} computes the loss again inside its step, where "
                "no check can stand: an optimizer whose step() needs no closure is needed"
            )

    @property
    def scaled(self) -> bool:
        """Tell whether gradients are scaled, so that the scaler skips what overflows."""
        return self.scaler is not None and bool(self.scaler.is_enabled())

    @property
    def scale(self) -> Callable[[Tensor], Tensor] | None:
        """Give what a loss goes through before backward; None for nothing."""
        scale: Callable[[Tensor], Tensor] | None = self.scaler.scale if self.scaled else None
        return scale

    def apply(self, norm: Tensor) -> None:
        """Apply the gradients, whose norm is given as they are now, and drop them."""
        if self.scaled:
            self.scaler.unscale_(self.optimizer)
            self.clip(norm / self.scaler.get_scale())
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.clip(norm)
            self.optimizer.step()
        self.drop()

    def drop(self) -> None:
        """Forget the gradients; weights and optimizer state stay as they are."""
        self.optimizer.zero_grad(set_to_none=True)

    def deferred(self) -> DeferredFlag:
        """Give what lets the device skip a step; raises `CannotDeferError` where it cannot."""
        if self.scaled:
            raise CannotDeferError("a gradient scaler waits for the host at every step anyway")
        return DeferredFlag(self.optimizer)

    def clip(self, norm: Tensor) -> None:
        """Clip the gradients, whose norm is given; nothing where no bound is set."""
        if self.max_grad_norm is not None:
            nn.utils.clip_grads_with_norm_(self.params, self.max_grad_norm, norm)
