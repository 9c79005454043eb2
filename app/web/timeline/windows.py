"""When did the steps of a suspect window run?

Steps are mapped to time backwards from the alarm by the attempt's step time, or by the time of the
last pass where that ended the step before the window.  Where neither is known there is no band:
a window of unknown length is not drawn as short.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

How = Literal["step time", "last pass"]
Flag = Literal["before", "inside", "after"]
LONGEST = timedelta(days=365)


def first_moment(
    at: datetime,
    step: int,
    first: int | None,
    step_time_s: float | None,
    last_pass: tuple[int, datetime] | None,
) -> tuple[datetime, How] | None:
    """Say when the window's first step began and how that is known; None where it is not."""
    if first is None or first > step:
        return None
    if last_pass is not None and last_pass[0] == first - 1 and last_pass[1] <= at:
        return last_pass[1], "last pass"
    if step_time_s is None or step_time_s <= 0:
        return None
    seconds = (step - first + 1) * step_time_s
    if seconds > LONGEST.total_seconds():
        return None
    return at - timedelta(seconds=seconds), "step time"


def flag(step: int, windows: list[tuple[int, int]]) -> Flag:
    """Say how a checkpoint's step lies to the suspect windows of its job; "before" without any.

    Inside one window is inside, whatever the others say.
    """
    if any(first <= step <= last for first, last in windows):
        return "inside"
    if windows and all(step > last for _, last in windows):
        return "after"
    return "before"
