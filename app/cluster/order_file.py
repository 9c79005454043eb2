"""Where is an order kept that is not sent, so that what would have been done can be read later?

For a trial beside a real cluster: everything is read, nothing is changed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ORDERS_FILE = "recorded-orders.jsonl"


class OrderFile:
    """A file with one JSON object a line; safe to share between threads and processes."""

    def __init__(self, path: Path) -> None:
        """Keep the path; the file is made with the first order."""
        self.path = path
        self._lock = threading.Lock()

    def keep(self, cluster: str, order: str, asked: Mapping[str, Any]) -> str | None:
        """Write an order to the disk, not only to the cache; say what went wrong, None: nothing."""
        line = {
            "at": datetime.now(UTC).isoformat(),
            "cluster": cluster,
            "order": order,
            "asked": asked,
        }
        data = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                file = os.open(self.path, flags, 0o600)
                try:
                    # One write, so that lines of several processes do not mix.
                    os.write(file, data)
                    os.fsync(file)
                finally:
                    os.close(file)
        except OSError as error:
            return f"it could not be written down: {error.strerror}"
        return None
