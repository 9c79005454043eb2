"""What would a third GPU hold and compute, in a job of only two replicas or two nodes?

The standby is a process of the job that trains nothing: a spare node's, say. It applies the reduced
gradients of every step to weights of its own, so that it holds what the replicas should hold. When
two disagree about their weights it sides with one of them; when they disagree about a micro-batch,
it computes that one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from witness.ddp.beyond.at_rest import owned_params, state_tensors
from witness.ddp.beyond.link import (
    ASK,
    FOLLOW,
    REPLAY,
    STOP,
    SYNC,
    receive,
    receive_state,
    send,
)
from witness.ddp.determinism import deterministic
from witness.ddp.fingerprints import fingerprints, fold
from witness.ddp.replay import Work, replay

WEIGHTS, STATE = range(2)
"""Which of the two words that `digests` gives."""


class Standby:
    """Follows the replicas of a job and answers them until they are done.

    Built from what a replica and its guard are built from; it may load the same checkpoint, else it
    is given a copy of the replicas' state. It needs the memory of a replica, and computes an update
    a step.

    It takes nothing on one replica's word: gradients, hyperparameters and copies of the state count
    only where all say that they are what they hold. Where they do not, `sound` is False and it
    decides nothing until the next weight check at which all agree.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        compute_loss: Callable[[Any, Any], Tensor],
        rebuild_batch: Callable[[int, int], Any],
        link: dist.ProcessGroup,
        *,
        micro_batches: int = 1,
        seed: int | None = None,
    ) -> None:
        params = [param for param in module.parameters() if param.requires_grad]
        self.work = Work(
            module, params, compute_loss, rebuild_batch, micro_batches, group=link, seed=seed
        )
        self.optimizer, self.link = optimizer, link
        everybody = dist.get_process_group_ranks(link)
        self.replicas = [rank for rank in everybody if rank != dist.get_rank()]
        if len(self.replicas) < 2:
            raise ValueError("a standby serves two replicas or more, and the link has not as many")
        self.sound = False
        self.copies = 0

    def serve(self) -> None:
        """Wait for the replicas and answer them; returns when they are done."""
        leader = self.replicas[0]
        while True:
            command, step, option, count = receive(4, leader, self.link)
            if command == STOP:
                return
            if command == FOLLOW:
                self._follow(receive_state(leader, self.link))
            elif command == SYNC:
                self._sync()
            elif command == ASK:
                self._answer(digests(self.work.module, self.optimizer))
            elif command == REPLAY:
                self._answer(self._replay(step, bool(option), count))

    def _follow(self, step: dict[str, Any]) -> None:
        """Apply one step's reduced gradients, with the replicas' hyperparameters."""
        for group, given in zip(self.optimizer.param_groups, step["groups"], strict=True):
            group.update(given)
        for param, grad in zip(self.work.params, step["grads"], strict=True):
            param.grad = None if grad is None else grad.to(param.device)
        own = update_words(self.work.params, self.optimizer)
        self.sound = all(told == own for told in self._all_say()) and self.sound
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _sync(self) -> None:
        """Compare with all, which agree; where this one differs, take over their state."""
        told = self._all_say()
        own = digests(self.work.module, self.optimizer)
        self.sound = all(words == own for words in told)
        self._answer(own)
        if not self.sound:
            state = receive_state(self.replicas[0], self.link)
            self.work.module.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            own = digests(self.work.module, self.optimizer)
            self.sound = all(words == own for words in told)
            self.copies += 1

    def _replay(self, step: int, with_grads: bool, count: int) -> list[int]:
        """Compute some replicas' micro-batches from the standby's own weights; give digests."""
        targets = receive(count, self.replicas[0], self.link)
        self.work.remember_buffers()
        # Taken now, so that the replicas' values find their places.
        self.work.buffers.values()
        begun = [receive_state(rank, self.link) for rank in targets]
        scale = begun[0]["scale"]
        self.sound = self.sound and all(one["scale"] == scale for one in begun)
        self.work.scale = None if scale is None else lambda loss: loss * scale.to(loss.device)
        answers = []
        with deterministic() if with_grads else nullcontext():
            for rank, one in zip(targets, begun, strict=True):
                words = replay(self.work, step, rank, with_grads, buffers=one["buffers"])
                answers.append(int(fold(words)))
        return answers

    def _all_say(self) -> list[list[int]]:
        return [receive(2, rank, self.link) for rank in self.replicas]

    def _answer(self, words: list[int]) -> None:
        for rank in self.replicas:
            send([int(self.sound), *words], rank, self.link)


def digests(module: nn.Module, optimizer: torch.optim.Optimizer) -> list[int]:
    """Give two words that replicas share: one of the weights, one of weights and optimizer state.

    Buffers are left out, which may rightly differ.
    """
    weights: list[Tensor] = list(module.parameters())
    device = weights[0].device
    state = [
        tensor.to(device)
        for param in owned_params(optimizer)
        for tensor in state_tensors(optimizer.state.get(param, {}))
    ]
    table = fingerprints([*weights, *state])
    words: list[int] = torch.stack([fold(table[: len(weights)]), fold(table)]).tolist()
    return words


def update_words(params: Sequence[nn.Parameter], optimizer: torch.optim.Optimizer) -> list[int]:
    """Give two words of what an update reads beside the state: gradients and hyperparameters."""
    grads = fold(fingerprints([param.grad for param in params]))
    said = hashlib.sha256(repr(hyperparameters(optimizer)).encode()).digest()
    return [int(grads), int.from_bytes(said[:7], "big")]


def hyperparameters(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Give what the groups say beside their parameters, in the order of names."""
    return [
        {key: group[key] for key in sorted(group) if key != "params"}
        for group in optimizer.param_groups
    ]
