"""How are a rate with its interval, and the incidents of a window, drawn in one row?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log10
from typing import Literal

from markupsafe import Markup

from app.store.columns import micros
from app.web.drawings.shapes import Drawing, n
from witness.rules.repeat_offenders import Rate

Mark = Literal["ring", "nonfinite", "weights", "nobody"]
MARKS: tuple[Mark, ...] = ("nobody", "weights", "nonfinite", "ring")

RATE_WIDTH, RATE_HEIGHT = 210, 20
STRIP_WIDTH, STRIP_HEIGHT = 182, 18
_MARK_OF: dict[str, Mark] = {
    "nonfinite": "nonfinite",
    "weights": "weights",
    "no_majority": "weights",
    "reduced": "nobody",
    "unknown": "nobody",
    "incomplete": "nobody",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """Decades of a logarithmic axis, the same for all rows of a table."""

    low: int
    high: int

    @classmethod
    def of(cls, rates: Iterable[float]) -> Scale:
        """Choose whole decades that hold all rates; at least 1e-7 to 1."""
        found = [log10(rate) for rate in rates if rate > 0]
        low = min([-7, *(floor(one) for one in found)])
        return cls(max(low, -12), max([0, *(ceil(one) for one in found)]))

    def x(self, rate: float) -> float:
        """Place a rate; what lies outside stands at the edge."""
        if rate <= 0:
            return 0.0
        share = (log10(rate) - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0) * RATE_WIDTH

    def ticks(self) -> list[int]:
        """Give the decades that are written, few enough to read."""
        step = max(1, ceil((self.high - self.low) / 3))
        return list(range(self.high, self.low - 1, -step))


def mark_of(kind: str) -> Mark:
    """Choose the mark of a finding's kind: the shape of the check that made it."""
    return _MARK_OF.get(kind, "ring")


def rate_axis(scale: Scale, fleet: float | None) -> Markup:
    """Draw the axis above the column: decades, and where the fleet's rate lies."""
    drawing = Drawing(RATE_WIDTH, 14)
    fleet_x = None if fleet is None else scale.x(fleet)
    if fleet_x is not None:
        drawing.text(max(fleet_x, 12), 10, "fleet", "tiny mid")
    for decade in scale.ticks():
        x = scale.x(10.0**decade)
        if fleet_x is not None and abs(x - fleet_x) < 38:
            continue
        anchor = "tiny rgt" if x > RATE_WIDTH - 12 else "tiny" if x < 12 else "tiny mid"
        drawing.text(x, 10, f"1e{decade}" if abs(decade) > 2 else f"{10.0**decade:g}", anchor)
    return drawing.finish_hidden()


def rate_interval(rate: Rate | None, scale: Scale, fleet: float | None, key: str) -> Markup:
    """Draw one rate with its 95 % interval; an unknown one is hatched."""
    drawing = Drawing(RATE_WIDTH, RATE_HEIGHT)
    if rate is None or rate.mean is None:
        box = {"fill": "url(#hatch)", "stroke_dasharray": "3 2"}
        drawing.rect(0.5, 4, RATE_WIDTH - 1, 11, "s-edge", **box)
        return drawing.finish(f"r{key}", "Rate", "unknown: no audited hours are known")
    drawing.line(0, 10, RATE_WIDTH, 10, "s-line")
    if fleet is not None:
        x = scale.x(fleet)
        drawing.path(f"M{n(x)} 1v18", "s-ink", stroke_dasharray="2 2")
    low, high = scale.x(rate.low), scale.x(rate.high)
    drawing.path(f"M{n(low)} 10H{n(high)}", "s-edge", stroke_width=3)
    drawing.path(f"M{n(low)} 6v8M{n(high)} 6v8", "s-edge w15")
    drawing.circle(scale.x(rate.mean), 10, 4.5, "f-ink")
    said = f"{rate.mean:.2g} an audited hour, 95 percent from {rate.low:.2g} to {rate.high:.2g}"
    return drawing.finish(f"r{key}", "Rate", said)


