"""Has a GPU's level (temperature, margin, clock) left its own past and its neighbours'?

The rule, without a limit in degrees or megahertz:

1. Cut the time before the suspect window, and the window itself, into blocks of equal length; a
   block's value is the median of its readings.
2. Take off what all GPUs share: the median of the other GPUs in the same block. Take off what is
   the GPU's own: its median over the blocks before the window.
3. What is left is a residual. If nothing happened to the suspect, its residuals in the window are
   draws like all the others: those of its neighbours, and its own from before. Of `s` draws among
   `s + n` the largest is one of the `s` with chance s/(s + n).
4. Where the largest does stand in the suspect's window and is r times as large as the largest of
   all the others, that chance falls by r at least, for any distribution of residuals whose tail is
   no heavier than Cauchy's. Times the number of fields that are tested, it is the chance stated.

A shift is called when that chance is at most `FALSE_ALARMS`. It rests on two things that are not
proven: that the GPUs compared do the same work, and that blocks of some minutes forget each other.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from witness.rules.cleaning import Clean
from witness.rules.observations import Window

FEWEST_PEERS = 3
"""With fewer the median of the others follows one of them."""

BLOCK_S = 300.0
"""Longer than a die takes to warm up, shorter than a room takes."""

LEAST_READINGS = 2
"""A block is at least so many scrape intervals long, so that it holds a reading or two."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The largest residual of one field of the suspect in its window.

    `before` and `during` are its medians, `residual` what neither its past nor its neighbours
    explain, in the bad direction, `others` the largest of all other residuals, from `draws` of
    them. `chance` is for this field alone and 1 where the residual is not the largest. `first` and
    `last` bound the block.
    """

    field_id: int
    before: float
    during: float
    residual: float
    others: float
    draws: int
    chance: float
    peers: int
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A level that could not be compared, and why."""

    field_id: int
    why: str


_Blocks = Mapping[int, float]
"""A GPU's median by number of block; blocks from 0 on are in the window, the others before."""


def shift(suspect: Clean, peers: Sequence[Clean], window: Window) -> Shift | NotJudged:
    """Compare one field of the suspect with its past and with its peers' same field.

    Peers are GPUs that did the same work: of the node, and of the same index on other nodes.
    """
    number = suspect.field.id
    interval = suspect.interval_s or 0.0
    until = max(window.alarm, window.suspect_from + LEAST_READINGS * interval)
    length = _block_length(window, until, interval)
    if length <= 0:
        return NotJudged(number, "there are no samples from before the suspect window")
    cut = _Cut(window.suspect_from, length, ceil((until - window.suspect_from) / length))
    own = cut.medians(suspect)
    others = [blocks for blocks in (cut.medians(peer) for peer in peers) if blocks]
    if len(others) < FEWEST_PEERS:
        return NotJudged(number, f"fewer than {FEWEST_PEERS} other GPUs report it")
    middle = _Middle.of(others)
    residuals = [
        _residuals(middle.apart(own, ours=False)),
        *(_residuals(middle.apart(one, ours=True)) for one in others),
    ]
    return _judged(suspect, own, residuals, cut, len(others))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Blocks of one length, counted from the beginning of the suspect window."""

    origin: float
    length: float
    inside: int

    def medians(self, one: Clean) -> _Blocks:
        found: dict[int, list[float]] = {}
        for time, value in zip(one.times, one.values, strict=True):
            block = int((time - self.origin) // self.length)
            if block < self.inside:
                found.setdefault(block, []).append(value)
        return {block: median(values) for block, values in found.items()}

    def times(self, block: int) -> tuple[float, float]:
        return self.origin + block * self.length, self.origin + (block + 1) * self.length


def _block_length(window: Window, until: float, interval: float) -> float:
    before = window.suspect_from - window.start
    longest = min(until - window.suspect_from, BLOCK_S, before)
    return min(max(longest, LEAST_READINGS * interval), before)


@dataclass(frozen=True, slots=True)
class _Middle:
    """The peers' medians in each block, sorted: the suspect must not move what they are held to."""

    sorted: Mapping[int, list[float]]

    @classmethod
    def of(cls, peers: Sequence[_Blocks]) -> "_Middle":
        found: dict[int, list[float]] = {}
        for one in peers:
            for block, value in one.items():
                found.setdefault(block, []).append(value)
        return cls({block: sorted(values) for block, values in found.items()})

    def apart(self, one: _Blocks, *, ours: bool) -> _Blocks:
        """Take the others off one GPU, block by block; `ours` where it is one of the peers."""
        return {
            block: value - (self.without(block, value) if ours else median(self.sorted[block]))
            for block, value in one.items()
            if len(self.sorted.get(block, ())) >= FEWEST_PEERS
        }

    def without(self, block: int, value: float) -> float:
        """Give the median of the others, for a peer that is one of these values."""
        return _median_without(self.sorted[block], value)


def _median_without(values: Sequence[float], value: float) -> float:
    """Give the median of sorted values, at least two, without one of them."""
    at = bisect_left(values, value)
    rest = len(values) - 1
    low, high = (rest - 1) // 2, rest // 2
    return (values[low + (low >= at)] + values[high + (high >= at)]) / 2


def _residuals(apart: _Blocks) -> _Blocks:
    """Take a GPU's own median before the window off its distances to the others."""
    past = {block: value for block, value in apart.items() if block < 0}
    if not past:
        return {}
    level = median(past.values())
    found = {block: value - level for block, value in apart.items() if block >= 0}
    if len(past) > 1:
        # A block must not be held against a middle that it helped to set.
        ordered = sorted(past.values())
        for block, value in past.items():
            found[block] = value - _median_without(ordered, value)
    return found


def _judged(
    suspect: Clean, own: _Blocks, residuals: list[_Blocks], cut: _Cut, peers: int
) -> Shift | NotJudged:
    field = suspect.field
    tested = {b: field.direction * v for b, v in residuals[0].items() if b >= 0}
    draws = [field.direction * v for b, v in residuals[0].items() if b < 0]
    draws += [field.direction * v for one in residuals[1:] for v in one.values()]
    past = [value for block, value in own.items() if block < 0]
    if not tested or not draws or not past:
        return NotJudged(field.id, "its samples and those of other GPUs do not overlap enough")
    block = max(tested, key=lambda number: tested[number])
    # A sensor's own step is the least that others differ by, even where all of them stand still.
    others = max(*draws, field.step, 1e-9)
    rank = len(tested) / (len(tested) + len(draws))
    first, last = cut.times(block)
    return Shift(
        field_id=field.id,
        before=median(past),
        during=own[block],
        residual=tested[block],
        others=others,
        draws=len(draws),
        chance=rank * others / tested[block] if tested[block] > others else 1.0,
        peers=peers,
        first=first,
        last=last,
    )
