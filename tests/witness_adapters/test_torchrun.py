"""Does the real torchrun restart at once after an alarm, and do its events say what happened?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.witness_adapters import torchrun_worker
from tests.witness_adapters.torchrun_worker import ALARM
from witness.ddp.adapters.torchrun import AgentEvent, read_event, record_alarm, restarts_left

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run one job of two workers with one restart, its lines going through our module."""
    folder = tmp_path_factory.mktemp("torchrun")
    told, spool = folder / "told", folder / "spool"
    told.mkdir()
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "WITNESS_SPOOL": str(spool),
        "WITNESS_CLUSTER": "alpine",
    }
    torchrun = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1",
        "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=night-run",
        "--event-log-handler=console", torchrun_worker.__file__, str(told),
    ]  # fmt: skip
    with subprocess.Popen(
        torchrun, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ, cwd=ROOT
    ) as agent:
        ours = subprocess.run(
            [sys.executable, "-m", "witness.ddp.adapters.torchrun"],
            stdin=agent.stdout, capture_output=True, text=True, check=True, env=environ,
            timeout=100,
        )  # fmt: skip
    return {
        "code": agent.returncode,
        "lines": ours.stdout.splitlines(),
        "told": {path.stem: json.loads(path.read_text()) for path in told.iterdir()},
        "documents": [json.loads(path.read_text()) for path in sorted(spool.glob("run-*/*.json"))],
    }


def test_torchrun_restarts_at_once_and_a_worker_knows_which_start_it_is(
    job: dict[str, Any],
) -> None:
    told = job["told"]
    assert [told[name]["attempt"] for name in ("1-1", "2-1")] == [1, 2]
    assert [told[name]["restarts_left"] for name in ("1-1", "2-1")] == [1, 0]
    assert {one["job"] for one in told.values()} == {"night-run"}
    assert told["2-1"]["began"] - told["1-1"]["ended"] < 30, "nobody was asked in between"


def test_the_exit_code_of_a_worker_is_not_the_one_of_torchrun(job: dict[str, Any]) -> None:
    assert job["code"] == 1


def test_the_failed_worker_is_told_with_its_code_and_the_alarm_it_left(job: dict[str, Any]) -> None:
    events = [event for event in map(read_event, job["lines"]) if event is not None]
    failed = {event.rank: event for event in events if event.state == "FAILED"}
    assert failed[0].exit_code == -15
    assert failed[0].alarm is None
    assert failed[1] == AgentEvent(
        state="FAILED",
        run_id="night-run",
        host=failed[1].host,
        restarts=1,
        rank=1,
        exit_code=3,
        error="SilentCorruption: check 'weights' at step 7",
        alarm=ALARM,
    )


def test_starts_and_the_end_are_reported_under_the_names_of_the_workers(
    job: dict[str, Any],
) -> None:
    documents = job["documents"]
    assert [(one["event"], one["attempt"], one["attempt_no"]) for one in documents] == [
        ("attempt_start", 1, 1),
        ("attempt_start", 2, 2),
        ("attempt_end", 2, 2),
    ]
    assert {(one["cluster"], one["job"], one["kind"]) for one in documents} == {
        ("alpine", "night-run", "elastic_event")
    }
    assert (documents[-1]["rank"], documents[-1]["exit_code"]) == (1, 3)
    assert documents[-1]["reason"] == "failed"


def test_every_line_is_passed_on(job: dict[str, Any]) -> None:
    assert "leaving start 1" in job["lines"]
    assert any("ChildFailedError" in line for line in job["lines"])


@pytest.mark.parametrize(
    "line",
    [
        "step 3 loss 0.5",
        '{"name": "torchelastic.worker.status.START"',
        '{"name": "torchelastic.worker.status.START", "metadata": null}',
        '{"name": "torchelastic.worker.status.START", "metadata": {"state": "START"}}',
        '{"name": "torchelastic.worker.status.START", "metadata": {"metadata": "[1]"}}',
    ],
)
def test_what_is_no_event_is_none(line: str) -> None:
    assert read_event(line) is None


def test_outside_torchrun_there_is_nothing_to_restart_and_no_error_file(tmp_path: Path) -> None:
    assert restarts_left({}) is None
    assert restarts_left({"TORCHELASTIC_RESTART_COUNT": "x"}) is None
    assert record_alarm(ALARM, {}) is False
    nowhere = tmp_path / "gone" / "error.json"
    assert record_alarm(ALARM, {"TORCHELASTIC_ERROR_FILE": str(nowhere)}) is False
