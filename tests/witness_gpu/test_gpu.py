"""Does the script for a GPU run through, and say so where there is none?"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from witness.simulate.gpu import __main__ as script
from witness.simulate.gpu import fingerprinting
from witness.simulate.gpu.measuring import Bench


def test_the_list_of_tensors_is_the_model_it_claims() -> None:
    shapes = fingerprinting.shapes(small=False)
    assert len(shapes) == 147
    assert sum(map(math.prod, shapes)) == 953_223_168


def test_without_a_gpu_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert script.main([]) == script.NO_DEVICE
    assert "nothing was run" in capsys.readouterr().err


def test_a_part_that_fails_is_told_and_the_next_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(bench: Bench) -> Iterator[dict[str, Any]]:
        yield {"what": "first", "ms": 1.0}
        raise RuntimeError("out of memory")

    def fine(bench: Bench) -> Iterator[dict[str, Any]]:
        yield {"what": "second", "right": True}

    monkeypatch.setattr(script, "PARTS", {"broken": broken, "fine": fine})
    assert script.main(["--device", "cpu"]) == 1
    said = capsys.readouterr().out
    assert "error RuntimeError: out of memory" in said
    assert "second" in said
    assert script.main(["--device", "cpu", "--part", "fine"]) == 0
    assert script.main(["--device", "cpu", "--part", "fine", "--limit", "-1"]) == 1


def test_a_rehearsal_runs_every_kind_of_part(tmp_path: Path) -> None:
    parts = [word for part in ("check-1", "audits", "drills") for word in ("--part", part)]
    kept = tmp_path / "rows.json"
    command = [sys.executable, "-m", "witness.simulate.gpu", "--device", "cpu", "--small"]
    subprocess.run([*command, *parts, "--json", str(kept)], check=True, timeout=110)
    rows = json.loads(kept.read_text())
    assert {row["part"] for row in rows[1:]} == {"check-1", "audits", "drills"}
    assert [row["same_bits"] for row in rows if "same_bits" in row] == [True] * 3
    assert [row["right"] for row in rows if "right" in row] == [True] * 3
