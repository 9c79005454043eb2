"""How are the last 24 hours of a case drawn as 24 cells?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal

from markupsafe import Markup

from app.web.drawings.shapes import Drawing

Cell = Literal["ring", "weights", "nonfinite", "nobody", "pass", "unreported", "none"]

STEP, WIDTH, HEIGHT = 8, 7, 18

_WORDS: dict[Cell, str] = {
    "ring": "a ring alarm",
    "weights": "a weights alarm",
    "nonfinite": "a non-finite alarm",
    "nobody": "an alarm that names nobody",
    "pass": "passes",
    "unreported": "work without a pass",
    "none": "no work",
}


def hour_cells(cells: tuple[Cell, ...], key: str) -> Markup:
    """Draw the cells from the oldest hour to the running one."""
    width = len(cells) * STEP - 1
    head = Markup(
        '<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-labelledby="h{2}">'
        '<title id="h{2}">{3}</title>'
    ).format(width, HEIGHT, key, described(cells))
    shapes = (_shapes(place, cell) for place, cell in enumerate(cells))
    return Markup("").join((head, *shapes, Markup("</svg>")))


@cache
def _shapes(place: int, cell: Cell) -> Markup:
    """Draw one of a few hundred cells once and for all: a docket has 1,200 of them."""
    drawing = Drawing(WIDTH, HEIGHT)
    draw_cell(drawing, place * STEP, cell)
    return drawing.shapes()


def one_cell(cell: Cell) -> Markup:
    """Draw a single cell, for the legend."""
    drawing = Drawing(WIDTH, HEIGHT)
    draw_cell(drawing, 0, cell)
    return drawing.finish_hidden()


def draw_cell(drawing: Drawing, x: float, cell: Cell) -> None:
    """Draw one hour: each state has a shape of its own."""
    if cell == "pass":
        drawing.rect(x, 10, WIDTH, 8, "f-pass")
    elif cell == "none":
        drawing.rect(x, 17, WIDTH, 1, "f-edge")
    elif cell == "unreported":
        drawing.rect(x + 0.5, 0.5, 6, 17, "s-edge", fill="url(#hatch)", stroke_width=0.7)
    elif cell == "nobody":
        drawing.rect(x, 0, WIDTH, HEIGHT, "f-amb")
        drawing.path(f"M{x + 1.5:g} 2.5l4 4m0-4l-4 4", "s-sur", stroke_width=1.3)
    else:
        drawing.rect(x, 0, WIDTH, HEIGHT, "f-sus")
        _shape(drawing, x, cell)


def _shape(drawing: Drawing, x: float, cell: Cell) -> None:
    if cell == "ring":
        drawing.circle(x + 3.5, 4.5, 1.9, "s-sur f-none", stroke_width=1.2)
    elif cell == "weights":
        drawing.rect(x + 1.5, 2.5, 4, 4, "f-sur")
    else:
        drawing.path(f"M{x + 3.5:g} 2L{x + 5.8:g} 6.3H{x + 1.2:g}Z", "f-sur")


def described(cells: Iterable[Cell]) -> str:
    """Say the strip in words: stretches of equal hours, oldest first."""
    stretches: list[tuple[Cell, int]] = []
    for cell in cells:
        if stretches and stretches[-1][0] == cell:
            stretches[-1] = (cell, stretches[-1][1] + 1)
        else:
            stretches.append((cell, 1))
    hours = "hour" if len(stretches) == 1 else "hours"
    return f"By {hours}, oldest first: " + ", ".join(
        f"{count} h {_WORDS[cell]}" for cell, count in stretches
    )
