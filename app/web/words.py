"""How do times, numbers, ids and other people's names look on a page?"""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

from markupsafe import Markup, escape

from app.store import ids

NAME_LIMIT = 64
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def zone(name: str | None) -> ZoneInfo:
    """Give a time zone by its name, UTC when it is unknown."""
    if name and name in available_timezones():
        return ZoneInfo(name)
    return ZoneInfo("UTC")


def local(at: datetime, viewer: ZoneInfo, now: datetime, seconds: bool = True) -> str:
    """Write a time in the viewer's zone, with the date only where it is not today."""
    here, today = at.astimezone(viewer), now.astimezone(viewer)
    clock = here.strftime("%H:%M:%S" if seconds else "%H:%M")
    if here.date() == today.date():
        return clock
    day = f"{here.day} {here:%b}"
    if here.year != today.year:
        day += f" {here.year}"
    return f"{day} {clock}"


def in_utc(at: datetime) -> str:
    """Write a time for the tooltip: full date, UTC, fractions only where there are any."""
    utc = at.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def time_tag(at: datetime | None, viewer: ZoneInfo, now: datetime, seconds: bool = True) -> Markup:
    """Write a time as an element: the viewer's zone to read, UTC on hover and for programs."""
    if at is None:
        return Markup('<span class="faint">not known</span>')
    machine = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        machine, in_utc(at), local(at, viewer, now, seconds)
    )


def duration(seconds: float | None) -> str:
    """Write a length of time in its two largest units: "3 h 40 min"."""
    if seconds is None:
        return "not known"
    left = int(max(0.0, seconds))
    if left < _MINUTE:
        return f"{left} s"
    if left < _HOUR:
        return f"{left // _MINUTE} min"
    if left < _DAY:
        minutes = left % _HOUR // _MINUTE
        return f"{left // _HOUR} h" + (f" {minutes} min" if minutes else "")
    hours = left % _DAY // _HOUR
    return f"{left // _DAY} d" + (f" {hours} h" if hours and left < 14 * _DAY else "")


def number(value: float | None, places: int | None = None) -> str:
    """Write a number with thousands apart; a float with three significant digits at least."""
    if value is None:
        return "not known"
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if places is not None:
        return f"{value:,.{places}f}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def count(value: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: "1 alarm", "2 alarms", "1,024 GPUs"."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def ident(row_id: int) -> str:
    """Write a row id for an address."""
    return ids.show(row_id)


def name_tag(text: object, limit: int = NAME_LIMIT) -> Markup:
    """Write a name that somebody else chose.

    It is kept apart from the text around it, cut where it is very long (the whole stands in the
    title), and what cannot be seen in it is made visible.
    """
    if text is None or text == "":
        return Markup('<span class="faint">not known</span>')
    whole = str(text)
    shown = whole if len(whole) <= limit else whole[: limit - 1] + "…"
    if not whole.strip():
        # A name of blanks alone would be a link that nobody sees.
        shown = "".join(f"⟨U+{ord(letter):04X}⟩" for letter in shown[:8])
    if shown.isascii() and shown.isprintable():
        body = escape(shown)  # nearly every name: nothing in it is unseen
    else:
        body = Markup("").join(_letter(letter) for letter in shown)
    if shown == whole and body == escape(whole):
        return Markup("<bdi>{}</bdi>").format(body)
    return Markup('<bdi title="{}">{}</bdi>').format(visible(whole), body)


def visible(text: str) -> str:
    """Replace control, bidi and other unseen characters by their code points."""
    return "".join(f"⟨U+{ord(c):04X}⟩" if _unseen(c) else c for c in text)


def _letter(letter: str) -> Markup:
    if _unseen(letter):
        return Markup('<span class="ctl">U+{}</span>').format(f"{ord(letter):04X}")
    return escape(letter)


def _unseen(letter: str) -> bool:
    # Cc, Cf (bidi marks among them), Cs, Co, Cn, Zl, Zp; and spaces other than the plain one.
    category = unicodedata.category(letter)
    return category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or (
        category == "Zs" and letter != " "
    )


def short_uuid(uuid: str) -> str:
    """Shorten a GPU UUID for dense lists: the first eight digits."""
    tail = uuid.removeprefix("GPU-").removeprefix("MIG-")
    return tail[:8]
