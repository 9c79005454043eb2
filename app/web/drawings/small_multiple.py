"""How does one field of a suspect GPU lie among its neighbours, before, in and after the window?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from markupsafe import Markup

from app.web.drawings.shapes import Drawing, n
from app.web.drawings.timeline_marks import put_mark

WIDTH, HEIGHT = 300.0, 106.0
LEFT, RIGHT, TOP, BASE = 6.0, 294.0, 16.0, 78.0
JOBS_AT, MARKS_AT, MARK = BASE + 5.5, BASE + 13.5, 0.7
"""Below the curves: a bar for each job attempt, then the marks, drawn at this scale."""
COLUMNS = 144
"""Two pixels a column: of more samples the lowest and the highest of each are drawn."""
COARSE = ((7, 72), (12, 48))
"""Of up to so many other GPUs each has so many columns; of still more 24: they are a backdrop."""


@dataclass(frozen=True, slots=True)
class Line:
    """One GPU's readings; a new stretch begins after each gap."""

    stretches: Sequence[Sequence[tuple[float, float]]]
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a time; `kind` as in the legend of the timeline."""

    at: float
    kind: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One field over one time, seconds since 1970.

    `band` is the suspect window, None: there is none. `gaps` are where this GPU has no reading,
    `odd` where its samples are infinite, `jobs` from when to when a job is known to have run.
    """

    key: str
    title: str
    described: str
    start: float
    end: float
    band: tuple[float, float] | None
    marks: Sequence[Mark]
    jobs: Sequence[tuple[float, float]]
    lines: Sequence[Line]
    gaps: Sequence[tuple[float, float]]
    odd: Sequence[float]
    low: str
    high: str


def bounds(lines: Iterable[Line]) -> tuple[float, float]:
    """Give the lowest and highest value of all lines; equal ones are put apart."""
    values = [value for line in lines for one in line.stretches for _, value in one]
    values = [value for value in values if isfinite(value)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if low == high:
        return low - max(abs(low) * 0.05, 0.5), high + max(abs(high) * 0.05, 0.5)
    return low, high


class _Scale:
    """Where a time and a value lie in the drawing."""

    def __init__(self, picture: Picture) -> None:
        self.start, self.length = picture.start, max(picture.end - picture.start, 1e-9)
        self.low, high = bounds(picture.lines)
        self.height = high - self.low

    def x(self, time: float) -> float:
        share = (time - self.start) / self.length
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)

    def y(self, value: float) -> float:
        return BASE - (value - self.low) / self.height * (BASE - TOP)


def draw(picture: Picture) -> Markup:
    """Draw it: neighbours thin and grey, the GPU itself on top, window shaded, gaps hatched."""
    drawing, scale = Drawing(WIDTH, HEIGHT), _Scale(picture)
    _ground(drawing, picture, scale)
    _curves(drawing, picture, scale)
    _events(drawing, picture, scale)
    drawing.text(LEFT, 9, picture.high, "tiny")
    drawing.text(LEFT, HEIGHT - 3, picture.low, "tiny")
    return drawing.finish(picture.key, picture.title, picture.described, fluid=True)


def _ground(drawing: Drawing, picture: Picture, scale: _Scale) -> None:
    top, height = TOP - 4, BASE - TOP + 8
    if picture.band is not None:
        begun, ended = (scale.x(time) for time in picture.band)
        drawing.rect(begun, top, ended - begun, height, "f-band")
        drawing.path(f"M{n(begun)} {n(top)}v{n(height)}M{n(ended)} {n(top)}v{n(height)}", "s-sus")
    for first, last in picture.gaps:
        drawing.rect(
            scale.x(first), top, max(scale.x(last) - scale.x(first), 1.5), height, "f-hatch"
        )
    drawing.line(LEFT, BASE + 4, RIGHT, BASE + 4, "s-line")


