"""By how much did a counter rise, and between which samples, when it may have been reset?

The rule: a counter never falls. Where it does it was set to 0 in between (driver reload, GPU reset,
exporter start), so what it shows afterwards was counted since: it is added as it is. A counter that
the board keeps cannot be reset so; there a fall is marked and adds nothing. A first sample adds
nothing: what it shows was counted before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from witness.rules.dcgm_rows import Resets


@dataclass(frozen=True, slots=True)
class Rise:
    """The counter grew by `amount` after the sample at `before` and by the one at `at`."""

    before: float
    at: float
    amount: float
    after_reset: bool = False


@dataclass(frozen=True, slots=True)
class Fall:
    """The counter fell between two samples: it was reset, or (`kept`) contradicts itself."""

    before: float
    at: float
    was: float
    became: float
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """All rises and falls of a counter over its samples, by rising time."""

    rises: tuple[Rise, ...]
    falls: tuple[Fall, ...]

    @property
    def total(self) -> float:
        """Give the whole rise; never negative."""
        return sum(rise.amount for rise in self.rises)

    def between(self, after: float, until: float) -> tuple[Rise, ...]:
        """List the rises first seen in a sample later than `after` and not later than `until`."""
        return tuple(rise for rise in self.rises if after < rise.at <= until)


def counted(times: Sequence[float], values: Sequence[float], resets: Resets) -> Counted:
    """Walk a counter's readings, which must stand by rising time."""
    rises, falls = [], []
    samples = list(zip(times, values, strict=True))
    for (before, was), (time, became) in pairwise(samples):
        if became > was:
            rises.append(Rise(before, time, became - was))
        elif became < was:
            falls.append(Fall(before, time, was, became, kept=resets == "kept"))
            if resets != "kept" and became > 0:
                rises.append(Rise(before, time, became, after_reset=True))
    return Counted(tuple(rises), tuple(falls))
