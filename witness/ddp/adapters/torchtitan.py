"""What does an `SDCReplayMismatch` of torchtitan say, as an alarm document?

torchtitan runs the first forward and backward of a checked step again on the same rank. A mismatch
is a GPU that contradicts itself: there is no second opinion, so nothing says which of its answers
was wrong, and a defect that is always wrong in the same way never mismatches. So this is a check of
its own name, without culprits, verdicts or suspects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from witness.ddp.announcing import Announcer

CHECK = "self replay"
"""No check of this package: the service keeps and shows it, and recommends nothing by itself."""

# In its first form the exception called the count of steps since the start `attempt`.
_FIELDS = {
    "rank": "rank",
    "replay": "replay",
    "attempt": "local_step",
    "local_step": "local_step",
    "signature_mismatch": "signature_mismatch",
}


def is_mismatch(error: BaseException) -> bool:
    """Tell torchtitan's exception by its class name and fields, without importing torchtitan."""
    named = any(kind.__name__ == "SDCReplayMismatch" for kind in type(error).__mro__)
    return named and isinstance(getattr(error, "step", None), int)


def alarm_of(
    error: BaseException,
    *,
    world_size: int | None = None,
    start_step: int | None = None,
    last_pass: int | None = None,
) -> dict[str, Any]:
    """Give the alarm document; raises TypeError for any other exception.

    `last_pass` is the last step whose replay agreed, `start_step` the first step since the start,
    both as torchtitan counts. With neither there is no suspect window: torchtitan checks only some
    steps, and the exception does not say which passed. The step was not applied.
    """
    if not is_mismatch(error):
        raise TypeError(f"{type(error).__name__} is no SDCReplayMismatch of torchtitan")
    step: int = error.step  # type: ignore[attr-defined]
    first = start_step if last_pass is None else last_pass + 1
    said = {
        ours: getattr(error, theirs) for theirs, ours in _FIELDS.items() if hasattr(error, theirs)
    }
    alarm: dict[str, Any] = {
        "check": CHECK,
        "step": step,
        **said,
        "update_applied": False,
        "source": "torchtitan",
    }
    if first is not None:
        alarm["suspect_window"] = [first, step]
    if world_size is not None:
        alarm["world_size"] = world_size
    return alarm


@contextmanager
def reporting(reporter: Any, **known: Any) -> Iterator[None]:
    """Report a mismatch that leaves the body, and let it go on; `known` goes to `alarm_of`.

    Wraps `trainer.train()`. torchtitan raises on every rank, so any rank's reporter may be the one
    that posts.
    """
    try:
        yield
    except Exception as error:
        if is_mismatch(error):
            Announcer(reporter).tell("alarm", alarm_of(error, **known))
        raise
