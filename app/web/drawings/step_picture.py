"""What is drawn along the steps of one attempt?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Row = Literal["nonfinite", "ring", "weights"]
FlagState = Literal["before", "inside", "after", "unfinished"]
Note = Literal["not reported", "not reached"]


@dataclass(frozen=True, slots=True)
class PassBeat:
    """Passes of one check that were reported together; evenly spaced as far as is known."""

    row: Row
    first: int
    last: int
    count: int

    def steps(self) -> range | None:
        """Give the steps, None where the count does not fit evenly into the span."""
        if self.count <= 1:
            return range(self.last, self.last + 1)
        every, rest = divmod(self.last - self.first, self.count - 1)
        return None if rest or every == 0 else range(self.first, self.last + 1, every)


@dataclass(frozen=True, slots=True)
class Flag:
    """One checkpoint."""

    step: int
    state: FlagState


@dataclass(frozen=True, slots=True)
class ResumeArrow:
    """One choice; the default is drawn solid."""

    step: int
    lost: int
    default: bool


@dataclass(frozen=True, slots=True)
class StepPicture:
    """Steps `low` to `high`; `dropped` says that the update of the alarm's step was not applied."""

    title: str
    described: str
    low: int
    high: int
    alarm_step: int
    alarm_rows: tuple[Row, ...]
    alarm_says: str
    window: tuple[int, int] | None
    credible_first: int | None
    dropped: bool
    beats: tuple[PassBeat, ...] = ()
    flags: tuple[Flag, ...] = ()
    resumes: tuple[ResumeArrow, ...] = ()
    notes: dict[Row, Note] = field(default_factory=dict)
    clocks: tuple[tuple[int, str], ...] = ()
