"""How does the guard tell its reporter, whatever that one does?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from witness.wire import Envelope

_log = logging.getLogger(__name__)


class Announcer:
    """Passes on what happens; a reporter that raises is logged once and costs the job nothing.

    `reporter` None is fine: then nothing is told.
    """

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter
        self._complained = False
        self._begins = 0
        self._second = self._newest = 0.0

    def tell(self, what: str, *args: Any, **named: Any) -> Any:
        """Call one method of the reporter; give what it gives, None where it could not."""
        if self._reporter is None:
            return None
        try:
            method: Callable[..., Any] = getattr(self._reporter, what)
            return method(*args, **named)
        except Exception:
            if not self._complained:
                _log.warning("the reporter failed in %s; training goes on", what, exc_info=True)
                self._complained = True
            return None

    @property
    def envelope(self) -> Envelope | None:
        """Give what the reporter says of the job; None where there is none."""
        envelope = getattr(self._reporter, "envelope", None)
        return envelope if isinstance(envelope, Envelope) else None

    def step_began(self) -> None:
        """Take the time of a step's begin; the first step, which warms up, is left out."""
        self._begins += 1
        self._newest = time.perf_counter()
        if self._begins == 2:
            self._second = self._newest

    @property
    def step_time_s(self) -> float | None:
        """Give the mean time from one step's begin to the next in seconds; None where not known."""
        if self._begins < 3:
            return None
        return (self._newest - self._second) / (self._begins - 2)
