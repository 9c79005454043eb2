"""Which thread pulls telemetry, and what does it do when the database or a source is away?"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable

from app.actions.telemetry import moved, pulling, retention
from app.actions.telemetry.slow_sources import SlowSources
from app.context import Context
from app.store import telemetry_queue, telemetry_unread
from app.store.database import StoreUnavailable
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

POLL_S = 2.0
SWEEP_S = 60.0
PURGE_S = 6 * 3600.0
WORKERS = 2  # a source that hangs must not hold up another cluster's


class Puller:
    """A few threads that take windows from the database; any number of processes may run them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._looked_at: int | None = 0  # the last window of an older version; None: no more
        self._purged = -PURGE_S
        self._slow = SlowSources()

    def start(self) -> None:
        """Begin."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=self._run, args=(place,), name=f"puller-{place}", daemon=True)
            for place in range(WORKERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Take up nothing more; a pull under way is cut off with its connections by the caller."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(patience_s)

    def take_up_again(self) -> int:
        """Queue what waited for a source that is configured by now; give how many windows."""
        clusters, now = list(self._context.sources), self._context.now()
        if not clusters:
            return 0
        return self._context.store.write(
            lambda connection: telemetry_queue.ask_again_in(connection, clusters, now)
        )

    def _run(self, place: int) -> None:
        worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        if place == 0:
            self._patiently(self.take_up_again)
            self._patiently(lambda: self._context.store.write(telemetry_unread.take_up_failed))
        swept, is_stopping = 0.0, self._stopping.is_set
        while not is_stopping():
            done = 0
            if place == 0:
                done += self._patiently(lambda: pulling.plan_wanted(self._context))
                if time.monotonic() - swept > SWEEP_S:
                    self._sweep()
                    swept = time.monotonic()
            done += self._patiently(
                # Who plans as well does not wait for a source that hangs.
                lambda: pulling.pull_due(
                    self._context, worker, is_stopping, self._slow, waits=place > 0
                )
            )
            if not done:
                self._stopping.wait(POLL_S)

    def _sweep(self) -> None:
        """Do what is not urgent, and what nobody else comes back to."""
        self._patiently(lambda: pulling.read_unread(self._context))
        if self._looked_at is not None:
            self._patiently(self._look_at_older)
        if time.monotonic() - self._purged > PURGE_S:
            self._patiently(self._purge)

    def _look_at_older(self) -> int:
        self._looked_at = moved.catch_up(self._context, self._looked_at or 0)
        return 0

    def _purge(self) -> int:
        allowed = retention.ages(self._context)
        found = retention.purge(self._context, allowed, is_stopping=self._stopping.is_set)
        self._purged = time.monotonic()
        return found.windows

    def _patiently(self, work: Callable[[], int]) -> int:
        try:
            return work()
        except (StoreUnavailable, QueueFull) as error:
            log.warning("the puller waits for the database: %s", error)
        except Exception:
            log.exception("the puller met a fault of ours and goes on")
        self._stopping.wait(POLL_S)
        return 0
