"""Can a person list and lift holds, and send a spool, without a training job?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.witness_report.conftest import Making, Service, alarm, spooled
from witness.report import Envelope, latest_safe, write_hold
from witness.report.__main__ import main
from witness.rules.resume import Checkpoint

SAVED = [Checkpoint(step, committed=True) for step in (20, 25, 40)]


def test_a_hold_is_shown_lifted_and_shown_as_lifted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["holds", str(tmp_path)]) == 0
    assert "No hold" in capsys.readouterr().out
    write_hold(tmp_path, alarm(30), Envelope("alpine", "research", "llm", 1))
    assert main(["holds", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "HOLDS        steps 21 to 30  compute at step 30" in shown
    key = shown.split()[0]
    by = ["--reason", "software", "--by", "ana"]
    assert main(["release", str(tmp_path), *by, "--key", "another"]) == 1
    assert main(["release", str(tmp_path), *by, "--key", key]) == 0
    assert key in capsys.readouterr().out
    assert main(["holds", str(tmp_path)]) == 0
    assert "released" in capsys.readouterr().out
    found = latest_safe(SAVED, tmp_path)
    assert found is not None
    assert found.step == 40


def test_a_hold_that_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "SDC_HOLD.json").write_text("{")
    assert main(["holds", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_reason_and_a_name_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["release", str(tmp_path)])


def test_a_spool_of_a_job_that_is_gone_is_sent(
    service: Service, make: Making, job: str, tmp_path: Path, root: Path
) -> None:
    spool = tmp_path / "spool"
    for step in (30, 40):
        gone = make(None)
        gone.alarm(alarm(step))
        gone.close()
    command = [sys.executable, "-m", "witness.report", "send", str(spool), "--seconds", "30"]

    def sent(url: str, seconds: str) -> tuple[int, dict[str, object]]:
        environ = {**os.environ, "WITNESS_URL": url, "WITNESS_TOKEN": service.token}
        done = subprocess.run(
            [*command[:-1], seconds],
            cwd=root, env=environ, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        said: dict[str, object] = json.loads(done.stdout)
        return done.returncode, said

    code, said = sent("http://127.0.0.1:9", "1")
    assert (code, said["waiting"]) == (1, 2)
    code, said = sent(service.url, "30")
    assert (code, said["posted"], said["waiting"]) == (0, 2, 0)
    assert [one["step"] for one in service.alarms(job)] == [30, 40]
    assert spooled(spool) == []
