"""How do replicas and their standby talk, whatever the training itself runs on?"""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

STOP, FOLLOW, SYNC, ASK, REPLAY = range(5)
WAIT = datetime.timedelta(days=365)
"""A standby may hear nothing for as long as the job goes well."""


def groups(replicas: Sequence[int], standby: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """Make the group that trains and the link to the standby; every rank of the job must call it.

    Takes global ranks. The link is gloo, over main memory: a waiting standby keeps no GPU busy.
    """
    training: Any = dist.new_group(list(replicas))
    link: Any = dist.new_group([*replicas, standby], backend="gloo", timeout=WAIT)
    return training, link


def send(words: Sequence[int], to: int, link: dist.ProcessGroup) -> None:
    """Send a few numbers to a global rank, which must know how many."""
    dist.send(torch.tensor(words, dtype=torch.int64), to, group=link)


def receive(count: int, source: int, link: dist.ProcessGroup) -> list[int]:
    """Wait for so many numbers from a global rank."""
    words = torch.zeros(count, dtype=torch.int64)
    dist.recv(words, source, group=link)
    came: list[int] = words.tolist()
    return came


def send_state(state: Any, to: int, link: dist.ProcessGroup) -> None:
    """Send state dictionaries, through main memory."""
    file = io.BytesIO()
    torch.save(state, file)
    raw = torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    send([raw.numel()], to, link)
    dist.send(raw, to, group=link)


def receive_state(source: int, link: dist.ProcessGroup) -> Any:
    """Wait for state dictionaries; they arrive in main memory."""
    (size,) = receive(1, source, link)
    raw: Tensor = torch.empty(size, dtype=torch.uint8)
    dist.recv(raw, source, group=link)
    return torch.load(io.BytesIO(raw.numpy().tobytes()), map_location="cpu", weights_only=True)
