"""How are the hours of one job drawn: passes of each check, work without a pass, alarms?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from app.web.drawings.rates import Mark, draw_mark
from app.web.drawings.shapes import Drawing, n

LANES = (("nonfinite", "non-finite"), ("ring", "ring"), ("weights", "weights"))
STEP, CELL = 8, 7
_TOP, _LANE, _HEIGHT = 22, 22, 14
HEIGHT = _TOP + len(LANES) * _LANE + 22


@dataclass(frozen=True, slots=True)
class HourStrip:
    """Hours from 1970, `first` to `last`; `passes` by (hour, check), `worked` hours with work."""

    first: int
    last: int
    passes: Mapping[tuple[int, str], int]
    worked: frozenset[int]
    alarms: Sequence[tuple[int, Mark]]

    @property
    def width(self) -> int:
        """Give the width in pixels; a short job still fills a readable stretch."""
        return max((self.last - self.first + 1) * STEP, 120)


def hour_strip(strip: HourStrip) -> Markup:
    """Draw the strip, oldest hour at the left."""
    drawing = Drawing(strip.width, HEIGHT)
    for lane, (check, _) in enumerate(LANES):
        y = _TOP + lane * _LANE
        drawing.line(0, y + _HEIGHT, strip.width, y + _HEIGHT, "s-line")
        for hour in range(strip.first, strip.last + 1):
            _cell(drawing, strip, hour, check, y)
    for hour, mark in strip.alarms:
        if strip.first <= hour <= strip.last:
            draw_mark(drawing, (hour - strip.first) * STEP + CELL / 2, 10, mark)
    _ticks(drawing, strip)
    return drawing.finish("hours", "Passes by hour", _said(strip))


def lane_labels() -> Markup:
    """Draw the labels of the lanes, which stay while the plot scrolls."""
    drawing = Drawing(84, HEIGHT)
    drawing.text(0, 14, "alarms")
    for lane, (_, text) in enumerate(LANES):
        drawing.text(0, _TOP + lane * _LANE + 12, text)
    return drawing.finish_hidden()


def _cell(drawing: Drawing, strip: HourStrip, hour: int, check: str, y: float) -> None:
    x = (hour - strip.first) * STEP
    if strip.passes.get((hour, check), 0) > 0:
        drawing.rect(x, y, CELL, _HEIGHT, "f-pass")
    elif hour in strip.worked:
        side, height = CELL - 1, _HEIGHT - 1
        hatch = "url(#hatch)"
        drawing.rect(x + 0.5, y + 0.5, side, height, "s-edge", fill=hatch, stroke_width=0.7)


def _ticks(drawing: Drawing, strip: HourStrip) -> None:
    y = HEIGHT - 6
    for hour in range(strip.first, strip.last + 1):
        at = datetime.fromtimestamp(hour * 3600, UTC)
        if hour != strip.first and at.hour != 0:
            continue
        x = (hour - strip.first) * STEP
        drawing.path(f"M{n(x + 0.5)} {_TOP}V{y - 10}", "s-line")
        fits = x + 60 <= strip.width or hour == strip.first
        if fits and (hour == strip.first or x >= 90):
            text = f"{at.day} {at:%b}" if at.hour == 0 else f"{at.day} {at:%b %H}:00"
            drawing.text(x, y, text, "tiny")


def _said(strip: HourStrip) -> str:
    parts = []
    for check, text in LANES:
        passed = sum(1 for hour in _hours(strip) if strip.passes.get((hour, check), 0) > 0)
        silent = sum(
            1
            for hour in strip.worked
            if strip.first <= hour <= strip.last and not strip.passes.get((hour, check), 0)
        )
        parts.append(f"{text}: passes in {passed} hours, work without one in {silent}")
    return "; ".join(parts)


def _hours(strip: HourStrip) -> Iterable[int]:
    return range(strip.first, strip.last + 1)
