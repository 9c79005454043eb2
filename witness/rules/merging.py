"""How are samples of one thing put together that came as several series?"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import lt
from statistics import median

MISSED = 1.5
"""Two samples further apart than this many scrape intervals: at least one scrape is missing. Half
way between none (1) and one (2), so that jitter of a third of an interval changes nothing."""


def merged(
    members: list[list[tuple[float, float]]], interval: float | None
) -> tuple[list[float], list[float], int]:
    """Merge by rising time; a sample counts only where the longer series has a hole.

    Gives times, values, and how many samples were left out. Members stand by their first sample.
    """
    if all(before[-1][0] < after[0][0] for before, after in pairwise(filter(None, members))):
        members = [[sample for one in members for sample in one]]  # One after the other.
    if len(members) == 1 and _is_rising(members[0]):
        return [time for time, _ in members[0]], [value for _, value in members[0]], 0
    if interval is None:
        found = [step for one in members for step in steps([time for time, _ in one])]
        interval = median(found) if found else 0.0
    hole = MISSED * interval
    times: list[float] = []
    values: list[float] = []
    left_out = 0
    for samples in sorted(members, key=len, reverse=True):
        taken: dict[float, float] = {}
        for time, value in samples:
            if time in taken or not _in_hole(times, time, hole):
                left_out += 1
            else:
                taken[time] = value
        together = sorted([*zip(times, values, strict=True), *taken.items()], key=lambda s: s[0])
        times = [time for time, _ in together]
        values = [value for _, value in together]
    return times, values, left_out


def _is_rising(samples: list[tuple[float, float]]) -> bool:
    """Tell whether every sample has a time of its own, in order: then there is nothing to merge."""
    times = [time for time, _ in samples]
    return all(map(lt, times, times[1:]))


def _in_hole(times: list[float], time: float, hole: float) -> bool:
    """Tell whether the samples around a time leave room for one more."""
    after = bisect_left(times, time)
    if after < len(times) and times[after] == time:
        return False
    return after in {0, len(times)} or times[after] - times[after - 1] > hole


def steps(times: Sequence[float]) -> list[float]:
    """List the seconds between neighbours."""
    return [later - sooner for sooner, later in pairwise(times) if later > sooner]
