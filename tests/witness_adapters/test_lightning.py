"""Does Lightning's real Trainer stop before a wrong step, and only then?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.witness_adapters.lightning_jobs import jobs
from witness.ddp.adapters.framework import TAGS
from witness.simulate import fleet

pytestmark = pytest.mark.timeout(300)  # every rank imports a framework, on cores that may be busy

RANKS = 3
# 5 batches a rank and epoch; in pairs, so that every third step has only one.
EVERY_STEP = {"audit_every": 1, "check_every": 1}
NAN = {"rank": 1, "steps": (3, 3), "factor": float("nan")}
CASES: dict[str, dict[str, Any]] = {
    "healthy": {"folder": "healthy", "schedule": EVERY_STEP, "saves_every": 3},
    "resumed": {
        "folder": "resumed",
        "schedule": EVERY_STEP,
        "resume": "healthy/step-3.ckpt",
    },
    "pairs": {
        "folder": "pairs",
        "schedule": EVERY_STEP,
        "trainer": {"accumulate_grad_batches": 2, "max_steps": 7},
        "saves_every": 2,
    },
    "scaled": {"folder": "scaled", "schedule": EVERY_STEP, "scale": 2.0**20},
    "wrong": {
        "folder": "wrong",
        "fault": {"rank": 2, "steps": (2, 99), "factor": 1000.0},
        "saves_every": 3,
    },
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
        "saves_every": 2,
    },
    "after drift": {
        "folder": "drift",
        "resume": "drift/step-2.ckpt",
        "schedule": {"audit_every": 0},
        "saves_every": 2,
    },
}


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lightning")


@pytest.fixture(scope="module")
def said(top: Path) -> dict[str, dict[str, Any]]:
    """Run all cases once; every rank must say the same."""
    ranks = fleet.run(RANKS, 1, jobs, str(top), list(CASES.values()), timeout_s=240)
    for other in ranks[1:]:
        assert other == ranks[0]
    return dict(zip(CASES, ranks[0], strict=True))


def test_a_healthy_job_is_replayed_at_every_step_without_alarm(
    said: dict[str, Any], top: Path
) -> None:
    healthy = said["healthy"]
    assert healthy["alarm"] is None
    assert (healthy["step"], healthy["tags"]["last_audit_pass"]) == (8, 8)
    assert healthy["logged"] == ["loss"]
    assert healthy["saved"] == ["step-3.ckpt", "step-6.ckpt"]
    passes = {"step": 6, "last_audit_pass": 6, "last_weight_check_pass": 6}
    assert json.loads((top / "healthy" / f"step-6.ckpt.{TAGS}").read_text()) == passes
    saved = torch.load(top / "healthy" / "step-6.ckpt", weights_only=True)
    assert saved["silent_witness"] == passes


@pytest.mark.parametrize(("case", "last"), [("resumed", 8), ("pairs", 7)])
def test_steps_are_replayed_after_a_resume_and_with_accumulated_gradients(
    said: dict[str, Any], case: str, last: int
) -> None:
    assert said[case]["alarm"] is None
    assert said[case]["step"] == said[case]["tags"]["last_audit_pass"] == last


def test_steps_that_overflow_under_a_gradient_scaler_are_skipped_without_alarm(
    said: dict[str, Any],
) -> None:
    scaled = said["scaled"]
    assert scaled["alarm"] is None
    assert scaled["scale"] < 2.0**20, "some steps overflowed"
    assert not scaled["unchanged"], "others were applied"
    assert scaled["step"] == scaled["tags"]["last_audit_pass"] == 8


def test_a_wrong_gpu_is_named_at_the_audit_and_nothing_is_saved_or_changed_after_it(
    said: dict[str, Any],
) -> None:
    wrong = said["wrong"]
    assert wrong["code"] == 3
    assert (wrong["alarm"]["step"], wrong["alarm"]["culprits"]) == (4, [2])
    assert wrong["alarm"]["suspect_window"] == [1, 4]
    assert wrong["unchanged"]
    assert wrong["saved"] == ["step-3.ckpt"], "save_on_exception saves no state after an alarm"


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
    assert drift["saved"] == ["step-2.ckpt"]


def test_a_restart_goes_back_before_the_window_and_is_not_held_for_ever(
    said: dict[str, Any],
) -> None:
    assert said["healthy"]["safe"] == "step-6.ckpt"
    assert said["wrong"]["safe"] is None
    assert said["drift"]["safe"] == "step-2.ckpt"
    assert said["after drift"]["alarm"] is None
    assert said["after drift"]["safe"] == "step-8.ckpt"
