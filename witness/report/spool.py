"""How does a document come to lie on disk so that a crash at any moment leaves it whole or absent?

Written beside its place, fsynced, renamed, and the folder fsynced: only then is it kept. All of
this runs in the worker's thread; nothing here knows of the network.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.report import claims, durable
from witness.report.claims import Claim
from witness.report.entries import KINDS, Entry, first_to_drop
from witness.report.health import Health

_STEP = 100  # files
READY, REJECTED, UNREADABLE = ".json", ".rejected", ".unreadable"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may lie in the spool of one process, in documents and in bytes."""

    count: int = 10_000
    size: int = 256 * 1024 * 1024


class Spool:
    """The files of one reporter, and those that it adopted from processes that are gone.

    Not made until first needed. Methods raise OSError where the disk fails.
    """

    def __init__(self, root: Path, limits: Limits, health: Health) -> None:
        self.root, self._limits, self._health = root, limits, health
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Know of nothing: what the parent wrote is the parent's."""
        self._own: Claim | None = None
        self._adopted: dict[Path, Claim] = {}
        self._entries: dict[Path, Entry] = {}
        self._in_folder: Counter[Path] = Counter()
        self._reading: Path | None = None  # a folder that is being adopted
        self._bytes = 0

    @property
    def folder(self) -> Path | None:
        """Give the folder of this process, None before anything was kept."""
        return None if self._own is None else self._own.folder

    @property
    def count(self) -> int:
        """Count the documents in the spool, those that were rejected among them."""
        return len(self._entries)

    @property
    def size(self) -> int:
        """Count the bytes of all documents in the spool."""
        return self._bytes

    def keep(self, entry: Entry) -> None:
        """Write an entry; it has a path when it is durable. Raises OSError.

        Where the disk is full something less important is dropped for an alarm.
        """
        if entry.gone is not None or entry.path is not None:
            return
        line = entry.line()
        if line is None:  # it could not be made, which the poster found out and counted
            return
        if not self._make_room(entry):
            entry.gone = "dropped"
            self._health.failed("keeping the spool within its limits", f"a new {entry.kind}")
            return
        while True:
            try:
                path = self._write(f"{entry.order:010d}.{entry.kind}", READY, line)
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                if not (full and entry.kind == "alarm" and self._drop(entry)):
                    raise
                continue
            entry.path = path
            self._note(entry)
            return

    def keep_alone(self, entry: Entry) -> None:
        """Write an entry into a folder of its own, without a lock of any kind.

        For the very end of the interpreter, where a thread that stopped may hold every lock.
        """
        line = entry.line()
        assert line is not None
        path = claims.make_folder(self.root) / f"{entry.order:010d}.{entry.kind}{READY}"
        durable.write(path, line)
        entry.path = path

    def remove(self, entry: Entry) -> None:
        """Remove the file of an entry that the service has."""
        if entry.path is not None:
            self._forget(entry)
            entry.path.unlink(missing_ok=True)
        self._release_if_done(entry)

    def reject(self, entry: Entry, reason: dict[str, Any]) -> None:
        """Keep a document that the service does not take, with what it said."""
        line = entry.line() or (self.read(entry) if entry.path else None) or b"null"
        said = b'{"reason":%s,"document":%s}' % (json.dumps(reason).encode(), line)
        old = entry.path
        if old is not None:
            self._forget(entry)
        stem = f"{entry.order:010d}.{entry.kind}" if old is None else old.name[: -len(READY)]
        folder = None if old is None else old.parent
        entry.path = self._write(stem, REJECTED, said, folder)
        entry.size, entry.gone = len(said), "rejected"
        self._note(entry)
        if old is not None:
            old.unlink(missing_ok=True)

    def read(self, entry: Entry) -> bytes | None:
        """Read an entry's line; None, with the file set aside, where it is none."""
        assert entry.path is not None
        try:
            line = entry.path.read_bytes()
            if isinstance(json.loads(line), dict) and b"\n" not in line:
                entry.keep_line(line)
                return line
        except FileNotFoundError:
            entry.gone = entry.gone or "removed"
            self._forget(entry)
            return None
        except ValueError:
            pass
        self._forget(entry)
        entry.gone = "unreadable"
        self._health.failed("reading the spool", f"{entry.path.name} is no document")
        entry.path.rename(entry.path.with_suffix(UNREADABLE))
        return None

    def adopting(self) -> Iterator[list[Entry]]:
        """Take over what processes that are gone left, the oldest folder first.

        Gives what it found in small steps, so that an alarm need not wait behind all of it.
        """
        if not self.root.is_dir():
            return
        for folder in claims.left_behind(self.root):
            try:
                claim = claims.take(folder)
                if claim is None:
                    yield []
                    continue
                self._adopted[folder] = claim
                self._reading = folder
                files = sorted(folder.iterdir())
                for first in range(0, len(files), _STEP):
                    yield self._found(files[first : first + _STEP])
            except OSError as error:
                self._health.failed("adopting a spool", error)
            self._reading = None
            self._release_if_empty(folder)

    def close(self) -> None:
        """Let others have the folders."""
        own, self._own = self._own, None
        for claim in [*self._adopted.values(), *([own] if own else [])]:
            claim.release()
        self._adopted.clear()
        self._entries.clear()
        self._in_folder.clear()
        self._bytes = 0

    def _write(self, stem: str, ending: str, content: bytes, folder: Path | None = None) -> Path:
        if folder is None:
            if self._own is None or not self._own.folder.is_dir():
                self._own = claims.make(self.root)
            folder = self._own.folder
        path = folder / (stem + ending)
        durable.write(path, content)
        return path

    def _found(self, files: list[Path]) -> list[Entry]:
        """List the documents among adopted files; a torn one was never said to be kept."""
        found = []
        for file in files:
            number, _, kind = file.name.rsplit(".", 1)[0].partition(".")
            if file.suffix == durable.TORN:
                file.unlink(missing_ok=True)
            elif (
                file.suffix in (READY, REJECTED)
                and kind in KINDS
                and number.isdigit()
                and file.is_file()
            ):
                size = file.stat().st_size
                entry = Entry(kind, int(number), path=file, size=size, adopted=True)
                self._note(entry)
                if file.suffix == REJECTED:
                    entry.gone = "rejected"
                else:
                    found.append(entry)
        return found

    def _make_room(self, entry: Entry) -> bool:
        over = self._limits
        while self._entries and (
            len(self._entries) >= over.count or self._bytes + entry.size > over.size
        ):
            if not self._drop(entry):
                return False
        return True

    def _drop(self, entry: Entry) -> bool:
        """Drop the least important document, unless that is the new one itself."""
        victim = first_to_drop([*self._entries.values(), entry])
        if victim is None or victim is entry or victim.path is None:
            return False
        self._forget(victim)
        victim.gone = victim.gone or "dropped"
        victim.path.unlink(missing_ok=True)
        self._health.failed("keeping the spool within its limits", f"dropped: {victim.kind}")
        return True

    def _note(self, entry: Entry) -> None:
        assert entry.path is not None
        self._entries[entry.path] = entry
        self._in_folder[entry.path.parent] += 1
        self._bytes += entry.size

    def _forget(self, entry: Entry) -> None:
        assert entry.path is not None
        if self._entries.pop(entry.path, None) is not None:
            self._in_folder[entry.path.parent] -= 1
            self._bytes -= entry.size

    def _release_if_done(self, entry: Entry) -> None:
        if entry.path is not None and entry.adopted:
            self._release_if_empty(entry.path.parent)

    def _release_if_empty(self, folder: Path) -> None:
        done = folder != self._reading and not self._in_folder[folder]
        if done and folder in self._adopted:
            self._adopted.pop(folder).release()
