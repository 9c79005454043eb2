"""Which mark stands for which event, in the legend and in the list?

The chart script draws the same shapes; docs of the shapes: ring a dotted circle, non-finite a
triangle, weights a square, nobody named a cross.
"""

from __future__ import annotations

from functools import cache

from markupsafe import Markup

from app.web.drawings.shapes import Drawing

LEGEND = (
    ("ring", "ring alarm"),
    ("nonfinite", "non-finite alarm"),
    ("weights", "weights alarm"),
    ("nobody", "alarm that names nobody"),
    ("unknown", "alarm of an unknown check"),
    ("window", "suspect window"),
    ("start", "job attempt"),
    ("passes", "passes, by the hour"),
    ("checkpoint", "checkpoint"),
    ("tainted", "checkpoint inside a suspect window"),
    ("after", "checkpoint after it"),
    ("action", "action"),
    ("proposal", "proposal"),
    ("down", "slice down"),
    ("up", "slice up"),
    ("hatch", "unknown: no pass, no telemetry"),
)
_FLAG = "M4 13V1h8l-2 3 2 3h-8"


@cache
def legend_mark(kind: str) -> Markup:
    """Draw one mark, 14 pixels wide; the words beside it say what it is."""
    drawing = Drawing(14, 14)
    if kind == "window":
        drawing.rect(1, 1, 12, 12, "f-band")
        drawing.path("M1 1v12M13 1v12", "s-sus")
    elif kind == "hatch":
        drawing.rect(1, 2, 12, 10, "s-edge", fill="url(#hatch)", stroke_width=".8")
    elif kind == "start":
        drawing.rect(1, 3, 12, 8, "f-job s-pass", rx=1)
    else:
        put_mark(drawing, kind)
    return drawing.finish_hidden()


def put_mark(drawing: Drawing, kind: str, **more: str) -> None:
    """Add the shape of one event in a square of 14; `more` may hold a transform."""
    if kind == "ring":
        drawing.circle(7, 7, 5, "f-sur s-sus", stroke_width="2.4", **more)
        drawing.circle(7, 7, 1.6, "f-sus", **more)
        return
    d, cls, looks = _PATHS.get(kind, _PATHS["other"])
    drawing.path(d, cls, **looks, **more)


_PATHS: dict[str, tuple[str, str, dict[str, str | float]]] = {
    "nonfinite": ("M7 2L12 11.2H2Z", "f-sus", {}),
    "weights": ("M2.5 2.5h9v9h-9z", "f-sus", {}),
    "reduced gradient": ("M2 2L12 12M12 2L2 12", "s-amb", {"stroke_width": "2.6"}),
    "nobody": ("M2 2L12 12M12 2L2 12", "s-amb", {"stroke_width": "2.6"}),
    "unknown": ("M4 2h6l3 5-3 5H4L1 7z", "f-sur s-ink w15", {}),
    "passes": ("M2 11V8h2.5v3zM5.5 11V5H8v6zM9 11V3h2.5v8z", "f-pass", {}),
    "checkpoint": (_FLAG, "f-sunk s-edge w15", {}),
    "tainted": (_FLAG, "f-sus s-sus w15", {}),
    "after": (_FLAG, "f-edge s-edge w15", {}),
    "action": ("M7 1.5L12.5 7L7 12.5L1.5 7Z", "f-acc", {}),
    "proposal": ("M7 2L12 7L7 12L2 7Z", "f-sur s-acc w15", {}),
    "down": ("M2 3H12M7 3V12M3.5 8.5L7 12.5L10.5 8.5", "f-none s-ink w15", {}),
    "up": ("M2 12H12M7 12V3M3.5 6.5L7 2.5L10.5 6.5", "f-none s-ink w15", {}),
    "other": ("M3 7h8", "s-ink w2", {}),
}
