"""How is the probability that a GPU is faulty drawn beside its number?"""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup

from app.web.drawings.shapes import Drawing
from witness.rules.score import CORDON_AT, REPLACE_AT

WIDTH, HEIGHT, BAR = 84, 12, 6


def in_digits(p: float) -> str:
    """Write P with two decimals, and with four where two would say 1.00 or 0.00."""
    if 0 < p < 0.005:
        return "0.01" if p >= 0.001 else "below 0.001"
    if p > 0.9999:
        return "> 0.9999"
    if p >= 0.995:
        return f"{p:.4f}"
    return f"{p:.2f}"


def in_words(p: float) -> str:
    """Name P from the two thresholds on; below them the number speaks alone."""
    if p >= REPLACE_AT:
        return "very likely"
    return "likely" if p >= CORDON_AT else ""


def p_bar(p: float, at_least: float | None, key: str) -> Markup:
    """Draw P from 0 to 1 with its thresholds; paler is what is lost at the upper bound of f."""
    said = f"P {in_digits(p)}, thresholds {CORDON_AT:g} and {REPLACE_AT:g}"
    return Markup(
        '<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-labelledby="p{2}">'
        '<title id="p{2}">{3}</title>{4}</svg>'
    ).format(WIDTH, HEIGHT, key, said, _bar(round(p, 3), at_least and round(at_least, 3)))


@lru_cache(maxsize=2_000)
def _bar(p: float, at_least: float | None) -> Markup:
    drawing = Drawing(WIDTH, HEIGHT)
    top = (HEIGHT - BAR) / 2
    drawing.rect(0, top, WIDTH, BAR, "f-sunk s-line", rx=1, stroke_width=1)
    strong = p >= CORDON_AT
    if at_least is not None and at_least < p and strong:
        drawing.rect(0.5, top, max(p * WIDTH - 0.5, 0.3), BAR, "f-sus2", rx=1)
        drawing.rect(0, top, at_least * WIDTH, BAR, "f-sus", rx=1)
    else:
        width = max(p * WIDTH - 0.5, 0.3)
        drawing.rect(0.5, top, width, BAR, "f-sus" if strong else "f-edge", rx=1)
    for threshold in (CORDON_AT, REPLACE_AT):
        drawing.line(threshold * WIDTH, 0, threshold * WIDTH, HEIGHT, "s-ink")
    return drawing.shapes()


def no_bar() -> Markup:
    """Draw that there is no P: hatched, never empty."""
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.rect(0.5, 2.5, WIDTH - 1, 7, "s-edge", fill="url(#hatch)", stroke_dasharray="3 2")
    return drawing.finish_hidden()
