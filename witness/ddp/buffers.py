"""With which buffers did a step begin, so that its replay can begin with the same?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from witness.ddp.fingerprints import fingerprints, fold

Values = Sequence[Tensor | None]
"""One value a buffer, in the order of the module's tree; None where a buffer holds nothing."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A copy of one buffer; `version` is None for a tensor that does not count its writes."""

    module: nn.Module
    name: str
    buffer: Tensor | None
    version: int | None
    value: Tensor | None

    def still_is(self, buffer: Tensor | None) -> bool:
        """Tell whether the buffer has certainly not been written since it was kept."""
        if buffer is None or buffer is not self.buffer:
            return False
        return self.version is not None and self.version == _version(buffer)


class StepBuffers:
    """Copies of a module's buffers, taken when the first forward of a step begins.

    That is after DDP has broadcast them. A buffer is copied again only when it was written, so
    that constant ones cost one copy altogether. Buffers may be None, not persistent, shared, put
    in anew or change their shape.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._holders: list[nn.Module] | None = None
        self._kept: list[_Kept] = []
        self._due = True
        # A method, so that a copy of the module watches itself, and a saved module can be loaded.
        module.register_forward_pre_hook(self._before_forward)

    def remember(self) -> None:
        """Copy the buffers when the next forward begins."""
        self._due = True

    def values(self) -> Values:
        """Give what the step began with."""
        self._take()
        return [kept.value for kept in self._kept]

    def go_back(self, values: Values) -> None:
        """Take an earlier step's values for those that replays begin with, until the next step."""
        self._due = False
        self._kept = [
            _Kept(kept.module, kept.name, kept.buffer, None, value)
            for kept, value in zip(self._kept, values, strict=True)
        ]

    def digest(self, device: torch.device) -> Tensor:
        """Give one word for all of it, 0-d int64 on the device."""
        values = [None if value is None else value.to(device) for value in self.values()]
        if not values:
            return torch.zeros((), dtype=torch.int64, device=device)
        return fold(fingerprints(values)).to(device)

    @contextmanager
    def swapped(self, values: Values | None = None) -> Iterator[None]:
        """Let the module work on copies of what the step, or another rank's, began with.

        The module's own buffers are neither read nor written meanwhile, and are back afterwards.
        """
        values = self.values() if values is None else values
        before = [
            (module, dict(module._buffers), set(module._non_persistent_buffers_set))
            for module in self._module.modules()
        ]
        try:
            self._put_in(values)
            yield
        finally:
            for module, buffers, transient in before:
                module._buffers.clear()
                module._buffers.update(buffers)
                module._non_persistent_buffers_set = transient
            # A buffer that came after the first step is seen from here on.
            self._holders = None

    def _put_in(self, values: Values) -> None:
        copies: dict[int, Tensor] = {}
        at_start = {
            (id(kept.module), kept.name): value
            for kept, value in zip(self._kept, values, strict=True)
        }
        for module in self._module.modules():
            for name, own in module._buffers.items():
                value = at_start.get((id(module), name), own)
                if value is None:
                    module._buffers[name] = None
                    continue
                # What two modules share stays shared.
                key = id(value if own is None else own)
                if key not in copies:
                    device = value.device if own is None else own.device
                    copies[key] = value.detach().to(device, copy=True)
                module._buffers[name] = copies[key]

    # Not for the compiler to trace: it copies, and only once a step.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _before_forward(self, module: nn.Module, args: Any) -> None:
        self._take()

    @torch.no_grad()
    def _take(self) -> None:
        if not self._due:
            return
        self._due = False
        if self._holders is None:
            self._holders = [module for module in self._module.modules() if module._buffers]
        old = {(id(kept.module), kept.name): kept for kept in self._kept}
        self._kept = [
            _keep(module, name, buffer, old.get((id(module), name)))
            for module in self._holders
            for name, buffer in module._buffers.items()
        ]


def _keep(module: nn.Module, name: str, buffer: Tensor | None, old: _Kept | None) -> _Kept:
    if old is not None and old.still_is(buffer):
        return old
    value = None if buffer is None else buffer.detach().clone()
    return _Kept(module, name, buffer, None if buffer is None else _version(buffer), value)


def _version(buffer: Tensor) -> int | None:
    return None if buffer.is_inference() else buffer._version
