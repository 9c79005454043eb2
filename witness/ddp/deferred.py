"""How does the host learn a step later what the device already acted on?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class CannotDeferError(ValueError):
    """The optimizer cannot skip a step by itself."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A step whose flag the host has not read: what is needed if it turns out to be set.

    `own` and `reduced` are the step's gradient norms, `losses` its losses, `buffers` those it began
    with.
    """

    step: int
    own: Tensor
    reduced: Tensor
    losses: tuple[Tensor, ...] = ()
    buffers: Any = None


class DeferredFlag:
    """Lets the device skip an update by itself, so that no step waits for the host.

    The optimizer must have been made with `fused=True` (Adam, AdamW, SGD, Adagrad): it then reads
    `found_inf` on the device and leaves weights, state and its step counter as they are where that
    is set. The host reads the flag of step t after it has queued the work of step t + 1: the alarm
    belongs to step t, and the weights are those before its update.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        """Raise `CannotDeferError` unless the optimizer skips by `found_inf`."""
        fused = all(group.get("fused") for group in optimizer.param_groups)
        if not fused or not getattr(optimizer, "_step_supports_amp_scaling", False):
            raise CannotDeferError(
                f"{type(optimizer).__name__} cannot skip a step on the device: make it with "
                "fused=True, or leave deferral off"
            )
        self._optimizer = optimizer
        self._pending: Pending | None = None
        self._host: Tensor | None = None
        self._copied: Any = None

    def step(self, flag: Tensor, pending: Pending) -> None:
        """Step the optimizer, which skips where the agreed flag is set; keep the flag for later.

        `flag` is int32 [1] on the device, as `nonfinite.flag` gives it. Clip before. Nothing here
        waits for the device. The flag before this one must have been read.
        """
        if self._pending is not None:
            raise RuntimeError(f"the flag of step {self._pending.step} has not been read")
        self._optimizer.found_inf = flag.to(torch.float32).reshape(())  # type: ignore[attr-defined]
        try:
            self._optimizer.step()
        finally:
            del self._optimizer.found_inf  # type: ignore[attr-defined]
        self._pending = pending
        self._start_copy(flag)

    def read(self) -> Pending | None:
        """Give the step whose update the device skipped, None where it was applied.

        Waits until the device has agreed on that flag, which lies a step back. Equal on every rank.
        """
        pending, self._pending = self._pending, None
        if pending is None or self._host is None:
            return None
        if self._copied is not None:
            self._copied.synchronize()
        return pending if bool(self._host.item()) else None

    def _start_copy(self, flag: Tensor) -> None:
        if flag.device.type != "cuda":
            self._host, self._copied = flag, None
            return
        if self._host is None:
            self._host = torch.empty(1, dtype=flag.dtype, pin_memory=True)
        self._host.copy_(flag, non_blocking=True)
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied.record()
