"""How do documents get from the outbox to the service, however long it is away?

One lazy daemon thread. It waits longer after each failure, as long as the service asks for, and
takes a document out only when the service said of this very document that it has it.
"""

from __future__ import annotations

import http.client
import random
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from witness.report.answers import Meaning, read_answer
from witness.report.entries import Entry, Outbox
from witness.report.health import Health
from witness.report.transport import request


@dataclass(frozen=True, slots=True)
class Target:
    """Where to post, and with what; `token` is asked before each request, so it may be rotated."""

    url: str
    token: Callable[[], str | None]
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How large batches are and how long is waited; seconds, bytes, lines."""

    lines: int = 500
    size: int = 4 * 1024 * 1024
    first_pause_s: float = 0.5
    longest_pause_s: float = 60.0
    longest_asked_s: float = 600.0
    not_now_s: float = 600.0
    answer_s: float = 10.0
    longest_answer_s: float = 60.0
    mib_s: float = 1.0  # a slow network brings this many MiB a second


class Poster:
    """Posts what is in the outbox.

    `load` reads entries whose lines lie on disk only; `settled` is told of entries that the
    service took or refused (reason None: took). Both must come back soon.
    """

    def __init__(
        self,
        target: Target,
        outbox: Outbox,
        health: Health,
        load: Callable[[list[Entry]], None],
        settled: Callable[[list[Entry], dict[str, object] | None], None],
        pace: Pace | None = None,
    ) -> None:
        self._target, self._outbox, self._health = target, outbox, health
        self._load, self._settled = load, settled
        self._pace = pace or Pace()
        # The job's own generator must not be touched: its draws decide what is trained.
        self._chance = random.SystemRandom()
        self._context: ssl.SSLContext | None = None
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Have no thread."""
        self._thread: threading.Thread | None = None
        self._closing_by: float | None = None
        self._lines = self._pace.lines
        self._failed_in_a_row = 0
        self._slow_in_a_row = 0
        self.not_before = 0.0

    def wake(self) -> None:
        """Have the thread run; where none can be started any more nothing is sent."""
        with self._outbox.changed:
            self._closing_by = None
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="witness-post", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return
                self._thread = thread

    def finish(self, by: float) -> None:
        """Try once more without waiting, and end by `by` (monotonic) or with the first failure."""
        with self._outbox.changed:
            thread = self._thread
            if thread is None or not thread.is_alive():
                return
            self._closing_by = by
            self._outbox.changed.notify_all()
        if thread is not threading.current_thread():
            thread.join(max(by - time.monotonic(), 0.0))

    def _run(self) -> None:
        while True:
            with self._outbox.changed:
                due, wait = self._due()
                if not due:
                    if self._closing_by is not None:
                        self._thread = None
                        return
                    self._outbox.changed.wait(wait)
                    continue
            try:
                problem = self._send(due)
            except Exception as error:  # the thread must not end while there is something to send
                problem = "unexpected"
                self._health.failed("posting", error)
                self.not_before = time.monotonic() + self._pace.longest_pause_s
            with self._outbox.changed:
                if self._closing_by is not None and (problem or self._left() <= 0):
                    self._thread = None
                    return

    def _due(self) -> tuple[list[Entry], float | None]:
        """Give what may be sent now, else how long to wait, None for until something comes."""
        waiting = self._outbox.waiting()
        if not waiting:
            return [], None
        now = time.monotonic()
        if self._closing_by is not None:
            return [one for one in waiting if one.not_before <= now][: self._lines], None
        if now < self.not_before:
            return [], self.not_before - now
        due = [one for one in waiting if one.not_before <= now]
        if due:
            return due[: self._lines], None
        return [], min(one.not_before for one in waiting) - now

    def _left(self) -> float:
        return float("inf") if self._closing_by is None else self._closing_by - time.monotonic()

    def _send(self, due: list[Entry]) -> str | None:
        """Send one batch; give what was wrong, None where nothing was."""
        batch, lines = self._batch(due)
        if not batch:
            return None
        asked_s: float | None = None
        try:
            meaning, asked_s = self._posted(lines)
        except TimeoutError:
            self._slow_in_a_row += 1
            meaning = Meaning(problem="the service did not answer in time")
        except (OSError, http.client.HTTPException, ValueError) as error:
            meaning = Meaning(problem=f"{type(error).__name__}: {error}")
        self._note(batch, meaning)
        self._wait_after(meaning, asked_s, len(batch))
        return meaning.problem

    def _batch(self, due: list[Entry]) -> tuple[list[Entry], list[bytes]]:
        """Choose as many as fit, at least one, and have their lines."""
        chosen: list[Entry] = []
        size = 0
        for entry in due:
            if chosen and size + entry.size > self._pace.size:
                break
            chosen.append(entry)
            size += entry.size
        missing = [entry for entry in chosen if self._line(entry) is None and entry.gone is None]
        if missing:
            self._load(missing)
        ready = [(entry, self._line(entry)) for entry in chosen]
        ready = [(entry, line) for entry, line in ready if entry.gone is None]
        for entry, line in ready:
            if line is None:  # the disk does not answer, or does not let us read
                entry.not_before = time.monotonic() + self._pace.longest_pause_s
        found = [(entry, line) for entry, line in ready if line is not None]
        return [entry for entry, _ in found], [line for _, line in found]

    def _line(self, entry: Entry) -> bytes | None:
        try:
            return entry.line()
        except Exception as error:
            self._health.failed(f"writing a document of kind {entry.kind}", error)
            return None

    def _posted(self, lines: list[bytes]) -> tuple[Meaning, float | None]:
        body = b"\n".join(lines) + b"\n"
        headers = {"Content-Type": "application/x-ndjson", "User-Agent": "silent-witness-reporter"}
        token = self._target.token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self._context is None and self._target.url.startswith("https:"):
            self._context = ssl.create_default_context(cafile=self._target.ca_file)
        answer = request(
            "POST",
            events_url(self._target.url),
            headers,
            body,
            timeout_s=min(self._answer_s(len(body)), max(self._left(), 0.05)),
            context=self._context,
        )
        return read_answer(answer, len(lines)), answer.retry_after_s(time.time())

    def _answer_s(self, size: int) -> float:
        pace = self._pace
        patience = min(pace.answer_s * 2.0 ** min(self._slow_in_a_row, 30), pace.longest_answer_s)
        return patience + size / (pace.mib_s * 1024 * 1024)

    def _note(self, batch: list[Entry], meaning: Meaning) -> None:
        """Take out what is dealt with, and remember what went wrong."""
        accepted = [batch[place] for place in meaning.accepted]
        for entry in accepted:
            self._outbox.settle(entry, "accepted")
        if accepted:
            self._health.count("posted", len(accepted))
            self._settled(accepted, None)
        for place, reason in meaning.rejected.items():
            self._outbox.settle(batch[place], "rejected")
            self._health.failed("posting a document", f"refused: {reason}")
            self._settled([batch[place]], reason)
        if meaning.not_now:
            why = meaning.problem or "this token is for another cluster or namespace"
            self._health.failed("posting a document for now", why)
            for place in meaning.not_now:
                batch[place].not_before = time.monotonic() + self._pace.not_now_s
        if meaning.problem is not None:
            self._health.failed("posting", meaning.problem)

    def _wait_after(self, meaning: Meaning, asked_s: float | None, lines: int) -> None:
        pace = self._pace
        if meaning.divide:
            self._lines = max(lines // 2, 1)
        elif meaning.problem is None:
            self._lines = min(self._lines * 2, pace.lines)
            self._slow_in_a_row = 0
        if meaning.problem is None or meaning.divide or meaning.rejected or meaning.not_now:
            self._failed_in_a_row = 0
            self.not_before = time.monotonic() + min(asked_s or 0.0, pace.longest_asked_s)
            return
        doubled = pace.first_pause_s * 2.0 ** min(self._failed_in_a_row, 30)
        longest = min(doubled, pace.longest_pause_s)
        self._failed_in_a_row += 1
        # Jitter keeps the thousand nodes of a job from coming back in the same second.
        pause = self._chance.uniform(longest / 2, longest)
        asked = min(asked_s or 0.0, pace.longest_asked_s)
        self.not_before = time.monotonic() + (asked + pause if asked else pause)


def events_url(url: str) -> str:
    """Give the address for batches under a service's address, with or without a path of its own."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/api/v1/events"
