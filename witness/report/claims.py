"""Which process may send what lies in a folder of the spool?

Each process has a folder of its own and holds a lock in it for as long as it lives. A folder whose
lock can be had was left by a process that is gone. POSIX record locks are used because a forked
child (a worker that loads data) does not inherit them: it cannot keep its dead parent's alive.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import socket
import threading
from contextlib import suppress
from pathlib import Path

from witness.report import durable

LOCK = "lock"
_PREFIX = "run-"
# Where a file system knows no locks, content tells repeats apart at the service all the same.
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_TRIES = 10
_BUSY = {errno.EACCES, errno.EAGAIN}

# A second reporter of this process could have our own locks, and by closing them would drop ours.
_held: dict[tuple[int, int], int] = {}
_guard = threading.Lock()


def begin_in_child() -> None:
    """Forget the folders of the parent after a fork; its locks stay the parent's."""
    global _guard  # noqa: PLW0603 - the parent's lock may be held by a thread that is not here
    _guard = threading.Lock()
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


class Claim:
    """A folder that this process alone may send from."""

    def __init__(self, folder: Path, identity: tuple[int, int]) -> None:
        self.folder = folder
        self._identity = identity

    def release(self) -> None:
        """Let others have the folder; an empty one is removed."""
        with suppress(OSError):  # what cannot be removed is found empty by the next process
            if all(item.name == LOCK for item in self.folder.iterdir()):
                (self.folder / LOCK).unlink(missing_ok=True)
                self.folder.rmdir()
        with _guard:
            descriptor = _held.pop(self._identity, None)
            if descriptor is not None:
                os.close(descriptor)


def make_folder(root: Path) -> Path:
    """Make a folder that nobody has locked; raises OSError."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    host = "".join(c if c.isalnum() or c in "-." else "_" for c in socket.gethostname())[:60]
    folder = root / f"{_PREFIX}{host}-{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    durable.sync_folder(root)
    return folder


def make(root: Path) -> Claim:
    """Make a folder of this process's own under `root`; raise OSError where that fails."""
    for _ in range(_TRIES):  # another process may take a new folder before we lock it
        claim = take(make_folder(root))
        if claim is not None:
            return claim
    raise OSError(errno.EAGAIN, "no folder of one's own can be locked", str(root))


def left_behind(root: Path) -> list[Path]:
    """List the folders under `root`, those of living processes among them, the oldest first."""
    found = []
    for one in root.iterdir():
        with suppress(OSError):  # its owner may remove it meanwhile
            if one.name.startswith(_PREFIX) and one.is_dir():
                found.append((one.stat().st_mtime, one.name, one))
    return [one for _, _, one in sorted(found)]


def take(folder: Path) -> Claim | None:
    """Take a folder if no living process has it; None where one does, or where it is gone."""
    try:
        seen = folder.stat()
        with _guard:
            if (seen.st_dev, seen.st_ino) in _held:
                return None
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    identity = (seen.st_dev, seen.st_ino)
    with _guard:
        if _lock(descriptor) and _still_there(folder / LOCK, descriptor):
            _held[identity] = descriptor
            return Claim(folder, identity)
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NO_LOCKS:
            os.close(descriptor)
            raise
    return True


def _still_there(lock: Path, descriptor: int) -> bool:
    """Tell whether the file that is locked is still the folder's: its last owner may have gone."""
    ours = os.fstat(descriptor)
    try:
        now = lock.stat()
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (now.st_dev, now.st_ino)
