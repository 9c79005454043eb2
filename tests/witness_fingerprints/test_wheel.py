"""Does what is installed carry the C source, and work from where it is installed?"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def test_the_wheel_carries_the_source_that_is_compiled_at_first_use(
    root: Path, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as packed:
        inside = [one for one in packed.namelist() if one.startswith("witness/")]
        packed.extractall(installed, inside)
    assert "witness/ddp/fingerprints/sums.c" in inside
    program = (
        "import torch, witness.ddp.fingerprints as f; print(f.__file__);"
        "print(f.path(torch.device('cpu')), f.fingerprints([torch.arange(3)]).tolist())"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=installed, check=True, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "WITNESS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    where, said = run.stdout.splitlines()
    assert Path(where).is_relative_to(installed)
    assert said == "compiled [[3, 8]]"
