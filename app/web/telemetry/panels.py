"""How is one field of a GPU drawn and put into a row of a table, whatever page asks?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from app.actions.telemetry.shown import Curve, Panel
from app.web import words
from app.web.drawings.small_multiple import Line, Mark, Picture, bounds, draw
from witness.rules.cleaning import Clean, MarkKind, clean, marked
from witness.rules.dcgm_fields import Field
from witness.rules.merging import MISSED
from witness.rules.samples import scrape_interval

NO_READING = ("blank", "nan", "infinite", "implausible")

Cells = Callable[[Field, Sequence[Clean]], tuple[str, ...]]
"""Makes the cells of a row out of the GPU's own series, which are cleaned already."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn, seconds since 1970; without a suspect window nothing is shaded."""

    start: float
    end: float
    band: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    jobs: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """One small multiple, and the same as a row of numbers."""

    title: str
    picture: Markup
    risen: bool
    meaning: str
    cells: tuple[str, ...]


def lay_out(panel: Panel, span: Span, key: str, cells: Cells) -> Drawn:
    """Draw one field and write its row; `key` is unique on the page."""
    interval = scrape_interval(one.series for one in panel.curves)
    cleaned = [(one, clean(one.series, interval)) for one in panel.curves]
    own = [one for curve, one in cleaned if curve.role == "suspect"]
    lines = [_line(curve, one) for curve, one in cleaned]
    unit = panel.field.unit
    title = panel.field.title + "".join(f", {name} {value}" for name, value in panel.part)
    ends = _ends(lines, unit)
    others = words.count(len(panel.curves) - len(own), "other GPU")
    picture = Picture(
        key=key,
        title=title,
        described=f"{' to '.join(filter(None, ends))}; this GPU against {others}.",
        start=span.start,
        end=span.end,
        band=span.band,
        marks=span.marks,
        jobs=span.jobs,
        lines=lines,
        gaps=_gaps(own, span, interval),
        odd=[mark.first for one in own for mark in one.marks if mark.kind == "infinite"],
        low=ends[0],
        high=ends[1],
    )
    meaning = panel.field.meaning.shows
    return Drawn(title, draw(picture), panel.risen, meaning, cells(panel.field, own))


def _ends(lines: Sequence[Line], unit: str) -> tuple[str, str]:
    """Write the lowest and the highest value; one alone where nothing moved."""
    low, high = bounds(lines)
    values = {value for line in lines for one in line.stretches for _, value in one}
    if not values:
        return "no reading", ""
    if len(values) == 1:
        return "", f"{number(values.pop(), unit)} throughout"
    return number(low, unit), number(high, unit)


def _line(curve: Curve, cleaned: Clean) -> Line:
    """Cut one GPU's readings at its gaps; samples that are no readings are left out."""
    interval = cleaned.interval_s
    stretches: list[list[tuple[float, float]]] = []
    last: float | None = None
    for time, value in zip(cleaned.times, cleaned.values, strict=True):
        if last is None or (interval and time - last > MISSED * interval):
            stretches.append([])
        stretches[-1].append((time, value))
        last = time
    return Line(stretches, curve.role == "suspect")


def _gaps(own: Sequence[Clean], span: Span, interval: float | None) -> list[tuple[float, float]]:
    """List where this GPU has no reading although one was due, whether or not a sample came."""
    half = (interval or 0.0) / 2
    marks = [mark for one in own for mark in one.marks if mark.kind in NO_READING]
    found = [(mark.first - half, mark.last + half) for mark in marks]
    if not interval:
        return found
    seen = {time for one in own for time in one.series.times if span.start <= time <= span.end}
    longest = 2 * MISSED * interval
    edges = [span.start, *sorted(seen), span.end]
    return found + [(a, b) for a, b in pairwise(edges) if b - a > longest]


def readings_between(own: Sequence[Clean], first: float, last: float) -> list[float]:
    """List the readings of a stretch of time by rising value."""
    samples = (pair for one in own for pair in zip(one.times, one.values, strict=True))
    return sorted(value for time, value in samples if first <= time < last)


def spread(values: Sequence[float], unit: str) -> str:
    """Write the lowest and the highest of sorted values."""
    if not values:
        return "no reading"
    if values[0] == values[-1]:
        return number(values[0], unit)
    return f"{number(values[0], unit)} to {number(values[-1], unit)}"


def dropped(own: Sequence[Clean]) -> str:
    """Say how many samples are no readings, and why."""
    counts: dict[MarkKind, int] = {}
    for one in own:
        for mark in one.marks:
            if mark.kind != "gap":
                counts[mark.kind] = counts.get(mark.kind, 0) + mark.count
    return "; ".join(marked(kind, count) for kind, count in counts.items()) or "none"


def number(value: float, unit: str) -> str:
    """Write a value with its unit."""
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.3g}"
    return f"{text} {unit}".strip()
