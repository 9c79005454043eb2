"""Do a counter's rises crowd into the suspect window, or does it rise all the time?

Held against the counter's own past. Two comparisons, each at half the level: how many of the steps
that rose lie in the window (exact, by drawing without replacement), and whether the largest rise
does, by the rule of `levels.py`. Steps are compared and not units, because errors come in bursts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp, lgamma

from witness.rules.cleaning import Clean
from witness.rules.observations import FALSE_ALARMS, Window


@dataclass(frozen=True, slots=True)
class Burst:
    """How the rises in the window compare with those before.

    `inside` and `before` count sample-to-sample steps that rose. `chance` is how often rises that
    come at any time alike would be so many, or so large, in the window; None where the counter did
    not rise in it, or where there was nothing before to compare with. `lowest` is the least chance
    that these samples could have given, had every rise been in the window.
    """

    inside: int
    before: int
    chance: float | None
    lowest: float = 1.0

    @property
    def habit(self) -> bool:
        """Tell whether the rises are the counter's habit, as far as these samples could tell.

        Where too few samples could have shown a difference, not seeing one proves no habit.
        """
        return (
            self.before > 0
            and self.chance is not None
            and self.chance > FALSE_ALARMS >= self.lowest
        )


def burst(clean: Clean, rising: Mapping[float, float], window: Window) -> Burst:
    """Compare a counter in the window, and after it, with its past.

    `rising` maps a sample's time to what it rose by.
    """
    steps = [at for _, at in pairwise(clean.times)]
    before = [at for at in steps if at <= window.suspect_from]
    inside = len(steps) - len(before)
    rises_before = [rising[at] for at in before if at in rising]
    rises_in = [rising[at] for at in steps[len(before) :] if at in rising]
    if not before or not rises_in:
        return Burst(len(rises_in), len(rises_before), None)
    dense = at_least(len(rises_in), len(rises_in) + len(rises_before), inside, len(steps))
    largest, past = max(rises_in), max(rises_before, default=0.0)
    large = inside / len(steps) * past / largest if 0 < past < largest else 1.0
    rose = len(rises_in) + len(rises_before)
    lowest = at_least(min(rose, inside), rose, inside, len(steps))
    chance = min(1.0, 2 * min(dense, large))
    return Burst(len(rises_in), len(rises_before), chance, 2 * lowest)


def at_least(hits: int, marked: int, drawn: int, of: int) -> float:
    """Give the chance that `drawn` of `of`, taken blindly, hold `hits` or more of the `marked`."""
    lowest = max(hits, 0, drawn - (of - marked))
    total = _log_choose(of, drawn)
    chance = sum(
        exp(_log_choose(marked, count) + _log_choose(of - marked, drawn - count) - total)
        for count in range(lowest, min(marked, drawn) + 1)
    )
    return min(1.0, chance)


def _log_choose(total: int, part: int) -> float:
    return lgamma(total + 1) - lgamma(part + 1) - lgamma(total - part + 1)
