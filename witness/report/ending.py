"""How does a reporter learn that its process ends or was forked?"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from contextlib import suppress
from typing import Protocol

from witness.report import claims


class Ending(Protocol):
    """What has to be closed at the end and begun anew in a child."""

    def close(self, timeout_s: float = 2.0) -> None:
        """Send what is left within a time."""

    def begin_in_child(self) -> None:
        """Forget what is the parent's."""


_watched: weakref.WeakSet[Ending] = weakref.WeakSet()


BOUND_S = 2.0
"""All reporters of a process together hold up its end no longer."""

_finalized_in: int | None = None


def watch(one: Ending) -> None:
    """Close it at the end of the process, and begin it anew in forked children."""
    _watched.add(one)


def expect() -> None:
    """See to it that this process closes at its end what it has begun to use.

    A process of multiprocessing that was forked ends without calling `atexit`.
    """
    global _finalized_in  # noqa: PLW0603 - it is about the process
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None or _finalized_in == os.getpid():
        return
    from multiprocessing import util

    _finalized_in = os.getpid()
    util.Finalize(None, _close_all, exitpriority=10)


def _close_all() -> None:
    deadline = time.monotonic() + BOUND_S
    for one in list(_watched):
        with suppress(Exception):
            one.close(max(deadline - time.monotonic(), 0.0))


def _in_child() -> None:
    with suppress(Exception):
        claims.begin_in_child()
    for one in list(_watched):
        with suppress(Exception):
            one.begin_in_child()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
