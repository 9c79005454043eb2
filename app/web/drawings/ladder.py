"""How is the score drawn as a ladder of terms on a scale of odds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from markupsafe import Markup

from app.web.drawings.p_bar import in_digits
from app.web.drawings.shapes import Drawing
from witness.rules.score import CORDON_AT, REPLACE_AT, Score

TICKS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
ROWS = 12  # of a long history the newest terms; the table has them all
TOP = 22


@dataclass(frozen=True, slots=True)
class WhatIf:
    """P under an assumption about what comes or what is not known."""

    words: str
    p: float


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where things lie: labels to the left on wide drawings, above the bars on narrow ones."""

    width: float
    left: float
    right: float
    row: float
    narrow: bool


WIDE = _Frame(776, 216, 716, 34, narrow=False)
NARROW = _Frame(334, 8, 326, 50, narrow=True)


class _Scale:
    """Turns odds into a place; what lies outside is put on the edge."""

    def __init__(self, frame: _Frame, odds: Sequence[float]) -> None:
        known = [log(one) for one in odds if one > 0]
        self._low = max(min([log(0.1), *known]) - 0.3, log(1e-5))
        self._high = min(max([log(19), *known]) + 0.3, log(1e7))
        self._frame = frame

    def of(self, odds: float) -> float:
        """Give the place of some odds."""
        at = min(max(log(max(odds, 1e-300)), self._low), self._high)
        share = (at - self._low) / (self._high - self._low)
        return self._frame.left + share * (self._frame.right - self._frame.left)

    def of_p(self, p: float) -> float:
        """Give the place of a probability."""
        return self.of(p / (1 - p) if p < 1 else 1e300)

    def shows(self, p: float) -> bool:
        """Tell whether a probability lies inside."""
        return self._low <= log(p / (1 - p)) <= self._high


def ladder(score: Score, at_least: float | None, what_if: Sequence[WhatIf], key: str) -> Markup:
    """Draw the ladder twice: wide, and narrow for phones."""
    wide, narrow = (
        _draw(frame, score, at_least, what_if, f"{key}{frame.narrow:d}") for frame in (WIDE, NARROW)
    )
    return Markup(
        '<div class="scroll pad only-l" tabindex="0" role="region" '
        'aria-label="Ladder of the score, scrolls sideways">{}</div>'
        '<div class="pad only-s">{}</div>'
    ).format(wide, narrow)


def _draw(
    frame: _Frame, score: Score, at_least: float | None, what_if: Sequence[WhatIf], key: str
) -> Markup:
    terms = score.ladder[-ROWS:]
    step = 42 if frame.narrow else 30
    bottom = TOP + len(terms) * frame.row + 46 + len(what_if) * step + (14 if frame.narrow else 0)
    drawing = Drawing(frame.width, bottom + 24)
    scale = _Scale(frame, [score.odds, *(term.odds_after for term in terms)])
    _ground(drawing, frame, scale, bottom)
    before = terms[0].odds_after / terms[0].factor if terms[0].factor else 1.0
    y = TOP + frame.row / 2
    for term in terms:
        _label(drawing, frame, y, term.text)
        here, there = scale.of(before), scale.of(term.odds_after)
        bar = y + (12 if frame.narrow else 0)
        if abs(there - here) < 1:
            drawing.line(there - 5, bar, there + 5, bar, "s-pass", stroke_width=9)
        else:
            rises = "s-edge" if term.factor > 1 else "s-pass"
            drawing.line(here, bar, there, bar, rises, stroke_width=9)
        _factor(drawing, frame, bar, term.factor)
        drawing.line(there, bar, there, bar + frame.row, "s-edge dash")
        before = term.odds_after
        y += frame.row
    _now(drawing, frame, scale, y, score.p, at_least)
    y += step
    for one in what_if:
        _if(drawing, frame, scale, y, one)
        y += step
    return drawing.finish(
        f"ld{key}", "Ladder of the score, in odds", _described(score, what_if), fluid=frame.narrow
    )


