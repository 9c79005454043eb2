"""How do passes become one document a minute, at the cost of a few writes a step?"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

# A NaN or a clock gone wrong would cost the whole beat: the service takes no such time.
_NO_STEP_S = 1e9

Key = tuple[str, str | None, int | None, int]


@dataclass(slots=True)
class Beat:
    """Passes of one check under one mode, offset and number of GPUs; steps only grow inside it."""

    check: str
    mode: str | None
    peer_offset: int | None
    gpus: int
    first_step: int
    last_step: int
    count: int = 1
    seconds: float = 0.0
    timed: int = 0

    @property
    def step_time_s(self) -> float | None:
        """Give the mean time of the steps that came with one."""
        return self.seconds / self.timed if self.timed else None


class Beats:
    """The beats that are open, and those that wait to be taken."""

    def __init__(self) -> None:
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Be empty: the parent's beats are the parent's."""
        # A signal handler may close the reporter while its own thread is in `add`.
        self._lock = threading.RLock()
        self._open: dict[Key, Beat] = {}
        self._full: list[Beat] = []
        self._since: float | None = None

    def add(self, key: Key, step: int, step_time_s: float | None) -> bool:
        """Count one pass; give True where it is the first that waits to be taken.

        The same step is counted once. A smaller one (the job went back) begins another beat.
        """
        with self._lock:
            beat = self._open.get(key)
            if beat is None or step < beat.last_step:
                return self._begin(key, step, step_time_s)
            if step > beat.last_step:
                beat.last_step = step
                beat.count += 1
                if step_time_s is not None and 0.0 <= step_time_s < _NO_STEP_S:
                    beat.seconds += step_time_s
                    beat.timed += 1
            return False

    def take(self, older_than_s: float = 0.0) -> list[Beat]:
        """Take every beat if the oldest pass came in that long ago."""
        with self._lock:
            if self._since is None or time.monotonic() - self._since < older_than_s:
                return []
            taken = self._full + list(self._open.values())
            self._full, self._open, self._since = [], {}, None
            return taken

    def _begin(self, key: Key, step: int, step_time_s: float | None) -> bool:
        check, mode, peer_offset, gpus = key
        before = self._open.get(key)
        if before is not None:
            self._full.append(before)
        beat = Beat(check, mode, peer_offset, gpus, step, step)
        if step_time_s is not None and 0.0 <= step_time_s < _NO_STEP_S:
            beat.seconds, beat.timed = step_time_s, 1
        self._open[key] = beat
        first = self._since is None
        if first:
            self._since = time.monotonic()
        return first
