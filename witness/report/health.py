"""What went wrong so far, counted for whoever asks and said once to whoever reads the log?"""

from __future__ import annotations

import logging
import threading
from typing import Any

log = logging.getLogger("witness.report")

_LONGEST = 300


class Health:
    """Counts of what was done and what failed; every method may be called from any thread."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at zero: for a forked child."""
        self._lock = threading.RLock()
        self._counts: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._last: dict[str, str] = {}

    def count(self, what: str, number: int = 1) -> None:
        """Count something that went well."""
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + number

    def failed(self, what: str, why: object, number: int = 1) -> None:
        """Count a failure of a sort; the first one of a sort is logged, the others only counted."""
        words = (f"{type(why).__name__}: {why}" if isinstance(why, BaseException) else str(why))[
            :_LONGEST
        ]
        with self._lock:
            first = what not in self._failures
            self._failures[what] = self._failures.get(what, 0) + number
            self._last[what] = words
        if first:
            log.warning(
                "%s failed: %s. The job goes on; further failures of this sort are only counted.",
                what,
                words,
            )

    def of(self, what: str) -> int:
        """Give how often something went well."""
        with self._lock:
            return self._counts.get(what, 0)

    def as_document(self) -> dict[str, Any]:
        """Give everything counted so far."""
        with self._lock:
            return {
                **self._counts,
                "failures": dict(self._failures),
                "last_failures": dict(self._last),
            }
