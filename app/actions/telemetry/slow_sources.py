"""Whose sources let us wait, so that another cluster's windows go first?

A source that hangs holds a thread for minutes with each question. Without this both threads of a
process soon wait for it, and the metrics of all other clusters age out meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SLOW_S = 15.0
"""A question that takes longer, whatever comes of it; three connections in vain are as long."""
RESTS_S = 300.0
"""So long a cluster comes after all others; then it counts as any, or a storm would bury it."""


class SlowSources:
    """Clusters whose last question took long; shared by the threads of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def note(self, cluster: str, seconds: float) -> None:
        """Note how long a cluster's sources took for one question."""
        with self._lock:
            if seconds > SLOW_S:
                self._until[cluster] = self.clock() + RESTS_S
            else:
                self._until.pop(cluster, None)

    def names(self) -> tuple[str, ...]:
        """List the clusters that come after others now."""
        now = self.clock()
        with self._lock:
            return tuple(sorted(one for one, until in self._until.items() if until > now))
