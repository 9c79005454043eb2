"""Which settings of the reporter does the environment hold?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read the keyword arguments of `Reporter` from WITNESS_ variables; never raises."""
    given = os.environ if environ is None else environ
    return {
        "url": given.get("WITNESS_URL", "").strip() or None,
        "token": _token(given),
        "spool": given.get("WITNESS_SPOOL", "").strip() or default_spool(),
        "ca_file": given.get("WITNESS_CA_FILE", "").strip() or None,
    }


def default_spool() -> Path:
    """Give a folder of this user's own that survives the process, though not the machine."""
    return Path(tempfile.gettempdir()) / f"silent-witness-spool-{os.getuid()}"


def _token(given: Mapping[str, str]) -> Callable[[], str | None]:
    """Read the token anew each time where it lies in a file: a mounted secret is rotated."""
    file, token = given.get("WITNESS_TOKEN_FILE", "").strip(), given.get("WITNESS_TOKEN", "")

    def read() -> str | None:
        if not file:
            return token.strip() or None
        return Path(file).read_text("utf-8").strip() or None

    return read
