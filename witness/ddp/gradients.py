"""What were this rank's own gradients, before the all-reduce mixed them?"""

# No postponed annotations here: DDP reads those of the hook when it is registered.
from collections.abc import Callable
from typing import Self, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from witness.ddp.fingerprints import fingerprints, path

VERSION = 2
"""Of gradients' fingerprints: three sums, so that regular patterns of equal flips are seen too."""

COLUMNS = VERSION + 1


class LocalGradients:
    """A communication hook that looks at each bucket, then hands it to the usual all-reduce.

    It keeps a norm a bucket and, on steps that record, fingerprints a parameter. With gradient
    accumulation the hook runs on the last micro-batch, when a bucket holds the accumulated sum.
    """

    def __init__(self, params: list[nn.Parameter], group: dist.ProcessGroup | None) -> None:
        self.group = group if group is not None else dist.group.WORLD
        self._rows: dict[Tensor, int] = {param: row for row, param in enumerate(params)}
        self._norms: list[Tensor] = []
        self._table: Tensor | None = None
        self._params = params
        # What sums a bucket over the ranks once it was seen; `beyond.reduction` puts its own here.
        self.reduce: Callable[[dist.ProcessGroup, GradBucket], torch.futures.Future[Tensor]] = (
            allreduce_hook
        )

    @classmethod
    def attach(cls, model: DistributedDataParallel, group: dist.ProcessGroup | None = None) -> Self:
        """Register the hook on a DDP model, once; every rank must do so before its first step.

        `group` None is the model's own. Raises ValueError where the model has trained parameters
        that the hook would not see, or on more than one device; RuntimeError (from DDP) where the
        model has a communication hook already.
        """
        trained = {n: p for n, p in model.module.named_parameters() if p.requires_grad}
        _refuse_unseen(model, trained)
        gradients = cls(list(trained.values()), group if group is not None else model.process_group)
        # What reads tensors is compiled at its first use: here rather than inside a step.
        path(gradients._params[0].device)
        model.register_comm_hook(state=gradients, hook=_hook)
        return gradients

    @property
    def params(self) -> list[nn.Parameter]:
        """Give the trained parameters in the order of the fingerprints' rows."""
        return self._params

    def reset(self, record: bool) -> None:
        """Forget the last step; `record` asks for fingerprints on the coming one."""
        self._norms.clear()
        self._table = None
        if record:
            device = self._params[0].device
            shape = (len(self._params), COLUMNS)
            self._table = torch.zeros(shape, dtype=torch.int64, device=device)

    def see(self, bucket: GradBucket) -> None:
        """Note one bucket before it is reduced in place."""
        buffer = bucket.buffer()
        if buffer.is_complex():
            buffer = torch.view_as_real(buffer)
        wide = torch.float64 if buffer.dtype == torch.float64 else torch.float32
        self._norms.append(torch.linalg.vector_norm(buffer, dtype=wide))
        if self._table is not None:
            rows = [self._rows[param] for param in bucket.parameters()]
            self._table[rows] = fingerprints(bucket.gradients(), version=VERSION)

    def norm(self) -> Tensor:
        """Give the norm of this rank's own gradient, a scalar; 0 where no bucket came.

        In float32, or float64 where all gradients are. With a gradient scaler it is that of the
        scaled gradient.
        """
        if not self._norms:
            return torch.zeros((), device=self._params[0].device)
        norm: Tensor = torch.linalg.vector_norm(torch.stack(self._norms))
        return norm

    def fingerprints(self) -> Tensor:
        """Give one row of sums a parameter; raises RuntimeError on a step that did not record.

        A parameter without a gradient has a row of zeros, as its replay has.
        """
        if self._table is None:
            raise RuntimeError("this step was not recorded: reset(record=True) comes before it")
        return self._table


def _refuse_unseen(model: DistributedDataParallel, trained: dict[str, nn.Parameter]) -> None:
    ignored = sorted(trained.keys() & model.parameters_to_ignore)
    if ignored:
        raise ValueError(
            f"DDP ignores {ignored[0]} ({len(ignored)} such parameters): its gradient is not "
            "reduced with the others, so that replicas may differ and no check holds"
        )
    devices = sorted({str(param.device) for param in trained.values()})
    if len(devices) > 1:
        raise ValueError(
            f"the model's parameters lie on {', '.join(devices)}: the checks need one device a rank"
        )
    sparse = [n for n, m in model.module.named_modules() if getattr(m, "sparse", False) is True]
    if sparse:
        raise ValueError(
            f"{sparse[0]} has sparse gradients, which have no fingerprint: use sparse=False"
        )


def _hook(state: LocalGradients, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    # The second parameter must be named `bucket`: DDP looks it up by name.
    state.see(bucket)
    return state.reduce(cast("dist.ProcessGroup", state.group), bucket)
