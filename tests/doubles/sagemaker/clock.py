"""What time is it for the double, and what happens when the time comes?"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that stands until it is advanced; what was planned happens on the way, in order."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = (start or datetime.now(UTC)).replace(microsecond=0)
        self._number = itertools.count()
        self._plans: list[tuple[datetime, int, Callable[[], None]]] = []

    def now(self) -> datetime:
        """Read the clock."""
        return self._now

    def after(self, wait: timedelta, happens: Callable[[], None]) -> None:
        """Plan something."""
        heapq.heappush(self._plans, (self._now + wait, next(self._number), happens))

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        until = self._now + by
        while self._plans and self._plans[0][0] <= until:
            at, _, happens = heapq.heappop(self._plans)
            self._now = max(self._now, at)
            happens()
        self._now = until
