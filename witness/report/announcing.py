"""Who beside the service hears of an alarm, and what keeps the job from resuming in its window?"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from witness.report.health import Health
from witness.report.hold import write_hold
from witness.report.sinks import Sink, notice_of
from witness.report.worker import Worker
from witness.wire import Envelope


class Announcer:
    """Writes the hold and tells the sinks, each in a thread of its own.

    Checkpoints lie on shared storage, which can hang while the spool's disk works.
    """

    def __init__(self, directory: Path | None, sinks: Sequence[Sink], health: Health) -> None:
        self._directory, self._sinks, self._health = directory, sinks, health
        self._holding = Worker("witness-hold")
        self._telling = Worker("witness-sinks")

    def begin_in_child(self) -> None:
        """Begin anew after a fork."""
        self._holding.reset()
        self._telling.reset()

    def hold(
        self, envelope: Envelope, document: Mapping[str, Any], rank: int
    ) -> threading.Event | None:
        """Begin to write the hold; give what is set at its end, None where there is none."""
        directory = self._directory
        if directory is None:
            return None

        def write() -> None:
            try:
                write_hold(directory, document, envelope, by=f"rank {rank}")
                self._health.count("holds")
            except Exception as error:
                self._health.failed("writing the hold", error)

        return self._holding.submit(write)

    def wait_for_hold(self, done: threading.Event | None, wait_s: float) -> None:
        """Wait at most so long for the hold."""
        if done is not None and not self._holding.wait(done, wait_s):
            self._health.failed("writing the hold in time", "the storage does not answer")

    def tell(
        self, envelope: Envelope, document: Mapping[str, Any], ranks_here: range | None
    ) -> None:
        """Have every sink told; nobody waits."""
        if not self._sinks:
            return
        notice = notice_of(envelope, document, ranks_here)

        def tell() -> None:
            for sink in self._sinks:
                try:
                    sink.tell(notice)
                    self._health.count("told")
                except Exception as error:
                    self._health.failed(f"telling {type(sink).__name__}", error)

        self._telling.submit(tell)

    def close(self, deadline: float) -> None:
        """Let both end until a deadline (monotonic)."""
        for worker in (self._holding, self._telling):
            worker.stop(deadline - time.monotonic())
