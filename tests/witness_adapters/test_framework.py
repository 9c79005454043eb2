"""Do all adapters end a job alike, and say what is missing where a library is not there?"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from witness.ddp.adapters.framework import (
    TAGS,
    Stopped,
    TaggedCheckpoints,
    as_ddp,
    leave_holds_behind,
    remove_tags,
    seeded,
    stop_on,
    write_tags,
)
from witness.ddp.alarms import SilentCorruption

ALARM = {
    "check": "weights",
    "step": 7,
    "suspects": [1],
    "suspect_window": [6, 7],
    "update_applied": True,
}
LEAVES = """
import sys
from witness.ddp.adapters.framework import stop_on
from witness.ddp.leaving import exit_on_alarm
alarm = {alarm!r}
if sys.argv[1] == "wrapped":
    with exit_on_alarm():
        stop_on(alarm)
stop_on(alarm)
"""


@pytest.mark.parametrize("how", ["wrapped", "bare"])
def test_a_stopped_job_exits_with_code_3_and_leaves_its_alarm_to_torchrun(
    how: str, root: Path, tmp_path: Path
) -> None:
    cause = tmp_path / "error.json"
    ended = subprocess.run(
        [sys.executable, "-c", LEAVES.format(alarm=ALARM), how],
        cwd=root,
        env={"PYTHONPATH": str(root), "TORCHELASTIC_ERROR_FILE": str(cause)},
        check=False,
        capture_output=True,
    )
    assert ended.returncode == 3, ended.stderr
    assert json.loads(cause.read_text())["message"]["extraInfo"]["alarm"] == ALARM


def test_what_stops_a_framework_can_be_caught_as_silent_corruption() -> None:
    with pytest.raises(SilentCorruption) as caught:
        stop_on(ALARM)
    assert isinstance(caught.value, Stopped)
    assert caught.value.alarm == ALARM
    assert "names rank 1" in str(caught.value)
    stop_on(None)


def test_a_model_without_ddp_is_refused_with_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"wrapped in DistributedDataParallel .* it is a Linear"):
        as_ddp(nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("module", "library"),
    [
        ("huggingface", "transformers"),
        ("huggingface_data", "transformers"),
        ("lightning", "lightning"),
        ("lightning_data", "lightning"),
        ("torchft", "torchft"),
    ],
)
def test_a_missing_library_is_named(
    module: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"witness.ddp.adapters.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [one for one in sys.modules if one.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ImportError, match=f"{name} needs .*{library}"):
        importlib.import_module(name)


def test_random_numbers_go_by_step_rank_and_place_and_leave_the_stream_alone() -> None:
    torch.manual_seed(5)
    untouched = torch.rand(2)
    torch.manual_seed(5)
    drawn = []
    for step, rank, place in ((1, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)):
        with seeded({torch.device("cpu")}, step, rank, place):
            drawn.append(float(torch.rand(())))
    assert torch.equal(torch.rand(2), untouched)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


def test_tags_lie_in_a_folder_or_beside_a_file_and_go_with_it(tmp_path: Path) -> None:
    folder, file = tmp_path / "checkpoint-2", tmp_path / "deep" / "4.ckpt"
    folder.mkdir()
    file.parent.mkdir()
    file.touch()
    passes = {"last_audit_pass": None, "last_weight_check_pass": 2}
    assert write_tags(folder, 2, passes) == folder / TAGS
    assert write_tags(file, 4, passes) == tmp_path / "deep" / f"4.ckpt.{TAGS}"
    assert TaggedCheckpoints(tmp_path).steps() == {2: folder, 4: file}
    remove_tags(file)
    assert TaggedCheckpoints(tmp_path).steps() == {2: folder}


def test_a_hold_that_cannot_be_read_costs_the_job_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "SDC_HOLD.json").write_text("{")
    leave_holds_behind(tmp_path, 1, {"last_audit_pass": 9, "last_weight_check_pass": None})
    assert "could not be noted" in caplog.text
