"""Which threads collect evidence about machines, and what do they do when the database is away?"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection

from app.actions.telemetry import collecting
from app.context import Context
from app.store import node_evidence
from app.store.connection import Connection
from app.store.database import StoreUnavailable
from app.store.writer import QueueFull

log = logging.getLogger(__name__)

POLL_S = 2.0
WORKERS = 2  # a log service that lets us wait must not hold up a cluster


class Collector:
    """A few threads that take questions from the database; any number of processes may run them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(
                target=self._run, args=(place,), name=f"collector-{place}", daemon=True
            )
            for place in range(WORKERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Take up nothing more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(patience_s)

    def take_up_again(self) -> int:
        """Queue what there was no way to collect in clusters that are configured by now."""
        now = self._context.now()
        known: tuple[tuple[node_evidence.Kind, Collection[str]], ...] = (
            ("node", self._context.clusters),
            ("log", self._context.node_logs),
        )

        def write(connection: Connection) -> int:
            return sum(
                node_evidence.ask_again_in(connection, kind, list(clusters), now)
                for kind, clusters in known
                if clusters
            )

        return self._context.store.write(write)

    def _run(self, place: int) -> None:
        worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        if place == 0:
            self._patiently(self.take_up_again)
        while not self._stopping.is_set():
            work = self._patiently(
                lambda: collecting.collect_due(self._context, worker, self._stopping.is_set)
            )
            if not work:
                self._stopping.wait(POLL_S)

    def _patiently(self, work: Callable[[], int]) -> int:
        try:
            return work()
        except (StoreUnavailable, QueueFull) as error:
            log.warning("the collector waits for the database: %s", error)
        except Exception:
            log.exception("the collector met a fault of ours and goes on")
        self._stopping.wait(POLL_S)
        return 0
