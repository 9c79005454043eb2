"""Which of a series' samples are readings, and what is everything else?

Nothing is dropped without a mark: DCGM writes huge numbers where it has no value, exporters print
NaN and infinities, scrapes go missing. A page draws the marks, a rule reads only the readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isinf, isnan
from types import MappingProxyType
from typing import Literal

from witness.rules import words
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.merging import MISSED
from witness.rules.moments import at, span
from witness.rules.samples import Series, scrape_interval

MarkKind = Literal["blank", "nan", "infinite", "implausible", "gap", "left_out"]
"""`blank`: DCGM's "no value". `gap`: no sample where one was due. `left_out`: samples of a second
series that ran at the same time."""

# DCGM's blanks, and the three codes above each: not found, not supported, not permitted. The 64-bit
# ones have all become one float by the time they arrive, near 2^63.
_INT32_BLANK = 2_147_483_632.0
_FP64_BLANK = 140_737_488_355_328.0
_INT64_BLANK = 9.2e18
_CODES = 4

_WORDS: Mapping[MarkKind, tuple[str, str]] = MappingProxyType(
    {
        "blank": ("sample says “no value”", "samples say “no value”"),
        "nan": ("sample is not a number", "samples are not numbers"),
        "infinite": ("sample is infinite", "samples are infinite"),
        "implausible": (
            "sample is no value that the hardware can report",
            "samples are no values that the hardware can report",
        ),
        "gap": ("scrape is missing", "scrapes are missing"),
        "left_out": (
            "sample of a second series at the same time was left out",
            "samples of a second series at the same time were left out",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One stretch that holds no readings.

    `first` and `last` are the times of its first and last sample; of a gap, the times of the
    samples before and after it. `count` is samples, for a gap about how many are missing.
    """

    kind: MarkKind
    first: float
    last: float
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Clean:
    """A series' readings, and marks for the rest by rising time.

    `interval_s` is the scrape interval that gaps were measured with, None where none was given
    and too few samples tell. `dropped` counts samples that are no readings.
    """

    series: Series
    field: Field
    times: tuple[float, ...]
    values: tuple[float, ...]
    marks: tuple[Mark, ...]
    interval_s: float | None
    dropped: int


def is_blank(value: float) -> bool:
    """Tell whether a number is one of DCGM's ways to say that there is no value."""
    return (
        value >= _INT64_BLANK
        or _INT32_BLANK <= value < _INT32_BLANK + _CODES
        or _FP64_BLANK <= value < _FP64_BLANK + _CODES
    )


def clean(series: Series, interval_s: float | None = None) -> Clean:
    """Part a series into readings and marks.

    `interval_s` is the scrape interval where it is known; else it is estimated from the series.
    """
    field = BY_ID[series.field_id]
    known = interval_s if interval_s is not None else scrape_interval([series])
    times, values, runs = series.times, series.values, list[Mark]()
    if not _are_readings(field, values):
        samples = list(zip(times, values, strict=True))
        kinds = [_kind(field, value) for value in values]
        runs = _runs(samples, kinds)
        readings = [sample for sample, kind in zip(samples, kinds, strict=True) if kind is None]
        times = tuple(time for time, _ in readings)
        values = tuple(value for _, value in readings)
    marks = [*runs, *_gaps(series.times, known), *_left_out(series)]
    return Clean(
        series=series,
        field=field,
        times=times,
        values=values,
        marks=tuple(sorted(marks, key=lambda mark: (mark.first, mark.kind))),
        interval_s=known,
        dropped=len(series.values) - len(values),
    )


def _are_readings(field: Field, values: tuple[float, ...]) -> bool:
    """Tell at a glance that all are readings; False where each has to be looked at.

    Nearly every series is nothing else, and below the smallest blank none is one. A NaN hides from
    a maximum but not from a sum.
    """
    return not values or (
        max(values) <= min(field.high, _INT32_BLANK - 1)
        and min(values) >= field.low
        and not isnan(sum(values))
    )


def _kind(field: Field, value: float) -> MarkKind | None:
    if isnan(value):
        return "nan"
    if isinf(value):
        return "infinite"
    if is_blank(value):
        return "blank"
    return None if field.plausible(value) else "implausible"


def _runs(samples: list[tuple[float, float]], kinds: list[MarkKind | None]) -> list[Mark]:
    marks = []
    paired = zip(kinds, samples, strict=True)
    for kind, group in groupby(paired, key=lambda pair: pair[0]):
        if kind is not None:
            times = [time for _, (time, _) in group]
            marks.append(_mark(kind, times[0], times[-1], len(times)))
    return marks


def _gaps(times: tuple[float, ...], interval: float | None) -> list[Mark]:
    if interval is None or interval <= 0:
        return []
    return [
        _mark("gap", before, after, max(1, round((after - before) / interval) - 1))
        for before, after in pairwise(times)
        if after - before > MISSED * interval
    ]


def _left_out(series: Series) -> list[Mark]:
    if not series.left_out or not series.times:
        return []
    return [_mark("left_out", series.times[0], series.times[-1], series.left_out)]


def marked(kind: MarkKind, count: int) -> str:
    """Say how many samples are no readings, and what they are."""
    one, many = _WORDS[kind]
    return words.counted(count, one, many)


def _mark(kind: MarkKind, first: float, last: float, count: int) -> Mark:
    when = at(first) if first == last else span(first, last)
    return Mark(kind, first, last, count, f"{marked(kind, count)}, {when}.")
