"""How is work done that may hang, such as a write to a dead file system, without hanging the job?

One daemon thread does calls in order; whoever asks waits for an answer only so long. Started when
first needed, never at import, and anew in a forked child.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

log = logging.getLogger(__name__)

# Waiting for a call that is stuck would be repeated by every further call.
STUCK_AFTER_S = 2.0


class Worker:
    """A lazy daemon thread that does calls one after another.

    `tick` is called every `tick_s` seconds while the thread lives, between calls.
    """

    def __init__(
        self, name: str, tick: Callable[[], object] | None = None, tick_s: float = 1.0
    ) -> None:
        self._name = name
        self._tick, self._tick_s = tick, tick_s
        self.reset()

    def reset(self) -> None:
        """Begin anew without a thread: for a forked child, where only its caller's thread lives."""
        self._queue: SimpleQueue[_Call | None] = SimpleQueue()
        # A signal handler may call in while the same thread holds it.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._begun: float | None = None  # when the call under way began
        self._submitted = self._finished = 0

    @property
    def stuck(self) -> bool:
        """Tell whether the call under way has taken longer than anybody waits for."""
        begun = self._begun
        return begun is not None and time.monotonic() - begun > STUCK_AFTER_S

    @property
    def busy(self) -> bool:
        """Tell whether a call is under way or waits."""
        return self._submitted != self._finished

    @property
    def waiting(self) -> int:
        """Count the calls that have not begun."""
        return self._queue.qsize()

    def do(self, function: Callable[[], Any], wait_s: float = 0.0) -> bool:
        """Have a call done; give True if it ended, well or not, within `wait_s`.

        Where no thread can be started (the interpreter is ending) it is done at once, here.
        """
        return self.wait(self.submit(function), wait_s)

    def submit(self, function: Callable[[], Any]) -> threading.Event:
        """Have a call done; give what is set when it has ended, well or not."""
        call = _Call(function)
        if sys.is_finalizing():  # a thread would neither start nor go on, and its locks stay taken
            call.run()
            return call.done
        with self._lock:
            queued = self._started()
            if queued:
                self._submitted += 1
                self._queue.put(call)
        if not queued:
            call.run()
        return call.done

    def wait(self, done: threading.Event, wait_s: float) -> bool:
        """Wait for a submitted call, not at all where another one hangs before it."""
        if done.is_set() or wait_s <= 0 or self.stuck or self._is_current():
            return done.is_set()
        return done.wait(wait_s)

    def start(self) -> None:
        """Start the thread for the sake of its ticks."""
        with self._lock:
            self._started()

    def stop(self, wait_s: float) -> bool:
        """Let the thread end after what is queued; give True if it did within `wait_s`."""
        with self._lock:
            thread = self._thread
            if thread is None or not thread.is_alive():
                return True
            self._queue.put(None)
        thread.join(max(wait_s, 0.0))
        return not thread.is_alive()

    def _is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def _started(self) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return True
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        next_tick = time.monotonic() + self._tick_s
        while True:
            if self._tick is not None and time.monotonic() >= next_tick:
                self._finish(_Call(self._tick))
                next_tick = time.monotonic() + self._tick_s
            wait = None if self._tick is None else max(next_tick - time.monotonic(), 0.001)
            try:
                call = self._queue.get(timeout=wait)
            except Empty:
                continue
            if call is not None:
                self._finish(call)
                self._finished += 1
            elif self._ended():
                return

    def _finish(self, call: _Call) -> None:
        self._begun = time.monotonic()
        call.run()
        self._begun = None

    def _ended(self) -> bool:
        """End the thread, unless calls came in after it was told to."""
        with self._lock:
            if self._queue.empty():
                self._thread = None
                return True
            self._queue.put(None)
            return False


class _Call:
    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._function()
        except Exception:
            # Each function counts its own failures; this one must not end the thread.
            log.debug("a call in the background failed", exc_info=True)
        finally:
            self.done.set()