def incident_strip(
    moments: Sequence[tuple[datetime, Mark]],
    since: datetime,
    until: datetime,
    served: Sequence[tuple[int, int]],
    key: str,
) -> Markup:
    """Draw incidents along a window; `served` is when audited work ran, empty: none is known.

    `served` holds (start, end) in microseconds since 1970.
    """
    drawing = Drawing(STRIP_WIDTH, STRIP_HEIGHT)
    begin = micros(since)
    scale = (STRIP_WIDTH - 14) / max(micros(until) - begin, 1)

    def x(at: int) -> float:
        return min(max((at - begin) * scale, 0.0), STRIP_WIDTH - 14.0) + 7

    if served:
        drawing.path(f"M0 14H{STRIP_WIDTH}", "s-edge", stroke_dasharray="1 3")
        bars = _bars((x(start), x(end)) for start, end in served)
        drawn = "".join(f"M{n(first)} 14H{n(last)}" for first, last in bars)
        drawing.path(drawn, "s-pass", stroke_width=3)
    else:
        box = {"fill": "url(#hatch)", "stroke_dasharray": "3 2"}
        drawing.rect(0.5, 11, STRIP_WIDTH - 1, 6, "s-edge", **box)
    for mark in MARKS:
        # Marks closer than three pixels would only hide each other; the count stands beside.
        places = {round(x(micros(at)) / 3) * 3 for at, one in moments if one == mark}
        draw_marks(drawing, sorted(places), 7.5, mark)
    count = len(moments)
    said = f"{count} {'incident' if count == 1 else 'incidents'}"
    if not served:
        said += ", audited work unknown"
    return drawing.finish(f"i{key}", "Incidents in the window", said)


def _bars(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join stretches that touch on the drawing; the shortest is four pixels long."""
    bars: list[tuple[float, float]] = []
    for first, end in sorted(spans):
        last = max(end, first + 4)
        if bars and first <= bars[-1][1] + 1:
            bars[-1] = (bars[-1][0], max(bars[-1][1], last))
        else:
            bars.append((first, last))
    return bars


def draw_marks(drawing: Drawing, xs: Sequence[float], y: float, mark: Mark) -> None:
    """Draw incidents of one check: a shape for each check, all of them in one path."""
    if not xs:
        return
    if mark == "ring":
        drawing.path("".join(_circle(x, y, 5) for x in xs), "f-sur s-sus", stroke_width=2.4)
        drawing.path("".join(_circle(x, y, 1.6) for x in xs), "f-sus")
    elif mark == "nonfinite":
        corners = "".join(f"M{n(x)} {n(y - 5)}L{n(x + 5)} {n(y + 4.3)}H{n(x - 5)}Z" for x in xs)
        drawing.path(corners, "f-sus")
    elif mark == "weights":
        drawing.path("".join(f"M{n(x - 4.5)} {n(y - 4.5)}h9v9h-9Z" for x in xs), "f-sus")
    else:
        crosses = "".join(f"M{n(x - 4)} {n(y - 4)}l8 8m0 -8l-8 8" for x in xs)
        drawing.path(crosses, "s-amb w25")


def draw_mark(drawing: Drawing, x: float, y: float, mark: Mark) -> None:
    """Draw one incident."""
    draw_marks(drawing, [x], y, mark)


def _circle(x: float, y: float, radius: float) -> str:
    """Write a circle as a piece of a path."""
    return (
        f"M{n(x - radius)} {n(y)}a{radius} {radius} 0 1 0 {2 * radius} 0"
        f"a{radius} {radius} 0 1 0 {-2 * radius} 0"
    )


def one_mark(mark: Mark) -> Markup:
    """Draw a mark alone, for the legend."""
    drawing = Drawing(14, 14)
    draw_mark(drawing, 7, 7, mark)
    return drawing.finish_hidden()