def _curves(drawing: Drawing, picture: Picture, scale: _Scale) -> None:
    others = sum(not line.is_suspect for line in picture.lines)
    coarse = next((columns for most, columns in COARSE if others <= most), 24)
    for line in picture.lines:
        cls = "s-sus w15 f-clear" if line.is_suspect else "s-edge f-clear"
        columns, fine = (COLUMNS, 10) if line.is_suspect else (coarse, 2)
        for stretch in line.stretches:
            points = thinned(stretch, picture, columns)
            if points:
                placed = [(scale.x(time), scale.y(value)) for time, value in points]
                drawing.path(written(placed, fine), cls)


def _events(drawing: Drawing, picture: Picture, scale: _Scale) -> None:
    for at in picture.odd:
        drawing.text(scale.x(at), TOP + 4, "∞", "tiny mid")
    for first, last in picture.jobs:
        width = max(scale.x(last) - scale.x(first), 2.0)
        drawing.rect(scale.x(first), JOBS_AT, width, 3, "f-job s-pass", stroke_width=".5")
    # Two of one kind on one pixel are one to the eye; the table lists each.
    placed = {(one.kind, round(scale.x(one.at))): None for one in picture.marks}
    for kind, x in placed:
        by_us = kind in ("action", "proposal")
        line, looks = ("s-acc", "1 2") if by_us else ("s-ink", "2 2")
        drawing.path(f"M{x} {n(TOP - 8)}V{n(BASE + 4)}", line, stroke_dasharray=looks)
        half = 7 * MARK
        moved = f"translate({n(x - half)} {n(MARKS_AT - half)}) scale({MARK})"
        put_mark(drawing, kind, transform=moved)


def thinned(
    stretch: Sequence[tuple[float, float]], picture: Picture, columns: int = COLUMNS
) -> list[tuple[float, float]]:
    """Keep the lowest and the highest sample of each column, in their order: no spike is lost."""
    values = [value for _, value in stretch]
    if len(values) > 2 and min(values) == max(values) and isfinite(sum(values)):
        return [stretch[0], stretch[-1]]  # half of all counters never move
    finite = [one for one in stretch if isfinite(one[1])]
    if len(finite) <= 2 * columns:
        return finite
    width = max(picture.end - picture.start, 1e-9) / columns
    filled: dict[int, list[tuple[float, float]]] = {}
    for time, value in finite:
        filled.setdefault(int((time - picture.start) / width), []).append((time, value))
    kept = []
    for column in filled.values():
        ends = {min(column, key=lambda one: one[1]), max(column, key=lambda one: one[1])}
        kept += sorted(ends)
    return kept


def written(points: Sequence[tuple[float, float]], fine: int) -> str:
    """Write a path on a raster of `fine` steps a pixel, as steps from point to point.

    A point alone becomes a short stroke, which can be seen; level runs become one step.
    """
    raster = [(round(x * fine), round(y * fine)) for x, y in points]
    if len(raster) == 1:
        ((x, y),) = raster
        return f"M{_short(x / fine - 1)} {_short(y / fine)}h2"
    last = raster[0]
    steps: list[tuple[int, int]] = []
    for x, y in raster[1:]:
        step = (x - last[0], y - last[1])
        if steps and step[1] == 0 == steps[-1][1]:
            steps[-1] = (steps[-1][0] + step[0], 0)
        elif step != (0, 0):
            steps.append(step)
        last = (x, y)
    numbers = [_short(part / fine) for step in steps for part in step]
    joined = "".join(one if one[0] == "-" else f" {one}" for one in numbers)
    x, y = raster[0]
    return (
        f"M{_short(x / fine)} {_short(y / fine)}l{joined.lstrip()}"
        if steps
        else (f"M{_short(x / fine)} {_short(y / fine)}h1")
    )


def _short(value: float) -> str:
    """Write a number as briefly as a path allows."""
    text = f"{value:.1f}".removesuffix(".0")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
