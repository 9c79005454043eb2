"""Where do the tests of the rules read independently computed answers?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "data" / "oracle"


def answers(name: str) -> Any:
    """Read one file of answers."""
    return json.loads((FOLDER / name).read_text())
