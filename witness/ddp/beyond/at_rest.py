"""Is optimizer state that only this rank holds still what its last write left?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from witness.ddp.fingerprints import fingerprints


class StateAtRest:
    """Fingerprints the state of an optimizer after a write, and again before the next read.

    `parts` lets the parameters take turns: a write is watched for 1 / `parts` of them, so that a
    change is seen with that chance, at that share of the cost. No collective, no host sync but in
    `changed`. Not seen: a change within the optimizer's own step, and a wrong value once written.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, parts: int = 1) -> None:
        if parts < 1:
            raise ValueError(f"parts must be at least 1, not {parts}")
        self.optimizer, self.parts = optimizer, parts
        self._turn = 0
        self._written: list[Tensor] | None = None

    def written(self, turn: int) -> None:
        """Note the state as it is now; `turn` chooses the part."""
        self._turn = turn % self.parts
        self._written = self._sums()

    def forget(self) -> None:
        """Expect nothing: the state was, or will be, replaced on purpose."""
        self._written = None

    def changed(self) -> Tensor:
        """Tell whether the state differs from what was written; False where nothing was noted."""
        if self._written is None:
            return torch.zeros((), dtype=torch.bool)
        now = self._sums()
        if [one.shape for one in now] != [one.shape for one in self._written]:
            return torch.ones((), dtype=torch.bool)
        differs = [
            (one != other).any()
            for one, other in zip(now, self._written, strict=True)
            if one.numel()
        ]
        device = differs[0].device if differs else torch.device("cpu")
        return torch.stack([one.to(device) for one in differs] or [torch.zeros(())]).any()

    def _sums(self) -> list[Tensor]:
        by_device: dict[torch.device, list[Tensor]] = {}
        for index, param in enumerate(owned_params(self.optimizer)):
            if index % self.parts == self._turn:
                for tensor in state_tensors(self.optimizer.state.get(param, {})):
                    by_device.setdefault(tensor.device, []).append(tensor)
        return [fingerprints(tensors) for tensors in by_device.values()]


def owned_params(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """List the parameters that an optimizer updates, in the order of its groups."""
    return [param for group in optimizer.param_groups for param in group["params"]]


def state_tensors(state: dict[str, Any]) -> Iterator[Tensor]:
    """Give the tensors of one parameter's state by name; counters that are plain numbers as well.

    Such a number may be wrong as any other value, and is read as one float64.
    """
    for key in sorted(state):
        value = state[key]
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, int | float):
            yield torch.tensor(float(value), dtype=torch.float64)
