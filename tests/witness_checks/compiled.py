"""What each rank does with a model that torch.compile has traced."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from tests.witness_checks.ranks import DEFAULT, NO_AUDITS, STRICT, train
from tests.witness_checks.workloads import Workload, with_norm
from witness.inject import Fault


def traced() -> nn.Module:
    # Traces and replaces what it runs, without waiting for a compiler of machine code.
    compiled: Any = torch.compile(with_norm(), backend="aot_eager")
    module: nn.Module = compiled
    return module


def healthy_and_faulty() -> tuple[list[Any], set[str], Any]:
    """Give the alarms of healthy runs, the digests they leave, and a faulty run's alarm."""
    logging.disable(logging.CRITICAL)
    workload = Workload(traced)
    runs = [train(workload, schedule) for schedule in (NO_AUDITS, STRICT, DEFAULT)]
    fault = Fault.on(1, "_orig_mod.last").multiply(1000.0).in_weight_gradient().since(2)
    return (
        [alarm for alarm, _ in runs],
        {left for _, left in runs},
        train(workload, STRICT, fault)[0],
    )
