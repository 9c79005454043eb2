"""Which examples does Lightning give to any rank at the step under way?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

try:
    from lightning.pytorch import Trainer
except ImportError as missing:
    raise ImportError("witness.ddp.adapters.lightning_data needs lightning") from missing


class SameDataset:
    """Rebuilds micro-batches from a map-style data set that every rank can read.

    For one `DataLoader` with the `DistributedSampler` that Lightning puts into it, or a like one
    of your own. `dataset[i]` and the collator must give the same for the same index on every rank,
    every time: no random augmentation, no random masking. Goes by the place in the epoch's order
    where the loop is now, because Lightning begins an epoch's data anew when it resumes in its
    middle. Takes memory for the order of each rank that it was asked for.
    """

    def __init__(self) -> None:
        self._trainer: Trainer | None = None
        self._span: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._epoch: int | None = None
        self._orders: dict[int, list[int]] = {}

    def follow(self, trainer: Trainer, span: Callable[[], tuple[int, int]]) -> None:
        """Go by a trainer; `span` gives the step's first batch in this epoch and their count.

        Raises TypeError for a loader or sampler that is not known.
        """
        self._trainer, self._span = trainer, span
        loader: Any = trainer.train_dataloader
        sampler = getattr(loader, "sampler", None)
        if not isinstance(loader, DataLoader) or type(sampler) is not DistributedSampler:
            kinds = f"{type(loader).__name__}, {type(sampler).__name__}"
            raise TypeError(f"the order of {kinds} cannot be rebuilt: pass your own rebuild")

    def __call__(self, step: int, rank: int) -> Any:
        """Give the micro-batches of a rank at the step under way: one, or a list of several."""
        assert self._trainer is not None
        loader: Any = self._trainer.train_dataloader
        order = self._order(loader.sampler, rank)
        batches = BatchSampler(order, loader.batch_size or 1, loader.drop_last)
        first, count = self._span()
        found = [
            loader.collate_fn([loader.dataset[place] for place in batch])
            for batch in islice(batches, first, first + count)
        ]
        return found if self._trainer.accumulate_grad_batches > 1 else found[0]

    def _order(self, sampler: DistributedSampler[Any], rank: int) -> list[int]:
        if self._epoch != sampler.epoch:
            self._epoch = sampler.epoch
            self._orders.clear()
        if rank not in self._orders:
            other = copy.copy(sampler)
            other.rank = rank
            self._orders[rank] = list(other)
        return self._orders[rank]
