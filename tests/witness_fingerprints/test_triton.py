"""Is the GPU's kernel right, and good code, as far as that can be told without a GPU?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run_in_triton(root: Path, tmp_path: Path) -> Any:
    """Run the program beside this file where Triton can be imported; give what it prints."""

    def run(what: str, **environment: str) -> Any:
        beside = Path(sys.prefix) / "triton"
        done = subprocess.run(
            [sys.executable, "-m", "tests.witness_fingerprints.in_triton", what],
            cwd=root, check=False, capture_output=True, text=True, timeout=110,
            env={
                **os.environ,
                "PYTHONPATH": f"{root}:{beside}",
                "TRITON_CACHE_DIR": str(tmp_path),
                "TRITON_DEFAULT_FP_FUSION": "0",
                **environment,
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return run


def test_the_interpreted_kernel_gives_the_sums_of_the_compiled_c(run_in_triton: Any) -> None:
    told = run_in_triton("interpret", TRITON_INTERPRET="1")
    assert told["path"] == "triton"
    assert told["tensors"] > 30
    assert told["different"] == []
    assert told["nothing"] == [[0, 2], [[0, 0]]]


def test_the_kernel_compiles_for_an_h100_with_wide_loads_and_without_spilling(
    run_in_triton: Any,
) -> None:
    made = run_in_triton("compile")
    assert [(one["size"], one["sums"]) for one in made] == [
        (size, sums) for size in (1, 2, 4, 8) for sums in (2, 3)
    ]
    for one in made:
        assert {"ld.global.v4.b32", "ld.global.v2.b64"} & set(one["loads"]), one
        assert one["stack"] == one["spilled"] == 0, one
        assert one["registers"] <= 128, one


def test_the_tests_themselves_do_not_import_triton() -> None:
    assert "triton" not in sys.modules
