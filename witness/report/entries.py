"""What waits to be sent, in which order is it sent, and what goes first when there is no room?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

# Sent in this order, dropped in the opposite one: an alarm is why the rest is there.
KINDS = ("alarm", "rank_map", "replay", "checkpoints", "elastic_event", "passes")
_TIDY = 100  # entries
_RANK = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(eq=False, slots=True)
class Entry:
    """One document on its way.

    `build` makes its line when somebody first needs it; None where the line lies in `path` only.
    `gone` says why it needs nothing more: accepted, rejected or dropped.
    """

    kind: str
    order: int
    build: Callable[[], bytes] | None = None
    path: Path | None = None
    size: int = 0
    adopted: bool = False
    not_before: float = 0.0  # of the monotonic clock
    gone: str | None = None
    _line: bytes | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def line(self) -> bytes | None:
        """Give the line, made now if need be; None where only the file has it.

        Raises what `build` raises, to the first who asks; the entry is gone then.
        """
        with self._lock:
            if self._line is None and self.build is not None:
                build, self.build = self.build, None
                try:
                    self._line = build()
                except Exception:
                    self.gone = "unwritable"
                    raise
                self.size = len(self._line)
            return self._line

    def keep_line(self, line: bytes) -> None:
        """Keep the line that was read from the file."""
        with self._lock:
            self._line, self.size = line, len(line)

    def forget_line(self) -> None:
        """Leave the line to the file."""
        with self._lock:
            if self.path is not None:
                self._line = None

    @property
    def in_memory(self) -> int:
        """Count the bytes held in memory."""
        line = self._line
        return 0 if line is None else len(line)


def sending_order(entry: Entry) -> tuple[int, int]:
    """Sort by what matters most, then by age."""
    return _RANK.get(entry.kind, len(KINDS)), entry.order


def first_to_drop(entries: Iterable[Entry]) -> Entry | None:
    """Choose what to drop: the least important kind; of passes and the like the oldest.

    Of alarms the newest: the first alarm of a job is the one that its successors follow from.
    """
    return max(entries, key=_dropping_order, default=None)


def _dropping_order(entry: Entry) -> tuple[int, bool, int]:
    rank = _RANK.get(entry.kind, len(KINDS))
    age = entry.order if entry.kind == "alarm" else -entry.order
    return rank, entry.gone == "rejected", age


class Outbox:
    """What is to be posted; every method may be called from any thread."""

    def __init__(self) -> None:
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Be empty: what waits in the parent is the parent's."""
        self.changed = threading.Condition(threading.RLock())
        self._entries: list[Entry] = []
        self._tidy_at = _TIDY

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries and wake whoever waits."""
        with self.changed:
            self._entries.extend(entries)
            if len(self._entries) > self._tidy_at:
                self._entries = [one for one in self._entries if one.gone is None]
                self._tidy_at = 2 * len(self._entries) + _TIDY
            self.changed.notify_all()

    def settle(self, entry: Entry, how: str) -> None:
        """Say that an entry needs nothing more; it leaves when next somebody looks."""
        with self.changed:
            entry.gone = entry.gone or how

    def clear(self) -> None:
        """Forget everything."""
        with self.changed:
            self._entries.clear()

    def forget_lines(self, size: int) -> None:
        """Leave lines to their files while more than so many bytes are in memory."""
        with self.changed:
            held = sum(one.in_memory for one in self._entries)
            for one in self._entries:
                if held <= size:
                    return
                held -= one.in_memory
                one.forget_line()
                held += one.in_memory

    def waiting(self) -> list[Entry]:
        """List what waits, in the order of sending."""
        with self.changed:
            self._entries = [one for one in self._entries if one.gone is None]
            return sorted(self._entries, key=sending_order)

    def shed(self, count: int, size: int) -> int:
        """Keep within a limit what lies in memory only; give how many were dropped for it."""
        dropped = 0
        with self.changed:
            loose = [one for one in self._entries if one.path is None and one.gone is None]
            while len(loose) > count or sum(one.in_memory for one in loose) > size:
                victim = first_to_drop(loose)
                if victim is None or len(loose) == 1:
                    break
                loose.remove(victim)
                self.settle(victim, "dropped")
                dropped += 1
        return dropped
