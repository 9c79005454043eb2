"""How do many posts share one commit, and when may an answer leave?

One thread per process writes.  It takes whatever has arrived, applies it in one transaction and
wakes the callers only after the commit: an acknowledged document survives kill -9 at once after.
SQLite starves when many threads write (trials: p99 470 ms against 40 ms), and PostgreSQL saves a
flush per document.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from app.store.database import StoreUnavailable, is_unavailable, writing

log = logging.getLogger(__name__)
T = TypeVar("T")


class Apply(Protocol):
    """Writes documents in a transaction; gives a result for each, in order."""

    def __call__(self, connection: Connection, documents: Sequence[Any]) -> list[Any]:
        """Write them."""


# A larger group gains nothing more and makes the first of it wait.
GROUP_LIMIT = 2_000
# A deadlock or a lost connection is tried again; the transaction left nothing behind.  What took
# longer has waited for its lock already, and the senders wait with it.
TRIES = 3
PAUSE_S = 0.05
PATIENCE_S = 1.0


class QueueFull(Exception):
    """More documents wait than are allowed; the sender should come back later."""


@dataclass(slots=True)
class _Item:
    documents: Sequence[Any]  # handed to `apply` together with those of other items
    work: Callable[[Connection], Any] | None  # or one piece of work of its own
    future: Future[Any]


class Writer:
    """The only writer of this process.

    `apply(connection, documents)` gets the documents of all items of a group and gives a result
    for each, in order.
    """

    def __init__(
        self,
        engine: Engine,
        apply: Apply,
        queue_limit: int = 20_000,
    ) -> None:
        self._engine = writing(engine)
        self._apply = apply
        self._limit = queue_limit
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self.commits = 0
        self.documents = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Count the documents and pieces of work that wait."""
        return self._waiting

    def submit(self, documents: Sequence[Any]) -> Future[list[Any]]:
        """Queue documents that belong together; the future holds a result for each after commit."""
        return self._put(_Item(documents, None, Future()), len(documents))

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run one piece of work in the next group and return its result after the commit.

        Raises what the work raises (it alone is rolled back), StoreUnavailable when the database
        cannot be written, QueueFull when too much waits.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("the writer cannot wait for itself")
        result: T = self._put(_Item((), work, Future()), 1).result()
        return result

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _put(self, item: _Item, weight: int) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the service is stopping")
            if self._waiting and self._waiting + weight > self._limit:
                raise QueueFull(f"{self._waiting} documents wait for the database")
            self._waiting += weight
        self._queue.put(item)
        return item.future

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            group, stop = self._gather(first)
            self._write_group(group)
            with self._lock:
                self._waiting -= sum(len(item.documents) or 1 for item in group)
            if stop:
                return

    def _gather(self, first: _Item) -> tuple[list[_Item], bool]:
        group, size = [first], len(first.documents) or 1
        while size < GROUP_LIMIT:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return group, True
            group.append(item)
            size += len(item.documents) or 1
        return group, False

    def _write_group(self, group: list[_Item]) -> None:
        outcomes: list[tuple[bool, Any]] = []
        began = time.monotonic()
        for attempt in range(1, TRIES + 1):
            try:
                outcomes = self._transaction(group)
                break
            except BaseException as error:  # the thread must outlive whatever happens
                if not is_unavailable(error):
                    log.exception("a group of %d could not be written", len(group))
                    outcomes = [(False, error)] * len(group)
                    break
                if attempt == TRIES or time.monotonic() - began > PATIENCE_S:
                    log.warning("the database cannot be written: %s", error)
                    unavailable = StoreUnavailable(_plain(error))
                    outcomes = [(False, unavailable)] * len(group)
                    break
                time.sleep(PAUSE_S * attempt)
        for item, (good, value) in zip(group, outcomes, strict=True):
            if item.future.cancelled():
                continue
            if good:
                item.future.set_result(value)
            else:
                item.future.set_exception(value)

    def _transaction(self, group: list[_Item]) -> list[tuple[bool, Any]]:
        with self._engine.begin() as connection:
            outcomes = self._documents(connection, group)
            for index, item in enumerate(group):
                if item.work is not None:
                    outcomes[index] = self._alone(connection, item.work)
        self.commits += 1
        self.documents += sum(len(item.documents) for item in group)
        return outcomes

    def _documents(self, connection: Connection, group: list[_Item]) -> list[tuple[bool, Any]]:
        outcomes: list[tuple[bool, Any]] = [(True, [])] * len(group)
        posted = [index for index, item in enumerate(group) if item.documents]
        if not posted:
            return outcomes
        together = [document for index in posted for document in group[index].documents]
        good, results = self._alone(connection, lambda c: self._apply(c, together))
        if good:
            start = 0
            for index in posted:
                end = start + len(group[index].documents)
                outcomes[index] = (True, results[start:end])
                start = end
            return outcomes
        # One of them broke the group: each item alone, so that it costs nobody else.
        log.error("a group of %d documents failed together: %r", len(together), results)
        for index in posted:
            alone = partial(self._apply, documents=group[index].documents)
            outcomes[index] = self._alone(connection, alone)
        return outcomes

    @staticmethod
    def _alone(connection: Connection, work: Callable[[Connection], Any]) -> tuple[bool, Any]:
        savepoint = connection.begin_nested()
        try:
            value = work(connection)
            savepoint.commit()
        except BaseException as error:
            if is_unavailable(error):
                raise
            savepoint.rollback()
            return False, error
        return True, value


def _plain(error: BaseException) -> str:
    """Shorten a driver's message to its first line: the rest can hold statements and values."""
    cause = getattr(error, "orig", None) or error
    text = str(cause).strip().splitlines()
    if isinstance(error, sa.exc.TimeoutError):
        return "no database connection became free in time"
    return text[0] if text else type(cause).__name__
