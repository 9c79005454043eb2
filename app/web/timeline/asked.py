"""What does an address of the timeline ask for, and what is the address of its neighbours?

All state lies in the address: filters, range, lanes, page of the list, live or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlencode

from app.filters import Filters, bad, read_filters
from app.store import ids
from app.store.columns import micros, moment
from app.store.timeline_scope import FAMILIES

By = Literal["node", "gpu", "job", "slice"]
LANES: tuple[tuple[By, str], ...] = (
    ("node", "Node"), ("gpu", "GPU"), ("job", "Job"), ("slice", "Slice"),
)  # fmt: skip
PRESETS: dict[str, timedelta | None] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "all": None,
}
PRESET_LABELS = {"1h": "1 h", "24h": "24 h", "7d": "7 d", "30d": "30 d", "all": "all"}
DEFAULT = "7d"
SHORTEST = timedelta(seconds=2)
LONGEST = timedelta(days=20 * 366)
FEW_LANES, MOST_LANES = 12, 40
SINGLE = ("range", "by", "lanes", "before", "live", "stamp")
KINDS = ("action", "alarm", "elastic", "proposal", "start")
"""What the list is made of, in the order in which things of one moment stand."""

_PLACE = re.compile(rf"([0-9]{{1,16}})\.([0-{len(KINDS) - 1}])\.([0-9a-z]{{13}})")

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of the list begins: after this moment, kind and id."""

    at: datetime
    kind: int
    id: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One address of the timeline, understood.

    `preset` is None where the range is given by its ends; `live` tells whether the page follows
    what comes in.
    """

    filters: Filters
    start: datetime
    end: datetime
    preset: str | None
    by: By
    lanes: int
    before: Place | None
    live: bool
    kept: tuple[Pair, ...]  # the address without range, lanes and page

    @property
    def span(self) -> timedelta:
        """Give the length of the range."""
        return self.end - self.start

    def address(self, **changes: str | None) -> str:
        """Give the address with some single parameters changed; None drops one."""
        single: dict[str, str | None] = {
            "by": None if self.by == "node" else self.by,
            "lanes": None if self.lanes == FEW_LANES else str(self.lanes),
            "live": None if self.live or self.preset is None else "off",
            **self._range(),
            **changes,
        }
        pairs = [*self.kept, *((name, value) for name, value in single.items() if value)]
        return "/timeline" + (f"?{urlencode(pairs)}" if pairs else "")

    def between(self, start: datetime, end: datetime) -> str:
        """Give the address of another range with the same filters."""
        return self.address(**{"range": None, "from": stamp(start), "to": stamp(end)})

    def preset_address(self, name: str) -> str:
        """Give the address of a range that ends now."""
        return self.address(**{"range": name, "from": None, "to": None, "live": None})

    def without(self, name: str, value: str) -> str:
        """Give the address without one filter."""
        kept = tuple(pair for pair in self.kept if pair != (name, value))
        return replace(self, kept=kept).address()

    def zoomed(self, factor: float) -> str:
        """Give the address of a range around the same middle, longer or shorter."""
        half = self.span * factor / 2
        middle = self.start + self.span / 2
        return self.between(middle - half, middle + half)

    def moved(self, share: float) -> str:
        """Give the address of the range before (negative) or after this one."""
        return self.between(self.start + self.span * share, self.end + self.span * share)

    def _range(self) -> dict[str, str | None]:
        if self.preset is not None:
            return {"range": None if self.preset == DEFAULT else self.preset}
        return {"from": stamp(self.start), "to": stamp(self.end)}


def stamp(at: datetime) -> str:
    """Write a moment for an address: RFC 3339 in UTC, to the millisecond where needed."""
    utc = at.astimezone(UTC)
    timespec = "milliseconds" if utc.microsecond else "seconds"
    return utc.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def around(at: datetime, cluster: str | None = None) -> str:
    """Give the address of the five minutes before and after an event."""
    five = timedelta(minutes=5)
    pairs = [("from", stamp(at - five)), ("to", stamp(at + five))]
    if cluster:
        pairs.insert(0, ("cluster", cluster))
    return "/timeline?" + urlencode(pairs)


def understand(
    parameters: Iterable[Pair], now: datetime, extent: tuple[datetime, datetime] | None
) -> Asked:
    """Read an address; raise 400 naming what is wrong.  `extent` is the first and last alarm."""
    given = [(name, value) for name, value in parameters if value]
    filters = read_filters(given)
    single = {name: _one(given, name) for name in SINGLE}
    by = single["by"] or "node"
    if by not in dict(LANES):
        raise bad("by", "by must be node, gpu, job or slice.")
    for status in filters.status:
        if status not in STANDINGS:
            raise bad("status", f"status must be one of {', '.join(STANDINGS)}.")
    start, end, preset = _range(filters, single["range"], now, extent)
    kept = tuple(pair for pair in filters.as_typed if pair[0] not in ("from", "to"))
    return Asked(
        filters=filters,
        start=start,
        end=end,
        preset=preset,
        by=next(name for name, _ in LANES if name == by),
        lanes=_lanes(single["lanes"]),
        before=read_place(single["before"]),
        live=preset is not None and single["live"] != "off",
        kept=kept,
    )


def _range(
    filters: Filters, name: str | None, now: datetime, extent: tuple[datetime, datetime] | None
) -> tuple[datetime, datetime, str | None]:
    if filters.since is not None or filters.until is not None:
        end = filters.until or _next_minute(now)
        start = filters.since or end - timedelta(days=7)
        if not SHORTEST <= end - start <= LONGEST:
            raise bad("to", "A range is at least 2 seconds and at most 20 years long.")
        return start, end, None
    name = name or DEFAULT
    if name not in PRESETS:
        raise bad("range", f"range must be one of {', '.join(PRESETS)}.")
    end = _next_minute(now)
    span = PRESETS[name]
    if span is not None:
        return end - span, end, name
    if extent is None:
        return end - timedelta(days=1), end, name
    first, last = extent
    end = max(end, _next_minute(last))
    # What led to the first alarm belongs to it: the start of its job, its checkpoints.
    start = first - max((end - first) / 50, timedelta(hours=1))
    return max(start, end - LONGEST), end, name


def _next_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _lanes(text: str | None) -> int:
    if text is None:
        return FEW_LANES
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_LANES):
        raise bad("lanes", f"lanes must be a whole number from 1 to {MOST_LANES}.")
    return int(text)


def _one(given: list[Pair], name: str) -> str | None:
    values = [value for one, value in given if one == name]
    if len(values) > 1:
        raise bad(name, f"{name} was given {len(values)} times.")
    return values[0] if values else None


def write_place(place: Place) -> str:
    """Write where the next page of the list begins."""
    return f"{micros(place.at)}.{place.kind}.{ids.show(place.id)}"


def read_place(text: str | None) -> Place | None:
    """Read where a page begins; refuse what `write_place` did not write."""
    if text is None:
        return None
    written = _PLACE.fullmatch(text)
    try:
        if written is not None:
            at, kind, row_id = written.groups()
            return Place(moment(int(at)), int(kind), ids.read(row_id))
    except (ValueError, OverflowError):
        pass
    raise bad("before", "This place in the list is not one of ours; begin again.")


CHECKS = FAMILIES
STANDINGS = ("suspect", "ambiguous", "software", "unknown")
RULES = ("W1", "W2", "R1", "R2", "R3", "R4", "N1", "G1", "U1")
