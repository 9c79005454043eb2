"""When was a step, by what a job told of its own progress?

Jobs report steps in beats of a minute; between two beats the time is interpolated, and what is told
is a span that surely holds the step.
"""

from collections.abc import Iterable
from dataclasses import dataclass

BEAT_S = 60.0
"""A beat sums up to a minute, and is sent at its end."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A step whose time is known, in seconds since 1970."""

    step: int
    time: float


def earliest(
    step: int, marks: Iterable[Mark], alarm: Mark, step_time_s: float | None = None
) -> float | None:
    """Give a time at or before which the step had not begun; None where nothing tells.

    Interpolated between the neighbouring marks, then a beat earlier. Before the first mark, or with
    none at all, the step's own time carries on backwards from the alarm.
    """
    known = sorted({*marks, alarm}, key=lambda mark: (mark.step, mark.time))
    before = [mark for mark in known if mark.step <= step]
    after = [mark for mark in known if mark.step > step]
    if before and after:
        low, high = before[-1], after[0]
        share = (step - low.step) / (high.step - low.step)
        return low.time + share * max(high.time - low.time, 0.0) - BEAT_S
    if before:
        return before[-1].time - BEAT_S
    pace = step_time_s if step_time_s and step_time_s > 0 else _pace(known)
    if pace is None:
        return None
    return after[0].time - (after[0].step - step) * pace - BEAT_S


def _pace(known: list[Mark]) -> float | None:
    """Give the mean seconds a step over all marks; None where they do not tell."""
    first, last = known[0], known[-1]
    if last.step <= first.step or last.time <= first.time:
        return None
    return (last.time - first.time) / (last.step - first.step)
