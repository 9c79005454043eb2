"""How does a job end after an alarm, so that nothing is lost and the launcher can tell?"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch.distributed as dist

from witness.ddp.alarms import SilentCorruption
from witness.ddp.announcing import Announcer

_log = logging.getLogger(__name__)

EXIT_CODE = 3
"""What a job exits with after an alarm, so that launchers and operators can tell it apart."""

WAIT_S = 10.0
"""Some ranks post on their way out, for 2 s at most; more than that is a rank that is gone."""


def leave(reporter: Any = None) -> NoReturn:
    """End this rank with exit code 3; every rank must call it after an alarm.

    The reporter posts what it can first. The ranks wait for one another, within a bound, because a
    launcher ends all of them as soon as the first one is gone.
    """
    Announcer(reporter).tell("close")
    if dist.is_initialized():
        try:
            waiting = dist.barrier(async_op=True)
            if waiting is not None:
                waiting.wait(datetime.timedelta(seconds=WAIT_S))
        except Exception:
            _log.warning("not every rank came to the end", exc_info=True)
    raise SystemExit(EXIT_CODE)


@contextmanager
def exit_on_alarm(reporter: Any = None) -> Iterator[None]:
    """End with exit code 3 where the body raises `SilentCorruption`; wraps a whole `main`."""
    try:
        yield
    except SilentCorruption:
        leave(reporter)
