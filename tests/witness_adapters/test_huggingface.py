"""Does the real Trainer of transformers stop before a wrong step, and only then?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler, RandomSampler

from tests.witness_adapters.huggingface_jobs import jobs
from witness.ddp.adapters.framework import TAGS
from witness.ddp.adapters.huggingface_data import SameDataset
from witness.simulate import fleet

pytestmark = pytest.mark.timeout(300)  # every rank imports a framework, on cores that may be busy

RANKS = 3
# 39 examples: 7 micro-batches a rank and epoch, in pairs, so that every fourth step has only one.
EVERY_STEP = {"audit_every": 1, "check_every": 1}
PAIRS = {"gradient_accumulation_steps": 2, "max_steps": 9}
NAN = {"rank": 1, "steps": (3, 3), "factor": float("nan")}
CASES: dict[str, dict[str, Any]] = {
    "healthy": {
        "folder": "healthy",
        "schedule": EVERY_STEP,
        "arguments": {**PAIRS, "save_strategy": "steps", "save_steps": 3},
    },
    "resumed": {
        "folder": "resumed",
        "schedule": EVERY_STEP,
        "arguments": PAIRS,
        "resume": "healthy/checkpoint-6",
    },
    "per device": {
        "folder": "per-device",
        "schedule": EVERY_STEP,
        "arguments": {**PAIRS, "average_tokens_across_devices": False, "max_steps": 4},
    },
    "wrong": {"folder": "wrong", "fault": {"rank": 2, "steps": (2, 99), "factor": 1000.0}},
    "nan": {"folder": "nan", "fault": NAN},
    "nan, no replays": {
        "folder": "nan2",
        "fault": NAN,
        "schedule": {"audit_every": 0},
        "rebuilds": False,
    },
    "drift": {
        "folder": "drift",
        "fault": {"rank": 0, "steps": (4, 4), "factor": 1.0, "drift": True},
        "schedule": {"audit_every": 0, "check_every": 3},
        "arguments": {"save_strategy": "steps", "save_steps": 2},
    },
    "after drift": {
        "folder": "drift",
        "resume": "drift/checkpoint-2",
        "schedule": {"audit_every": 0},
        "arguments": {"save_strategy": "steps", "save_steps": 2, "max_steps": 6},
    },
}


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("huggingface")


@pytest.fixture(scope="module")
def said(top: Path) -> dict[str, dict[str, Any]]:
    """Run all cases once; every rank must say the same."""
    ranks = fleet.run(RANKS, 1, jobs, str(top), list(CASES.values()), timeout_s=240)
    for other in ranks[1:]:
        assert other == ranks[0]
    return dict(zip(CASES, ranks[0], strict=True))


def test_a_healthy_job_ends_and_its_data_can_be_rebuilt_at_every_step(
    said: dict[str, Any], top: Path
) -> None:
    healthy = said["healthy"]
    assert healthy["alarm"] is None
    assert (healthy["step"], healthy["tags"]["last_audit_pass"]) == (9, 9)
    assert healthy["saved"] == ["checkpoint-3", "checkpoint-6", "checkpoint-9"]
    tags = json.loads((top / "healthy" / "checkpoint-6" / TAGS).read_text())
    assert tags == {"step": 6, "last_audit_pass": 6, "last_weight_check_pass": 6}


@pytest.mark.parametrize(("case", "last"), [("resumed", 9), ("per device", 4)])
def test_data_is_rebuilt_after_a_resume_and_with_losses_averaged_by_device(
    said: dict[str, Any], case: str, last: int
) -> None:
    assert said[case]["alarm"] is None
    assert said[case]["step"] == said[case]["tags"]["last_audit_pass"] == last


def test_a_wrong_gpu_is_named_at_the_audit_and_the_weights_stay_as_they_were(
    said: dict[str, Any],
) -> None:
    wrong = said["wrong"]
    assert wrong["code"] == 3
    assert wrong["alarm"]["step"] == 4
    assert wrong["alarm"]["culprits"] == [2]
    assert wrong["alarm"]["suspect_window"] == [1, 4]
    assert wrong["unchanged"]
    assert wrong["step"] == 3


def test_a_nan_is_named_on_its_own_step_and_the_weights_stay_as_they_were(
    said: dict[str, Any],
) -> None:
    for case in ("nan", "nan, no replays"):
        alarm = said[case]["alarm"]
        assert (said[case]["code"], alarm["step"], alarm["nonfinite"]) == (3, 3, [1])
        assert said[case]["unchanged"]
    assert said["nan"]["alarm"]["culprits"] == [1]
    assert said["nan, no replays"]["alarm"]["mismatched_pairs"] == []


def test_a_replica_that_drifts_is_named_before_the_next_checkpoint_is_saved(
    said: dict[str, Any],
) -> None:
    drift = said["drift"]
    assert drift["alarm"]["check"] == "weights"
    assert drift["alarm"]["suspects"] == [0]
    assert drift["alarm"]["suspect_window"] == [4, 4]
    assert drift["saved"] == ["checkpoint-2"]


def test_a_restart_goes_back_before_the_window_and_is_not_held_for_ever(
    said: dict[str, Any],
) -> None:
    assert said["healthy"]["safe"] == "checkpoint-9"
    assert said["wrong"]["safe"] is None
    assert said["drift"]["safe"] == "checkpoint-2"
    assert said["after drift"]["alarm"] is None
    assert said["after drift"]["safe"] == "checkpoint-6"


class Loader:
    """Stands for a trainer and its data loader, with any sampler of batches."""

    def __init__(self, batch_sampler: Any) -> None:
        self.callback_handler = self.train_dataloader = self
        self.batch_sampler = batch_sampler


@pytest.mark.parametrize(
    ("sampler", "why"),
    [
        (None, "NoneType of NoneType"),
        (BatchSampler(range(4), 2, False), "BatchSampler of NoneType"),
        (BatchSamplerShard(BatchSampler(RandomSampler(range(4)), 2, False)), "RandomSampler"),
    ],
)
def test_an_order_that_cannot_be_rebuilt_is_refused(sampler: Any, why: str) -> None:
    with pytest.raises(TypeError, match=f"{why} cannot be rebuilt"):
        SameDataset(cast("Any", Loader(sampler))).shard()
