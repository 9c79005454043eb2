"""How does a reporter learn that its process ends or was forked?"""

from __future__ import annotations

import atexit
import os
import sys
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


def watch(one: Ending) -> None:
    """Close it at the end of the process, and begin it anew in forked children."""
    _watched.add(one)
    # A process of multiprocessing that was forked ends without calling `atexit`.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _close_all, exitpriority=10)


def _close_all() -> None:
    for one in list(_watched):
        with suppress(Exception):
            one.close()


def _in_child() -> None:
    with suppress(Exception):
        claims.begin_in_child()
    for one in list(_watched):
        with suppress(Exception):
            one.begin_in_child()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