def _ground(drawing: Drawing, frame: _Frame, scale: _Scale, bottom: float) -> None:
    cordon, replace = scale.of_p(CORDON_AT), scale.of_p(REPLACE_AT)
    drawing.rect(replace, TOP, frame.right - replace, bottom - TOP, "f-band")
    drawing.rect(cordon, TOP, replace - cordon, bottom - TOP, "f-band2")
    last = -100.0
    for p in TICKS:
        x = scale.of_p(p)
        threshold = p in (CORDON_AT, REPLACE_AT)
        if not scale.shows(p) or (x - last < 30 and not threshold):
            continue
        drawing.line(x, TOP, x, bottom, "s-ink" if threshold else "s-line")
        drawing.text(x, bottom + 16, f"{p:g}", "mid tiny")
        last = x
    short = frame.narrow or replace - cordon < 100
    drawing.text((cordon + replace) / 2, 14, "cordon" if short else "propose cordon", "mid")
    drawing.text(replace + 4, 14, "replace" if short else "propose replacement")


def _label(drawing: Drawing, frame: _Frame, y: float, text: str) -> None:
    limit = 46 if frame.narrow else 33
    first, rest = _broken(text, limit)
    if frame.narrow:
        drawing.text(0, y - 8, text[:limit], "b")
        return
    drawing.text(0, y if not rest else y - 4, first, "b")
    if rest:
        drawing.text(0, y + 10, rest, "tiny")


def _broken(text: str, limit: int) -> tuple[str, str]:
    if len(text) <= limit:
        return text, ""
    cut = text.rfind(" ", 0, limit)
    return text[:cut], text[cut + 1 :][: limit + 6]


def _factor(drawing: Drawing, frame: _Frame, y: float, factor: float) -> None:
    said = f"× {factor:,.3g}" if factor < 1e4 else f"× {factor:.1e}"
    if frame.narrow:
        drawing.text(4, y + 4, said)
    else:
        drawing.text(frame.width, y + 4, said, "rgt")


def _now(
    drawing: Drawing, frame: _Frame, scale: _Scale, y: float, p: float, at_least: float | None
) -> None:
    drawing.line(0, y - 12, frame.width, y - 12, "s-line")
    drawing.text(0, y + 4 if not frame.narrow else y, "Now", "b")
    place = y if not frame.narrow else y + 12
    x = scale.of_p(p)
    if at_least is not None and at_least < p:
        low = scale.of_p(max(at_least, 1e-6))
        drawing.line(low, place, x, place, "s-sus w2")
        drawing.line(low, place - 5, low, place + 5, "s-sus w2")
    drawing.circle(x, place, 6, "f-sus")
    _beside(drawing, frame, x, place, in_digits(p), "t-sus", 12)


def _if(drawing: Drawing, frame: _Frame, scale: _Scale, y: float, one: WhatIf) -> None:
    drawing.text(0, y + 4 if not frame.narrow else y + 6, one.words)
    place = y if not frame.narrow else y + 18
    x = scale.of_p(one.p)
    drawing.circle(x, place, 5, "f-sur s-edge", stroke_width=1.6, stroke_dasharray="2.5 1.8")
    _beside(drawing, frame, x, place, in_digits(one.p), "", 11)


def _beside(
    drawing: Drawing, frame: _Frame, x: float, y: float, text: str, cls: str, gap: float
) -> None:
    if x > frame.right - 60:
        drawing.text(x - gap, y + 4, text, f"{cls} rgt")
    else:
        drawing.text(x + gap, y + 4, text, cls)


def _described(score: Score, what_if: Sequence[WhatIf]) -> str:
    steps = "; ".join(f"{term.text}: times {term.factor:.3g}" for term in score.ladder[-ROWS:])
    ifs = "; ".join(f"{one.words}: {in_digits(one.p)}" for one in what_if)
    return f"{steps}. P is {in_digits(score.p)} now. {ifs}."
