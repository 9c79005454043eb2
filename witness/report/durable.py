"""How is a file written so that it is whole or absent after a crash at any moment?"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

# Some network file systems cannot sync a folder; their renames are durable by themselves.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR}
TORN = ".tmp"


def write(path: Path, content: bytes) -> None:
    """Write beside the place, fsync, rename, fsync the folder; several may write one file at once.

    The last one wins, and nobody ever reads half a file. Raises OSError; then nothing is there.
    """
    torn = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TORN}")
    try:
        descriptor = os.open(torn, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        torn.rename(path)
    except BaseException:
        with suppress(OSError):
            torn.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was made or renamed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)
