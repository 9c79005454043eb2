"""How does a ring of many ranks look around the comparisons that differ?

The ring is cut open and only the stretches around mismatches are drawn, one box a rank, from top
to bottom; a small circle beside them shows where on the whole ring they lie.
"""

from __future__ import annotations

from math import cos, pi, sin

from markupsafe import Markup

from app.web.drawings.ring import WIDTH, Result, RingPicture, Role, Stop
from app.web.drawings.shapes import Drawing, n

MOST_BOXES = 14
_BOX_WIDTH, _BOX_HEIGHT, _LEFT = 148.0, 30.0, 8.0
_STEP = 58.0
_EDGE: dict[Role, str] = {
    "named": "f-sur s-sus w25",
    "ambiguous": "f-sur s-amb w25",
    "third": "f-sur s-edge w15 dash",
    "plain": "f-sur s-edge",
}


def stretches(results: tuple[Result, ...], most: int = MOST_BOXES) -> tuple[list[range], int]:
    """Give the positions to draw, as ranges that may run past the end of the ring and wrap.

    A range holds both ends of each comparison that differs and one rank on either side.  The
    second value counts the differing comparisons that no longer fit.
    """
    count = len(results)
    hits = [index for index, result in enumerate(results) if result == "differs"]
    runs: list[list[int]] = []
    for hit in hits:
        first, last = hit - 1, hit + 2
        if runs and first <= runs[-1][1] + 1:
            runs[-1][1] = last
        else:
            runs.append([first, last])
    if len(runs) > 1 and runs[-1][1] + 1 >= runs[0][0] + count:
        first_run = runs.pop(0)
        runs[-1][1] = first_run[1] + count
    kept: list[range] = []
    room = most
    for first, last in runs:
        end = min(last, first + count - 1, first + room - 1)
        if room < 3 or end <= first + 1:
            break
        kept.append(range(first, end + 1))
        room -= end - first + 1
    drawn = {position % count for run in kept for position in run[:-1]}
    return kept, sum(hit not in drawn for hit in hits)


def draw_stretches(picture: RingPicture) -> Markup:
    """Draw a long ring; without any mismatch only the circle."""
    runs, left_out = stretches(picture.results)
    count = len(picture.stops)
    height = 16 + sum(len(run) * _STEP + 10 for run in runs)
    drawing = Drawing(WIDTH, max(height + (14 if left_out else 0), 132))
    y = 12.0
    for number, run in enumerate(runs):
        following = runs[(number + 1) % len(runs)]
        y = _run(drawing, picture, run, y)
        hidden = (following[0] - run[-1]) % count
        y = _break(drawing, y, hidden)
    if left_out:
        drawing.text(_LEFT, y + 8, f"{left_out:,} more that differ stand in the table", "t-sus")
    _whole(drawing, picture)
    return drawing.finish(picture.key, picture.title, picture.described, fluid=True)


def _run(drawing: Drawing, picture: RingPicture, run: range, y: float) -> float:
    count = len(picture.stops)
    for position in run:
        _box(drawing, picture.stops[position % count], y)
        if position != run[-1]:
            _link(drawing, picture.results[position % count], y + _BOX_HEIGHT)
            y += _STEP
    return y + _BOX_HEIGHT


def _box(drawing: Drawing, stop: Stop, y: float) -> None:
    drawing.rect(_LEFT, y, _BOX_WIDTH, _BOX_HEIGHT, _EDGE[stop.role], rx=5)
    drawing.text(_LEFT + 10, y + 19, f"rank {stop.rank}", "b")
    if stop.place:
        drawing.text(_LEFT + _BOX_WIDTH + 8, y + 19, stop.place, "m")


def _link(drawing: Drawing, result: Result, y: float) -> None:
    x = _LEFT + 40
    looks, arrow = ("s-sus w25", "a-sus") if result == "differs" else ("s-edge w15", "a-ink")
    drawing.line(x, y, x, y + _STEP - _BOX_HEIGHT - 2, looks, marker_end=f"url(#{arrow})")
    drawing.mark(x, y + 12, result, 7)
    drawing.text(x + 14, y + 17, result, "t-sus" if result == "differs" else "")


def _break(drawing: Drawing, y: float, hidden: int) -> float:
    x = _LEFT + 40
    drawing.line(x, y + 2, x, y + 34, "s-edge w15 dash")
    noun = "comparison" if hidden == 1 else "comparisons"
    drawing.text(x + 14, y + 22, f"{hidden:,} {noun} not drawn", "tiny")
    return y + 38


def _whole(drawing: Drawing, picture: RingPicture) -> None:
    """Draw the whole ring small, with a tick where a comparison differs."""
    cx, cy, radius = WIDTH - 46, 50.0, 36.0
    drawing.circle(cx, cy, radius, "f-none s-pass w2")
    count = len(picture.results)
    ticks = sorted(
        {index * 360 // count for index, r in enumerate(picture.results) if r == "differs"}
    )
    for degree in ticks:
        angle = 2 * pi * (degree + 0.5) / 360
        inner, outer = radius - 6, radius + 6
        drawing.path(
            f"M{n(cx + inner * sin(angle))} {n(cy - inner * cos(angle))}"
            f"L{n(cx + outer * sin(angle))} {n(cy - outer * cos(angle))}",
            "s-sus w25",
        )
    drawing.text(cx, cy + radius + 22, f"{picture.differing:,} of {count:,}", "mid b")
    drawing.text(cx, cy + radius + 38, "differ" if picture.differing != 1 else "differs", "mid")
