"""What were this rank's own gradients, before the all-reduce mixed them?"""

# No postponed annotations here: DDP reads those of the hook when it is registered.
from collections.abc import Callable
from typing import Self, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.fingerprints import fingerprints


class LocalGradients:
    """A communication hook that looks at each bucket, then hands it to the usual all-reduce.

    It keeps a norm a bucket and, on steps that record, fingerprints a parameter. With gradient
    accumulation the hook runs on the last micro-batch, when a bucket holds the accumulated sum.
    """

    def __init__(self, params: list[torch.nn.Parameter], group: dist.ProcessGroup | None) -> None:
        self.group = group if group is not None else dist.group.WORLD
        self._rows = {param: row for row, param in enumerate(params)}
        self._norms: list[Tensor] = []
        self._table: Tensor | None = None
        self._params = params
        # What sums a bucket over the ranks once it was seen; `beyond.reduction` puts its own here.
        self.reduce: Callable[[dist.ProcessGroup, GradBucket], torch.futures.Future[Tensor]] = (
            allreduce_hook
        )

    @classmethod
    def attach(cls, model: DistributedDataParallel, group: dist.ProcessGroup | None = None) -> Self:
        """Register the hook on a DDP model, once; every rank must do so before its first step."""
        params = [param for param in model.module.parameters() if param.requires_grad]
        gradients = cls(params, group if group is not None else model.process_group)
        model.register_comm_hook(state=gradients, hook=_hook)
        return gradients

    @property
    def params(self) -> list[torch.nn.Parameter]:
        """Give the trained parameters in the order of the fingerprints' rows."""
        return self._params

    def reset(self, record: bool) -> None:
        """Forget the last step; `record` asks for fingerprints on the coming one."""
        self._norms.clear()
        self._table = None
        if record:
            device = self._params[0].device
            self._table = torch.zeros(len(self._params), 2, dtype=torch.int64, device=device)

    def see(self, bucket: GradBucket) -> None:
        """Note one bucket before it is reduced in place."""
        buffer = bucket.buffer()
        wide = torch.float64 if buffer.dtype == torch.float64 else torch.float32
        self._norms.append(torch.linalg.vector_norm(buffer, dtype=wide))
        if self._table is not None:
            rows = [self._rows[param] for param in bucket.parameters()]
            self._table[rows] = fingerprints(bucket.gradients())

    def norm(self) -> Tensor:
        """Give the norm of this rank's own gradient, a scalar; 0 where no bucket came."""
        if not self._norms:
            return torch.zeros((), device=self._params[0].device)
        norm: Tensor = torch.linalg.vector_norm(torch.stack(self._norms))
        return norm

    def fingerprints(self) -> Tensor:
        """Give one row of two sums a parameter; raises RuntimeError on a step that did not record.

        A parameter without a gradient has a row of zeros, as its replay has.
        """
        if self._table is None:
            raise RuntimeError("this step was not recorded: reset(record=True) comes before it")
        return self._table


def _hook(state: LocalGradients, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    # The second parameter must be named `bucket`: DDP looks it up by name.
    state.see(bucket)
    return state.reduce(cast("dist.ProcessGroup", state.group), bucket)
