"""How do passes, window, checkpoints and resume choices lie along the steps of one attempt?"""

from __future__ import annotations

from markupsafe import Markup

from app.web.drawings.shapes import Drawing, n
from app.web.drawings.step_picture import PassBeat, Row, StepPicture

ROW_Y: dict[Row, float] = {"nonfinite": 44, "ring": 72, "weights": 100}
_UPDATES, _FLAGS, _RESUME, _BASE = 128.0, 156.0, 186.0, 202.0
HEIGHT = 236.0
LABELS = (
    ("non-finite", 48),
    ("ring", 76),
    ("weights", 104),
    ("updates", 132),
    ("checkpoints", 160),
    ("resume from", 190),
    ("step", 220),
)


def draw_labels() -> Markup:
    """Write the names of the rows, which stay in place while the plot scrolls."""
    drawing = Drawing(84, HEIGHT)
    for label, y in LABELS:
        drawing.text(0, y, label, "tiny" if label == "step" else "")
    return drawing.finish_hidden()


def draw_steps(picture: StepPicture, *, wide: bool) -> Markup:
    """Draw the plot: 728 px for a wide page, 244 px for a phone."""
    return _Plot(picture, 728.0 if wide else 244.0, wide).draw()


class _Plot:
    def __init__(self, picture: StepPicture, width: float, wide: bool) -> None:
        self.picture = picture
        self.wide = wide
        digits = len(str(max(picture.low, 0)))
        self.left = (14.0 if wide else 10.0) + min(7.0 * digits, 60.0)
        self.right = width - (150.0 if wide else 26.0)
        self.drawing = Drawing(width, HEIGHT)
        self.scale = (self.right - self.left) / max(picture.high - picture.low, 1)

    def x(self, step: int, half: int = 0) -> float:
        """Place a step, or half a step beside it; what lies outside lands on the plot's edge.

        Whole steps are subtracted first: near 2^53 half a step is lost in a float.
        """
        at = self.left + (step - self.picture.low + half / 2) * self.scale
        return min(max(at, self.left - 8), self.right + 8)

    def _beside(self) -> float:
        """Place the words beside the alarm's marks, clear of the window's edge."""
        beside = self.x(self.picture.alarm_step) + 16
        if self.picture.window is None:
            return beside
        return max(beside, self.x(self.picture.window[1], 1) + 8)

    def draw(self) -> Markup:
        self._bands()
        for y in (58, 86, 114, 142, 170, 200):
            self.drawing.line(0, y, self.drawing.width, y, "s-line")
        for beat in self.picture.beats:
            self._beat(beat)
        self._notes()
        self._updates()
        self._flags()
        self._resumes()
        self._alarm()
        self._ticks()
        key = "axis-wide" if self.wide else "axis-narrow"
        return self.drawing.finish(key, self.picture.title, self.picture.described)

    def _bands(self) -> None:
        picture, drawing = self.picture, self.drawing
        if picture.window is None:
            return
        first, last = picture.window
        x1 = self.x(first, -1)
        x2 = max(self.x(last, 1), x1 + 3)
        span = f"{first}" if first == last else f"{first}–{last}"
        text = f"suspect window {span}" if self.wide else f"window {span}"
        half = 3.7 * len(text)
        if 2 * half > drawing.width:
            text, half = "window", 24
        middle = min(max((x1 + x2) / 2, half), drawing.width - half)
        if picture.credible_first is not None and picture.credible_first < first:
            start = self.x(picture.credible_first, -1)
            drawing.rect(start, 24, x1 - start, 178, "f-band2")
            self._credible_words(picture.credible_first, middle - half - 12)
        drawing.rect(x1, 24, x2 - x1, 178, "f-band")
        drawing.path(f"M{n(x1)} 24v178M{n(x2)} 24v178", "s-sus w15")
        drawing.text(middle, 17, text, "mid t-sus")

    def _credible_words(self, first: int, end: float) -> None:
        """Say how far back the fault may reach, where there is room before the window's name."""
        text = f"could reach back to {first} (95 %)" if self.wide else f"95 %: from {first}"
        if 6.6 * len(text) < end:
            self.drawing.text(end, 17, text, "rgt")

    def _beat(self, beat: PassBeat) -> None:
        steps = beat.steps()
        low, high = self.picture.low, self.picture.high
        if beat.last < low or beat.first > high:
            return
        y = ROW_Y[beat.row]
        if steps is None or steps.step * self.scale < (5 if beat.row == "nonfinite" else 13):
            x1, x2 = self.x(beat.first), self.x(beat.last)
            self.drawing.rect(x1 - 3, y - 4, max(x2 - x1, 2) + 6, 8, "f-sunk s-pass")
            return
        # Only what is in view is walked: a beat may hold a million passes.
        first = max(0, -(-(low - steps.start) // steps.step))
        last = min(len(steps), (high - steps.start) // steps.step + 1)
        for step in steps[first:last]:
            self._pass(beat.row, self.x(step), y)

    def _pass(self, row: Row, x: float, y: float) -> None:
        if row == "nonfinite":
            self.drawing.path(f"M{n(x)} {n(y - 5)}v10", "s-pass w15")
        elif row == "ring":
            self.drawing.circle(x, y, 5.5, "f-sur s-edge w2")
        else:
            self.drawing.rect(x - 5, y - 5, 10, 10, "f-sur s-edge w2")

    def _notes(self) -> None:
        for row, note in self.picture.notes.items():
            y = ROW_Y[row]
            if note == "not reached":
                x = self.x(self.picture.alarm_step)
                self.drawing.rect(x - 7, y - 6, 14, 12, "s-edge", fill="url(#hatch)")
                if self.wide:
                    self.drawing.text(self._beside(), y + 4, note)
            else:
                width = self.x(self.picture.alarm_step) - self.left
                self.drawing.rect(self.left, y - 6, width + 7, 12, "s-edge", fill="url(#hatch)")
                if self.wide:
                    self.drawing.text(self._beside(), y + 4, note)

    def _updates(self) -> None:
        picture = self.picture
        first = picture.window[0] if picture.window else picture.alarm_step
        last = picture.alarm_step - 1 if picture.dropped else picture.alarm_step
        if (picture.high - picture.low + 1) * 6 > self.right - self.left:
            self._update_bar(picture.low, first - 1, "f-sunk s-line")
            self._update_bar(first, last, "f-sus2")
        else:
            for step in range(max(picture.low, 0), last + 1):
                self._update_bar(step, step, "f-sus2" if step >= first else "f-sunk s-line")
        if picture.dropped:
            x = self.x(picture.alarm_step)
            width = max(min(self.scale - 2, 12), 5)
            self.drawing.rect(x - width / 2, 123, width, 10, "f-sur s-edge", stroke_dasharray="2 2")
        if self.wide:
            self.drawing.text(self._beside(), 132, self._update_words(first, last))

    def _update_bar(self, first: int, last: int, looks: str) -> None:
        if last < first:
            return
        pad = min(1.0, self.scale / 8)
        x1, x2 = self.x(first, -1) + pad, self.x(last, 1) - pad
        self.drawing.rect(x1, 123, max(x2 - x1, 1.5), 10, looks)

    def _update_words(self, first: int, last: int) -> str:
        """Say which updates were applied, shorter where the steps are long numbers."""
        step = self.picture.alarm_step
        many = f"{first} to {last} applied" if last > first else f"{last} applied"
        if not self.picture.dropped:
            choices = [many, f"{last} applied"]
        elif last < first:
            choices = [f"{step} dropped"]
        else:
            choices = [f"{many}, {step} dropped", f"{step} dropped"]
        return next((text for text in choices if len(text) <= 28), "")

    def _flags(self) -> None:
        low, high = self.picture.low, self.picture.high
        flags = sorted(
            (f for f in self.picture.flags if low <= f.step <= high), key=lambda f: f.step
        )
        before = -1e9
        for flag in sorted(flags, key=lambda one: one.step):
            x = self.x(flag.step)
            d = f"M{n(x - 3)} 162V150h8l-2 3 2 3h-8"
            if flag.state == "inside":
                self.drawing.path(d, "f-sus s-sus w15")
            elif flag.state == "before":
                self.drawing.path(d, "f-sunk s-edge w15")
            else:
                self.drawing.path(d, "f-none s-edge", stroke_dasharray="2 2")
            width = 7.0 * len(str(flag.step)) + 18
            if x - before > width:
                self.drawing.text(x - 8, 160, str(flag.step), "rgt")
            before = x

    def _resumes(self) -> None:
        start = self.x(self.picture.alarm_step)
        for place, arrow in enumerate(self.picture.resumes):
            y = 180 + 8 * place
            inside = arrow.step >= self.picture.low
            end = self.x(arrow.step) if inside else self.left - 8
            looks = "s-acc w2" if arrow.default else "s-acc dash"
            if start - end > 8:
                self.drawing.line(start, y, end + 6, y, looks, marker_end="url(#a-acc)")
            if inside:
                self.drawing.circle(end, y, 4, "f-acc" if arrow.default else "f-sur s-acc w15")
            text = f"{arrow.lost:,} steps" if inside else f"to {arrow.step}, {arrow.lost:,} steps"
            if start - end > 60 and place < 2:
                shift = 0.5 if place == 0 else 0.22
                looks = "mid t-acc" if arrow.default else "mid"
                self.drawing.text(end + (start - end) * shift, y - 4, text, looks)

    def _alarm(self) -> None:
        x = self.x(self.picture.alarm_step)
        for row in self.picture.alarm_rows:
            y = ROW_Y[row]
            if row == "ring":
                self.drawing.circle(x, y, 7, "f-sur s-sus w25")
                self.drawing.circle(x, y, 2.4, "f-sus")
            elif row == "weights":
                self.drawing.rect(x - 6, y - 6, 12, 12, "f-sus s-sur")
            else:
                self.drawing.path(f"M{n(x)} {n(y - 7)}l7.5 13h-15z", "f-sus s-sur")
        if self.picture.alarm_rows and self.wide:
            y = ROW_Y[self.picture.alarm_rows[0]]
            self.drawing.text(self._beside(), y + 4, self.picture.alarm_says, "t-sus")

    def _ticks(self) -> None:
        low, high = self.picture.low, self.picture.high
        room = (self.right - self.left) / (7.0 * len(str(high)) + 26)
        every = tick_step(high - low, max(1, int(room)))
        self.drawing.path(f"M{n(self.left)} 202H{n(self.right)}", "s-edge")
        first = -(-low // every) * every
        for step in range(first, high + 1, every):
            self.drawing.path(f"M{n(self.x(step))} 202v4", "s-edge")
            self.drawing.text(self.x(step), 220, str(step), "mid tiny")
        if self.wide:
            for step, clock in self.picture.clocks:
                self.drawing.text(self.x(step), 234, clock, "mid tiny")


def tick_step(span: int, most: int) -> int:
    """Give the smallest of 1, 2, 5, 10, ... that needs at most `most` ticks for a span."""
    every = 1
    while True:
        for factor in (1, 2, 5):
            if span // (every * factor) + 1 <= most or every > 10**19:
                return every * factor
        every *= 10
