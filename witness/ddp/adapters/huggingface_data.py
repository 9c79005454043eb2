"""Which examples does the Trainer give to any rank at any step?"""

from __future__ import annotations

from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler, SequentialSampler

try:
    from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
    from transformers import Trainer
except ImportError as missing:
    raise ImportError(
        "witness.ddp.adapters.huggingface_data needs transformers and accelerate"
    ) from missing


class SameDataset:
    """Rebuilds micro-batches from a map-style data set that every rank can read.

    `dataset[i]` and the collator must give the same for the same index on every rank, every time:
    no random augmentation, no random masking. Works for the Trainer's sequential order and for its
    default shuffling. Takes memory for one epoch's order, and the time to read the examples again.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._order: tuple[int, list[int]] | None = None

    def __call__(self, step: int, rank: int) -> list[Any]:
        """Give the micro-batches of a rank at a step, counted from 1 as the Trainer does."""
        loader: Any = self._trainer.callback_handler.train_dataloader
        shard = self.shard()
        accumulate = self._trainer.args.gradient_accumulation_steps
        epoch, update = divmod(step - 1, -(-len(loader) // accumulate))
        whole = shard.batch_sampler
        order = BatchSampler(self._indices(whole.sampler, epoch), whole.batch_size, whole.drop_last)
        mine = BatchSamplerShard(
            order, shard.num_processes, rank, shard.split_batches, shard.even_batches
        )
        chosen = islice(iter(mine), update * accumulate, (update + 1) * accumulate)
        return [loader.collate_fn([loader.dataset[i] for i in batch]) for batch in chosen]

    def shard(self) -> BatchSamplerShard:
        """Give the loader's sampler of batches; raises TypeError for one that is not known."""
        loader: Any = self._trainer.callback_handler.train_dataloader
        shard = getattr(loader, "batch_sampler", None)
        whole = getattr(shard, "batch_sampler", None)
        if type(shard) is not BatchSamplerShard or type(whole) is not BatchSampler:
            kinds = f"{type(shard).__name__} of {type(whole).__name__}"
            raise TypeError(f"batches of a {kinds} cannot be rebuilt: pass your own rebuild")
        if type(whole.sampler) not in (SequentialSampler, SeedableRandomSampler):
            raise TypeError(
                f"the order of a {type(whole.sampler).__name__} cannot be rebuilt: pass your own "
                "rebuild, or leave use_seedable_sampler on"
            )
        return shard

    def _indices(self, sampler: Any, epoch: int) -> list[int]:
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, self._drawn(sampler, epoch)
        return self._order[1]

    def _drawn(self, sampler: Any, epoch: int) -> list[int]:
        if isinstance(sampler, SequentialSampler):
            return list(sampler)
        again = SeedableRandomSampler(
            sampler.data_source,
            replacement=sampler.replacement,
            num_samples=sampler._num_samples,
        )
        again.initial_seed = sampler.initial_seed
        again.set_epoch(epoch)
        return list(again)
