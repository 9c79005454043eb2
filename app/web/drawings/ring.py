"""How does the ring of one local index look: who replayed whom, and which comparisons differ?

Up to twelve ranks stand on an ellipse.  A longer ring is drawn as the stretches around what
differs, so that a ring of two thousand ranks is as small as one of twelve.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin
from typing import Literal

from markupsafe import Markup

from app.web.drawings.shapes import Drawing, n

LARGEST_RING = 12
"""With more ranks the boxes no longer fit on an ellipse of the column's width."""

Result = Literal["differs", "same", "unknown"]
Role = Literal["named", "ambiguous", "third", "plain"]


@dataclass(frozen=True, slots=True)
class Stop:
    """One rank of the ring; `place` says where it ran, short."""

    rank: int
    place: str
    role: Role


@dataclass(frozen=True, slots=True)
class ThirdAsked:
    """The stop at position `third` replayed the stop at `target` again."""

    third: int
    target: int
    says: str


@dataclass(frozen=True, slots=True)
class RingPicture:
    """The stops in the order of the cycle; `results[i]` is stop i replaying stop i + 1."""

    key: str
    title: str
    described: str
    stops: tuple[Stop, ...]
    results: tuple[Result, ...]
    thirds: tuple[ThirdAsked, ...] = ()

    @property
    def differing(self) -> int:
        """Count the comparisons that differ."""
        return sum(result == "differs" for result in self.results)


WIDTH = 340.0
_BOX = {"large": (108.0, 46.0), "small": (72.0, 40.0)}
_STEPS = 720

Point = tuple[float, float]
_EDGE: dict[Role, str] = {
    "named": "f-sur s-sus w25",
    "ambiguous": "f-sur s-amb w25",
    "third": "f-sur s-edge w15 dash",
    "plain": "f-sur s-edge",
}


def draw_ring(picture: RingPicture) -> Markup:
    """Draw a ring of two to twelve ranks."""
    count = len(picture.stops)
    box = _BOX["large" if count <= 4 else "small"]
    height = 292.0 if count <= 4 else max(300.0, 54.0 * count)
    drawing = Drawing(WIDTH, height)
    points = _ellipse(height, box)
    places = [points[round(index * _STEPS / count) % _STEPS] for index in range(count)]
    for index, result in enumerate(picture.results):
        _arrow(drawing, points, places, index, result, box)
    for asked in picture.thirds:
        _third(drawing, places[asked.third], places[asked.target], height, asked.says, box)
    for stop, place in zip(picture.stops, places, strict=True):
        _stop(drawing, stop, place, box)
    _centre(drawing, picture, height)
    return drawing.finish(picture.key, picture.title, picture.described, fluid=True)


def _ellipse(height: float, box: Point) -> list[Point]:
    """Give points at equal distances along the ellipse, clockwise from its top."""
    cx, cy = WIDTH / 2, height / 2
    rx, ry = cx - box[0] / 2 - 2, cy - box[1] / 2 - 11
    fine = [
        (cx + rx * sin(2 * pi * step / 7200), cy - ry * cos(2 * pi * step / 7200))
        for step in range(7201)
    ]
    lengths = [0.0]
    for before, after in pairwise(fine):
        lengths.append(lengths[-1] + hypot(after[0] - before[0], after[1] - before[1]))
    points: list[Point] = []
    at = 0
    for step in range(_STEPS):
        wanted = lengths[-1] * step / _STEPS
        while lengths[at] < wanted:
            at += 1
        points.append(fine[at])
    return points


def _arrow(
    drawing: Drawing,
    points: list[Point],
    places: list[Point],
    index: int,
    result: Result,
    box: Point,
) -> None:
    count = len(places)
    start = round(index * _STEPS / count)
    end = round((index + 1) * _STEPS / count)
    way = [points[step % _STEPS] for step in range(start, end + 1)]
    source, target = places[index], places[(index + 1) % count]
    way = [p for p in way if _outside(p, source, box, 1) and _outside(p, target, box, 3)]
    if len(way) < 2:
        return
    # The last piece must be long enough to give the arrowhead its direction.
    every = max(1, len(way) // 24)
    shown = [*way[:-every:every], way[-1]]
    d = "M" + "L".join(f"{n(x)} {n(y)}" for x, y in shown)
    looks, arrow = ("s-sus w25", "a-sus") if result == "differs" else ("s-edge w15", "a-ink")
    drawing.path(d, f"f-none {looks}", marker_end=f"url(#{arrow})")
    middle = way[len(way) // 2]
    drawing.mark(*middle, result, 9 if count <= 4 else 7)
    if count <= 6:
        _word(drawing, middle, result)


def _word(drawing: Drawing, at: Point, result: Result) -> None:
    """Write what a comparison gave, outside the ellipse."""
    right = at[0] >= WIDTH / 2
    above = at[1] < drawing.height / 2
    y = at[1] - 6 if above else at[1] + 14
    if not 50 < at[0] < WIDTH - 50:
        right, y = not right, at[1] + 4
    x = at[0] + 14 if right else at[0] - 14
    looks = "t-sus" if result == "differs" else ""
    drawing.text(x, y, result, looks if right else f"rgt {looks}".strip())


def _third(
    drawing: Drawing, third: Point, target: Point, height: float, says: str, box: Point
) -> None:
    """Draw a dashed arc inside the ellipse: the third rank replays the target's work as well."""
    cx, cy = WIDTH / 2, height / 2
    bend = ((third[0] + target[0]) / 2, (third[1] + target[1]) / 2)
    control = (bend[0] + (cx - bend[0]) * 0.55, bend[1] + (cy - bend[1]) * 0.55)
    way = [_bezier(third, control, target, step / 60) for step in range(61)]
    way = [p for p in way if _outside(p, third, box, 1) and _outside(p, target, box, 3)]
    if len(way) < 2:
        return
    d = "M" + "L".join(f"{n(x)} {n(y)}" for x, y in [*way[::4], way[-1]])
    drawing.path(d, "f-none s-ink w15 dash", marker_end="url(#a-ink)")
    middle = way[len(way) // 2]
    drawing.circle(*middle, 8, "f-sur s-ink")
    drawing.text(middle[0], middle[1] + 4, says, "mid b")


def _bezier(start: Point, control: Point, end: Point, t: float) -> Point:
    one, two, three = (1 - t) ** 2, 2 * t * (1 - t), t**2
    return (
        one * start[0] + two * control[0] + three * end[0],
        one * start[1] + two * control[1] + three * end[1],
    )


def _outside(point: Point, place: Point, box: Point, margin: float) -> bool:
    return (
        abs(point[0] - place[0]) > box[0] / 2 + margin
        or abs(point[1] - place[1]) > box[1] / 2 + margin
    )


def _stop(drawing: Drawing, stop: Stop, place: Point, box: Point) -> None:
    x, y = place[0] - box[0] / 2, place[1] - box[1] / 2
    drawing.rect(x, y, *box, _EDGE[stop.role], rx=5)
    middle = place[1] - 2 if stop.place else place[1] + 4
    drawing.text(place[0], middle, f"rank {stop.rank}", "mid b")
    if stop.place:
        drawing.text(place[0], place[1] + 14, stop.place, "mid m")


def _centre(drawing: Drawing, picture: RingPicture, height: float) -> None:
    x, y = WIDTH / 2, height / 2
    drawing.text(x, y - 11, f"{picture.differing} of {len(picture.results)}", "mid b")
    drawing.text(x, y + 5, "comparisons", "mid")
    drawing.text(x, y + 21, "differ" if picture.differing != 1 else "differs", "mid")
