"""How do all rings of one audit look side by side, and which of them hold mismatches?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from markupsafe import Markup

from app.web.drawings.shapes import Drawing, n

MOST_RINGS = 16
_COLUMNS = 8
_SEGMENTS = 24
_LONGEST_WRITTEN = 64
_RADIUS = 10.0


@dataclass(frozen=True, slots=True)
class SmallRing:
    """One ring: its local index, its length and the positions of what differs."""

    index: int
    length: int
    differing: tuple[int, ...]


def draw_multiples(rings: Sequence[SmallRing]) -> Markup:
    """Draw up to sixteen rings, eight in a row, each as a circle of its comparisons."""
    rows = -(-len(rings) // _COLUMNS)
    drawing = Drawing(340, 52.0 * rows)
    for place, ring in enumerate(rings):
        row, column = divmod(place, _COLUMNS)
        cx, cy = 20 + 43.0 * column, 13 + 52.0 * row
        _circle(drawing, ring, cx, cy)
        label = f"{ring.index}: {len(ring.differing)}"
        label += f"/{ring.length}" if ring.length <= _LONGEST_WRITTEN else ""
        drawing.text(cx, cy + 29, label, "mid tiny b" if ring.differing else "mid tiny")
    return drawing.finish("rings", "All rings of this audit", described(rings), fluid=True)


def described(rings: Sequence[SmallRing]) -> str:
    """Say in words which rings hold mismatches."""
    hit = [ring for ring in rings if ring.differing]
    if not hit:
        return f"{len(rings)} rings, one for each local index; no comparison differs."
    shown = [f"ring {ring.index}: {len(ring.differing)} of {ring.length}" for ring in hit]
    rest = len(rings) - len(hit)
    return (
        f"{len(rings)} rings, one for each local index. Comparisons that differ: "
        f"{', '.join(shown)}. The other {rest}: none."
    )


def _circle(drawing: Drawing, ring: SmallRing, cx: float, cy: float) -> None:
    if ring.length > _SEGMENTS:
        drawing.circle(cx, cy, _RADIUS, "f-none s-pass w2")
        for position in ring.differing[:_SEGMENTS]:
            _arc(
                drawing,
                cx,
                cy,
                (position - 0.5) / ring.length,
                (position + 1.5) / ring.length,
                True,
            )
        return
    hit = set(ring.differing)
    for position in range(ring.length):
        pad = 0.16 / ring.length
        start, end = position / ring.length + pad, (position + 1) / ring.length - pad
        _arc(drawing, cx, cy, start, end, position in hit)


def _arc(drawing: Drawing, cx: float, cy: float, start: float, end: float, differs: bool) -> None:
    end = max(end, start + 0.02)
    points = (
        (cx + _RADIUS * sin(2 * pi * turn), cy - _RADIUS * cos(2 * pi * turn))
        for turn in (start, end)
    )
    (x1, y1), (x2, y2) = points
    large = 1 if end - start > 0.5 else 0
    d = f"M{n(x1)} {n(y1)}A{n(_RADIUS)} {n(_RADIUS)} 0 {large} 1 {n(x2)} {n(y2)}"
    drawing.path(d, "f-none s-sus", stroke_width="3.5") if differs else drawing.path(
        d, "f-none s-pass w2"
    )
