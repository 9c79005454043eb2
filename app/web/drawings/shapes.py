"""How is one shape of an inline drawing written?

Looks come from classes of the style sheet only, so that the strict content policy holds and both
themes work.  Every text is escaped here.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from app.web import words

CROSS = "M-3.5 -3.5l7 7m0 -7l-7 7"
EQUALS = "M-4 -2h8M-4 2h8"


class Drawing:
    """Shapes in the order in which they are painted."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._parts: list[Markup] = []

    def path(self, d: str, cls: str, **more: str | float) -> None:
        """Draw a path; `more` are further attributes, underscores for dashes."""
        self._add("path", {"d": d, "class": cls, **more})

    def line(
        self, x1: float, y1: float, x2: float, y2: float, cls: str, **more: str | float
    ) -> None:
        """Draw a straight line."""
        self.path(f"M{n(x1)} {n(y1)}L{n(x2)} {n(y2)}", cls, **more)

    def rect(
        self, x: float, y: float, width: float, height: float, cls: str, **more: str | float
    ) -> None:
        """Draw a rectangle; without width nothing."""
        if width > 0 and height > 0:
            box = {"x": n(x), "y": n(y), "width": n(width), "height": n(height)}
            self._add("rect", {**box, "class": cls, **more})

    def circle(self, x: float, y: float, radius: float, cls: str, **more: str | float) -> None:
        """Draw a circle."""
        self._add("circle", {"cx": n(x), "cy": n(y), "r": n(radius), "class": cls, **more})

    def text(self, x: float, y: float, text: str, cls: str = "") -> None:
        """Write a text at its baseline; what cannot be seen in it is made visible."""
        shown = escape(words.visible(text))
        self._parts.append(
            Markup('<text x="{}" y="{}" class="{}">{}</text>').format(n(x), n(y), cls, shown)
        )

    def mark(self, x: float, y: float, result: str, radius: float = 9) -> None:
        """Draw the result of a comparison: a filled cross, an open equals sign, a question mark."""
        if result == "differs":
            self.circle(x, y, radius, "f-sus")
            self._add("path", {"d": _moved(CROSS, x, y), "class": "s-sur w2"})
        elif result == "same":
            self.circle(x, y, radius, "f-sur s-edge")
            self._add("path", {"d": _moved(EQUALS, x, y), "class": "s-ink w15"})
        else:
            self.circle(x, y, radius, "f-sur s-edge", stroke_dasharray="2 2")
            self.text(x, y + 4, "?", "mid")

    def link(self, address: str, drawn: Drawing) -> None:
        """Put the shapes of another drawing inside a link."""
        self._parts.append(
            Markup('<a href="{}">{}</a>').format(address, Markup("").join(drawn._parts))
        )

    def finish(
        self, key: str, title: str, described: str, *, fluid: bool = False, role: str = "img"
    ) -> Markup:
        """Close the drawing; `key` makes its ids unique on the page, `fluid` fills its column.

        A drawing that holds links has the role "group": an image cannot be entered.
        """
        size = (
            Markup('width="100%"')
            if fluid
            else Markup('width="{}" height="{}"').format(n(self.width), n(self.height))
        )
        head = Markup(
            '<svg {} viewBox="0 0 {} {}" role="{}" '
            'aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
        ).format(
            size,
            n(self.width),
            n(self.height),
            role,
            key,
            key,
            key,
            words.visible(title),
            key,
            words.visible(described),
        )
        return head + Markup("").join(self._parts) + Markup("</svg>")

    def shapes(self) -> Markup:
        """Give the shapes alone, to stand inside another drawing."""
        return Markup("").join(self._parts)

    def finish_hidden(self) -> Markup:
        """Close a drawing that repeats what is written beside it."""
        head = Markup('<svg width="{}" height="{}" viewBox="0 0 {} {}" aria-hidden="true">').format(
            n(self.width), n(self.height), n(self.width), n(self.height)
        )
        return head + Markup("").join(self._parts) + Markup("</svg>")

    def _add(self, element: str, attributes: dict[str, str | float]) -> None:
        written = Markup("").join(
            Markup(' {}="{}"').format(
                name.replace("_", "-"), value if isinstance(value, str) else n(value)
            )
            for name, value in attributes.items()
        )
        self._parts.append(Markup("<{}{}/>").format(element, written))


def n(value: float) -> str:
    """Write a coordinate with one decimal, none where it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def _moved(d: str, x: float, y: float) -> str:
    """Move a small path, all of whose coordinates but its first are relative, to a place."""
    out = []
    for piece in d.split("M")[1:]:
        first, _, rest = piece.replace("l", " l", 1).replace("h", " h", 1).partition(" ")
        second, _, rest = rest.partition(" ")
        out.append(f"M{n(x + float(first))} {n(y + float(second))}{rest}")
    return "".join(out)
