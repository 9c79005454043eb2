"""What does an optimizer make of one parameter, computed again beside the job?"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from witness.ddp.beyond.at_rest import state_tensors
from witness.ddp.fingerprints import fingerprints, fold

Layout = list[tuple[str, Any, Any, bool]]
"""A state's entries: name, dtype and shape of a tensor (or a plain value and None), on the CPU."""


@dataclass(slots=True)
class Before:
    """One parameter just before its update: value, gradient, state; all this rank's own copies."""

    value: Tensor
    grad: Tensor | None
    state: dict[str, Any]

    def digest(self) -> Tensor:
        """Mix everything that the update reads into one word."""
        return _digest([self.value, self.grad, *state_tensors(self.state)], self.value.device)


def digest_after(param: Tensor, state: dict[str, Any]) -> Tensor:
    """Mix everything that an update has written into one word."""
    return _digest([param, *state_tensors(state)], param.device)


@torch.no_grad()
def replay_update(
    optimizer: torch.optim.Optimizer, group: dict[str, Any], before: Before
) -> Tensor:
    """Apply one update with the optimizer's own code on copies; give the digest of the outcome.

    `group` gives the hyperparameters. The optimizer must treat each parameter by itself: what mixes
    parameters (a norm over all, say) comes out differently here.
    """
    param = nn.Parameter(before.value.clone(), requires_grad=True)
    param.grad = None if before.grad is None else before.grad.clone()
    again = _like(optimizer)
    again.param_groups = [{**group, "params": [param]}]
    again.state = defaultdict(dict)
    if before.state:
        again.state[param] = {
            key: value.clone() if isinstance(value, Tensor) else value
            for key, value in before.state.items()
        }
    again.step()
    return digest_after(param, again.state.get(param, {}))


def _like(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Make an optimizer of the same class and flags that shares no state and calls no hooks."""
    again: torch.optim.Optimizer = object.__new__(type(optimizer))
    again.__dict__.update(optimizer.__dict__)
    for hooks in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
        setattr(again, hooks, OrderedDict())
    return again


def layout_of(state: dict[str, Any]) -> Layout:
    """Describe a state, so that another rank can read it from bytes."""
    return [
        (key, value.dtype, tuple(value.shape), value.device.type == "cpu")
        if isinstance(value, Tensor)
        else (key, value, None, True)
        for key, value in sorted(state.items())
    ]


def pack(state: dict[str, Any], device: torch.device) -> Tensor:
    """Lay the state's tensors end to end as bytes on a device."""
    parts = [
        value.detach().contiguous().view(-1).view(torch.uint8).to(device)
        for _, value in sorted(state.items())
        if isinstance(value, Tensor)
    ]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8, device=device)


def packed_bytes(layout: Layout) -> int:
    """Count the bytes of a packed state."""
    return sum(
        torch.Size(shape).numel() * dtype.itemsize for _, dtype, shape, _ in _tensors(layout)
    )


def unpack(packed: Tensor, layout: Layout) -> dict[str, Any]:
    """Read a state back from bytes."""
    state: dict[str, Any] = {key: value for key, value, shape, _ in layout if shape is None}
    begin = 0
    for key, dtype, shape, on_cpu in _tensors(layout):
        end = begin + torch.Size(shape).numel() * dtype.itemsize
        # A copy begins at an address that any dtype may have.
        tensor = packed[begin:end].clone().view(dtype).view(shape)
        state[key] = tensor.cpu() if on_cpu else tensor
        begin = end
    return state


def _tensors(layout: Layout) -> Layout:
    return [entry for entry in layout if entry[2] is not None]


def _digest(tensors: list[Tensor | None], device: torch.device) -> Tensor:
    near = [None if one is None else one.detach().to(device) for one in tensors]
    return fold(fingerprints(near))
