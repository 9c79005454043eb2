"""How do the spool, the outbox and the poster work together on one document?

Said -> written by the worker (the only thread that touches the disk) -> posted by the poster ->
removed by the worker. Each part goes on where another one fails or hangs.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness import wire
from witness.report.entries import Entry, Outbox
from witness.report.health import Health
from witness.report.poster import Pace, Poster, Target
from witness.report.sinks import Sink
from witness.report.spool import Limits, Spool
from witness.report.worker import Worker


@dataclass(frozen=True, slots=True)
class Options:
    """What is seldom changed; seconds, bytes."""

    limits: Limits = field(default_factory=Limits)
    pace: Pace = field(default_factory=Pace)
    ca_file: str | None = None
    beat_s: float = 60.0
    spool_wait_s: float = 2.0  # at most so long does an alarm wait for the disk
    adopt_every_s: float = 60.0
    in_memory: int = 1_000  # documents that no disk would take
    in_memory_bytes: int = 64 * 1024 * 1024
    lines_in_memory_bytes: int = 8 * 1024 * 1024  # of documents that lie on disk as well
    load_wait_s: float = 5.0
    hold_directory: Path | None = None  # where the checkpoints lie
    sinks: tuple[Sink, ...] = ()
    closer_audits: bool = True  # whether the service is asked what to audit closely


class Delivery:
    """Keeps and sends documents; `tick` is called about every second while there is work."""

    def __init__(
        self,
        spool: Path,
        target: Target | None,
        health: Health,
        options: Options,
        tick: Callable[[], None],
    ) -> None:
        self._health, self._options, self._on_tick = health, options, tick
        self._outbox = Outbox()
        self._spool = Spool(spool, options.limits, health)
        self._worker = Worker("witness-spool", self._tick, min(options.beat_s / 10, 1.0))
        self._poster: Poster | None = None
        if target is not None:
            self._poster = Poster(
                target, self._outbox, health, self._load, self._settled, options.pace
            )
        self._order = itertools.count(1)
        self._adopts_again = False
        self._adopting: Iterator[list[Entry]] | None = None
        self._adopted_at = 0.0

    def begin_in_child(self) -> None:
        """Begin anew after a fork."""
        self._worker.reset()
        self._outbox.begin_in_child()
        self._spool.begin_in_child()
        if self._poster is not None:
            self._poster.begin_in_child()
        self._adopts_again = False
        self._adopting = None

    def say(self, kind: str, make: Callable[[], dict[str, Any]], wait_s: float = 0.0) -> Entry:
        """Keep and send a document, waiting at most so long for the disk.

        It has a path when it is durable. `make` is called once, by whichever thread needs the
        line first.
        """
        entry = Entry(kind, next(self._order), build=lambda: wire.to_line(make()))
        if sys.is_finalizing():
            self._spool.keep_alone(entry)
            return entry
        if kind == "alarm" or self._worker.waiting < self._options.in_memory:
            self._worker.do(lambda: self._keep(entry), wait_s)
        self._outbox.add([entry])
        if self._poster is not None:
            self._poster.wake()
        return entry

    def start(self) -> None:
        """Have the ticks begin."""
        self._worker.start()

    def adopt(self, every: bool) -> None:
        """Take over, in the background, what earlier processes left in the spool.

        With `every` again and again: on a spool that a thousand nodes share one of them is enough.
        """
        if self._poster is not None:
            self._adopts_again = every
            self._worker.do(self._adopt)

    def close(self, deadline: float) -> None:
        """Write and send what can be until a deadline (monotonic); let go of the spool."""
        self._worker.do(_nothing, deadline - time.monotonic())
        if self._poster is not None:
            self._poster.finish(deadline)
        self._worker.do(self._leave, deadline - time.monotonic())
        self._worker.stop(deadline - time.monotonic())

    @property
    def idle(self) -> bool:
        """Tell whether nothing is to be adopted, written or posted."""
        busy = self._worker.busy or self._adopting is not None
        return not busy and not self._outbox.waiting()

    def status(self) -> dict[str, Any]:
        """Tell what waits, and whether disk and network do their part."""
        waiting = self._outbox.waiting()
        posts = self._poster is not None
        pause = self._poster.not_before - time.monotonic() if self._poster is not None else 0.0
        return {
            "waiting": len(waiting),
            "waiting_alarms": sum(entry.kind == "alarm" for entry in waiting),
            "only_in_memory": sum(entry.path is None for entry in waiting),
            "spool": None if self._spool.folder is None else str(self._spool.folder),
            "spool_documents": self._spool.count,
            "spool_bytes": self._spool.size,
            "disk_hangs": self._worker.stuck,
            "posts": posts,
            "next_try_in_s": max(round(pause, 1), 0.0) if posts else None,
        }

    def _keep(self, entry: Entry) -> None:
        try:
            self._spool.keep(entry)
            if self._poster is None:
                self._outbox.settle(entry, "kept")
                entry.forget_line()
            else:
                self._outbox.forget_lines(self._options.lines_in_memory_bytes)
        except OSError as error:
            self._health.failed("writing to the spool", error)
            shed = self._outbox.shed(self._options.in_memory, self._options.in_memory_bytes)
            if shed:
                self._health.failed("keeping within memory", "dropped documents", shed)
        except Exception as error:
            self._health.failed(f"writing a document of kind {entry.kind}", error)

    def _tick(self) -> None:
        self._on_tick()
        due = time.monotonic() - self._adopted_at > self._options.adopt_every_s
        if self._adopts_again and due and self._adopting is None:
            self._adopt()

    def _adopt(self) -> None:
        self._adopted_at = time.monotonic()
        self._adopting = self._spool.adopting()
        self._adopt_on(self._adopting)

    def _adopt_on(self, steps: Iterator[list[Entry]]) -> None:
        """Take one step; the next one comes after what was said meanwhile."""
        if steps is not self._adopting:
            return
        try:
            found = next(steps, None)
        except OSError as error:
            self._health.failed("adopting a spool", error)
            return
        if found is None:
            self._adopting = None
            return
        if found and self._poster is not None:
            self._health.count("adopted", len(found))
            self._outbox.add(found)
            self._poster.wake()
        self._worker.submit(lambda: self._adopt_on(steps))

    def _load(self, entries: list[Entry]) -> None:
        def load() -> None:
            for entry in entries:
                try:
                    self._spool.read(entry)
                except OSError as error:
                    self._health.failed("reading the spool", error)

        self._worker.do(load, self._options.load_wait_s)

    def _settled(self, entries: list[Entry], reason: dict[str, Any] | None) -> None:
        def settle() -> None:
            for entry in entries:
                try:
                    if reason is None:
                        self._spool.remove(entry)
                    else:
                        self._spool.reject(entry, reason)
                except OSError as error:
                    self._health.failed("tidying the spool", error)

        self._worker.do(settle)

    def _leave(self) -> None:
        lost = [one for one in self._outbox.waiting() if one.path is None]
        for entry in lost:
            self._keep(entry)  # the disk may take it by now
        self._adopting = None
        self._spool.close()
        self._outbox.clear()


def _nothing() -> None:
    return
