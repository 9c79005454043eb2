"""How does one field of a suspect GPU lie among its neighbours, before, in and after the window?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from markupsafe import Markup

from app.web.drawings.shapes import Drawing, n

WIDTH, HEIGHT = 300.0, 96.0
LEFT, RIGHT, TOP, BASE = 6.0, 294.0, 16.0, 78.0
COLUMNS = 144
"""Two pixels a column: of more samples the lowest and the highest of each are drawn."""


@dataclass(frozen=True, slots=True)
class Line:
    """One GPU's readings; a new stretch begins after each gap."""

    stretches: Sequence[Sequence[tuple[float, float]]]
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """One field over one time, seconds since 1970.

    `suspect_from` None: no suspect window. `gaps` are where this GPU has no reading, `odd` where
    its samples are infinite.
    """

    key: str
    title: str
    described: str
    start: float
    end: float
    suspect_from: float | None
    alarms: Sequence[float]
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


def draw(picture: Picture) -> Markup:
    """Draw it: neighbours thin and grey, the GPU itself on top, window shaded, gaps hatched."""
    low, high = bounds(picture.lines)
    drawing = Drawing(WIDTH, HEIGHT)

    def x(time: float) -> float:
        share = (time - picture.start) / max(picture.end - picture.start, 1e-9)
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)

    def y(value: float) -> float:
        return BASE - (value - low) / (high - low) * (BASE - TOP)

    if picture.suspect_from is not None and picture.alarms:
        begun, alarm = x(picture.suspect_from), x(picture.alarms[0])
        drawing.rect(begun, TOP - 4, alarm - begun, BASE - TOP + 8, "f-band")
    for first, last in picture.gaps:
        width = max(x(last) - x(first), 1.5)
        drawing.rect(x(first), TOP - 4, width, BASE - TOP + 8, "f-hatch")
    drawing.line(LEFT, BASE + 4, RIGHT, BASE + 4, "s-line")
    for line in picture.lines:
        cls = "s-sus w2 f-clear" if line.is_suspect else "s-edge f-clear"
        for stretch in line.stretches:
            d = _path([(x(time), y(value)) for time, value in thinned(stretch, picture)])
            drawing.path(d, cls)
    for at in picture.odd:
        drawing.text(x(at), TOP + 4, "∞", "tiny mid")
    for at in picture.alarms:
        drawing.path(f"M{n(x(at))} {n(TOP - 8)}V{n(BASE + 4)}", "s-ink", stroke_dasharray="2 2")
    drawing.text(LEFT, 9, picture.high, "tiny")
    drawing.text(LEFT, HEIGHT - 4, picture.low, "tiny")
    if picture.alarms:
        last = max(picture.alarms)
        word = "alarm" if len(picture.alarms) == 1 else "alarms"
        drawing.text(max(min(x(last), RIGHT - 2), LEFT + 90), HEIGHT - 4, word, "tiny rgt")
    return drawing.finish(picture.key, picture.title, picture.described, fluid=True)


def thinned(stretch: Sequence[tuple[float, float]], picture: Picture) -> list[tuple[float, float]]:
    """Keep the lowest and the highest sample of each column, in their order: no spike is lost."""
    finite = [one for one in stretch if isfinite(one[1])]
    if len(finite) <= 2 * COLUMNS:
        return finite
    width = max(picture.end - picture.start, 1e-9) / COLUMNS
    columns: dict[int, list[tuple[float, float]]] = {}
    for time, value in finite:
        columns.setdefault(int((time - picture.start) / width), []).append((time, value))
    kept = []
    for column in columns.values():
        ends = {min(column, key=lambda one: one[1]), max(column, key=lambda one: one[1])}
        kept += sorted(ends)
    return kept


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Join points; one alone becomes a short stroke, which can be seen."""
    if len(points) == 1:
        ((px, py),) = points
        return f"M{n(px - 1)} {n(py)}h2"
    return "M" + "L".join(f"{n(px)} {n(py)}" for px, py in points)
