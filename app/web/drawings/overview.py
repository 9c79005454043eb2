"""How many alarms fell into each part of a longer range, and which part does the page show?

Drawn on the server, so that it stands without a script; each segment is a link that shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup

from app.store.timeline_bins import Histogram
from app.web.drawings.shapes import Drawing, n
from app.web.words import count

WIDE, NARROW, HEIGHT = 1180.0, 356.0, 96.0
TOP, BASE = 14.0, 72.0
LEFT = 34.0
_DAY = timedelta(days=1)
_STEPS = (
    *(timedelta(minutes=m) for m in (1, 5, 10, 30)),
    *(timedelta(hours=h) for h in (1, 2, 4, 6, 12)),
    *(timedelta(days=d) for d in (1, 2, 5, 7, 14, 30, 60, 90, 180, 365, 730)),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of the range that the page shows, and the address of any other part."""

    start: datetime
    end: datetime
    between: Callable[[datetime, datetime], str]


def overview(
    bins: Histogram, shown: Shown, zone: ZoneInfo, *, narrow: bool = False, brush: bool = True
) -> Markup:
    """Draw the bars, their scale, the brush over the shown part and the links."""
    width = NARROW if narrow else WIDE
    drawing = _Linked(width, HEIGHT)
    axis = _Axis(bins.start, bins.end, width)
    most = max((one.alarms for one in bins.bins), default=0)
    top = _round_up(most)
    for value in (0, top // 2, top) if top > 1 else (0, top):
        y = BASE - (BASE - TOP) * value / max(top, 1)
        drawing.line(LEFT, y, width, y, "s-line")
        drawing.text(LEFT - 6, y + 4, f"{value:,}", "rgt tiny")
    drawing.path(_bars(bins, axis, top), "f-ink2")
    _ticks(drawing, axis, zone, 3 if narrow else 8)
    if bins.counted_from is not None:
        drawing.rect(LEFT, TOP, axis.x(bins.counted_from) - LEFT, BASE - TOP, "f-hatch s-edge")
    if brush:
        _brush(drawing, axis, shown)
    _links(drawing, axis, shown, 8 if narrow else 24)
    key = "ov-s" if narrow else "ov"
    return drawing.finish(key, "Alarms over time", _described(bins), fluid=True, role="group")


@dataclass(frozen=True, slots=True)
class _Axis:
    """The horizontal axis: where a moment lies."""

    start: datetime
    end: datetime
    width: float

    def x(self, at: datetime) -> float:
        """Place a moment, inside the drawing."""
        share = (at - self.start) / (self.end - self.start)
        return LEFT + (self.width - LEFT) * min(max(share, 0.0), 1.0)


class _Linked(Drawing):
    """A drawing with segments that lead somewhere, outside the order of the Tab key."""

    def segment(self, address: str, x: float, width: float) -> None:
        """Lay a link over a part of the drawing; the list of ranges beside it serves keys."""
        self._parts.append(
            Markup(
                '<a href="{}" tabindex="-1" aria-hidden="true">'
                '<rect x="{}" y="0" width="{}" height="{}" class="f-clear"/></a>'
            ).format(address, n(x), n(width), n(BASE))
        )


def _bars(bins: Histogram, axis: _Axis, top: int) -> str:
    parts = []
    for one in bins.bins:
        left, right = axis.x(one.start), axis.x(one.start + bins.width)
        wide = max(right - left - 0.8, 1.6)
        high = max((BASE - TOP) * one.alarms / max(top, 1), 1.5)
        parts.append(f"M{n(left)} {n(BASE)}v{n(-high)}h{n(wide)}v{n(high)}z")
    return "".join(parts)


def _brush(drawing: Drawing, axis: _Axis, shown: Shown) -> None:
    left, right = axis.x(shown.start), axis.x(shown.end)
    right = max(right, left + 2)
    drawing.rect(left, 4, right - left, BASE - 3, "f-brush s-acc brush")
    for x in (left, right):
        drawing.rect(x - 3, 26, 6, 22, "f-acc brush-end", rx=2)


def _links(drawing: _Linked, axis: _Axis, shown: Shown, segments: int) -> None:
    span = (axis.end - axis.start) / segments
    for at in range(segments):
        start = axis.start + span * at
        left = axis.x(start)
        drawing.segment(shown.between(start, start + span), left, axis.x(start + span) - left)


def _ticks(drawing: Drawing, axis: _Axis, zone: ZoneInfo, most: int) -> None:
    span = axis.end - axis.start
    step = next((one for one in _STEPS if span / one <= most), _STEPS[-1])
    midnight = axis.start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + step * ((axis.start - midnight) // step)
    while at < axis.end:
        if at >= axis.start and axis.x(at) < axis.width - 30:
            text = (
                f"{at.day} {at:%b}" if step >= _DAY or at.hour == at.minute == 0 else f"{at:%H:%M}"
            )
            if step >= timedelta(days=180):
                text = f"{at:%b %Y}"
            drawing.text(axis.x(at), 88, text, "tiny" if axis.x(at) < LEFT + 20 else "mid tiny")
        at += step


def _round_up(most: int) -> int:
    """Give a round top of the scale."""
    if most <= 2:
        return max(most, 1)
    size = 1
    while size * 10 < most:
        size *= 10
    return next(size * factor for factor in (2, 4, 6, 8, 10) if size * factor >= most)


def _described(bins: Histogram) -> str:
    if not bins.bins:
        return "No alarm in this range."
    fullest = max(bins.bins, key=lambda one: one.alarms)
    least = "" if bins.exact else "at least "
    return (
        f"{least}{count(bins.alarms, 'alarm')} from {bins.start:%Y-%m-%d %H:%M} to "
        f"{bins.end:%Y-%m-%d %H:%M} UTC; the most in one bar, {fullest.alarms:,}, "
        f"from {fullest.start:%Y-%m-%d %H:%M} UTC."
    )
