"""What stands on the timeline's page around the chart: words, chips, ranges, legend?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from app.store.connection import Connection
from app.store.timeline_reading import newest_document_at
from app.store.timeline_scope import names_nothing
from app.web.drawings.overview import LEFT, NARROW, WIDE, Shown, overview
from app.web.drawings.timeline_marks import LEGEND, legend_mark
from app.web.timeline import listing, naming
from app.web.timeline.asked import (
    CHECKS,
    LANES,
    MOST_LANES,
    PRESET_LABELS,
    RULES,
    SHORTEST,
    STANDINGS,
    Asked,
    stamp,
    write_place,
)
from app.web.timeline.chart import chart, ms, unknown_windows
from app.web.timeline.gather import MARKS, Gathered, gather
from app.web.timeline.lane_words import LaneLabel, LaneRow, label, table
from app.web.words import count, ident, number


@dataclass(frozen=True, slots=True)
class Link:
    """A link with its words; `on` tells whether it is the present state."""

    label: str
    address: str
    on: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the template writes."""

    asked: Asked
    summary: str
    chips: tuple[Link, ...]
    lanes_by: tuple[Link, ...]
    presets: tuple[Link, ...]
    moves: tuple[Link, ...]
    overview: Markup
    overview_narrow: Markup
    overview_data: dict[str, str]
    bars: tuple[dict[str, Any], ...]
    bar_width: str
    labels: tuple[LaneLabel, ...]
    table: tuple[LaneRow, ...]
    more_lanes: Link | None
    chart: dict[str, Any]
    notes: tuple[str, ...]
    legend: tuple[tuple[Markup, str], ...]
    listing: listing.Listing
    older: str | None
    newest: str | None
    exports: tuple[Link, ...]
    newest_document: datetime | None
    choices: dict[str, tuple[str, ...]]

    @property
    def chart_from(self) -> str:
        """Write the start of the range for a form."""
        return stamp(self.asked.start)

    @property
    def chart_to(self) -> str:
        """Write the end of the range for a form."""
        return stamp(self.asked.end)


def read(connection: Connection, asked: Asked, now: datetime, zone: ZoneInfo) -> View:
    """Read and arrange one address of the timeline."""
    found = gather(connection, asked, now)
    lines = listing.read(connection, found, zone)
    shown = Shown(asked.start, asked.end, asked.between)
    following = lines.following
    drawn = chart(found, zone.key, now)
    return View(
        asked=asked,
        summary=_summary(found),
        chips=_chips(connection, found),
        lanes_by=_lanes_by(asked),
        presets=_presets(asked),
        moves=_moves(asked),
        overview=overview(found.overview, shown, zone),
        overview_narrow=overview(found.overview, shown, zone, narrow=True),
        overview_data=_overview_data(found),
        bars=_bar_table(found),
        bar_width=listing.long_words(found.overview.width) if found.overview.bins else "",
        labels=tuple(label(lane, found) for lane in found.lanes),
        table=table(found, drawn),
        more_lanes=_more_lanes(found),
        chart=drawn,
        notes=tuple(_notes(found)),
        legend=tuple((legend_mark(kind), words) for kind, words in LEGEND),
        listing=lines,
        older=asked.address(before=write_place(following)) if following else None,
        newest=asked.address() if asked.before else None,
        exports=_exports(asked),
        newest_document=newest_document_at(connection),
        choices={"check": CHECKS, "rule": RULES, "status": STANDINGS},
    )


def _summary(found: Gathered) -> str:
    """Say in a sentence what the range holds."""
    if names_nothing(found.scope):
        return "Nothing that is known has this name."
    length = listing.long_words(found.asked.span) or count(int(found.asked.span.seconds), "second")
    if found.page.more:
        inside = found.asked.start - found.overview.width
        bins = (one for one in found.overview.bins if inside < one.start < found.asked.end)
        counted = sum(one.alarms for one in bins)
        word = "About" if found.overview.exact else "At least"
        return f"{word} {count(max(counted, len(found.page.rows)), 'alarm')} in {length}."
    rows = found.page.rows
    named = sum(
        1 for row in rows if any(one.rank is not None for one in found.findings.get(row.id, ()))
    )
    said = f"{count(len(rows), 'alarm') if rows else 'No alarm'} in {length}"
    if not rows:
        return said + "."
    parts = []
    if named:
        parts.append(f"{number(named)} {'names' if named == 1 else 'name'} a rank")
    if len(rows) > named:
        rest = len(rows) - named
        parts.append(f"{number(rest)} {'names' if rest == 1 else 'name'} nobody")
    return f"{said}: {', '.join(parts)}."


def _chips(connection: Connection, found: Gathered) -> tuple[Link, ...]:
    names: dict[str, str] = {}
    scope = found.scope
    for labels in (
        naming.nodes(connection, scope.node_ids or ()),
        naming.gpus(connection, scope.gpu_ids or ()),
        naming.jobs(connection, scope.job_ids or (), ()),
    ):
        names.update({ident(key[1]): label for key, label in labels.items()})
    words = {"q": "text", "gpu": "GPU"}
    return tuple(
        Link(
            f"{words.get(name, name)} {names.get(value, value)}",
            found.asked.without(name, value),
            True,
        )
        for name, value in found.asked.kept
    )


def _lanes_by(asked: Asked) -> tuple[Link, ...]:
    return tuple(
        Link(label, asked.address(by=None if by == "node" else by), by == asked.by)
        for by, label in LANES
    )


def _presets(asked: Asked) -> tuple[Link, ...]:
    return tuple(
        Link(label, asked.preset_address(name), name == asked.preset)
        for name, label in PRESET_LABELS.items()
    )


def _moves(asked: Asked) -> tuple[Link, ...]:
    moves = [
        Link("Earlier", asked.moved(-0.5)),
        Link("Later", asked.moved(0.5)),
        Link("Zoom out", asked.zoomed(2)),
    ]
    if asked.span / 2 >= SHORTEST:
        moves.insert(2, Link("Zoom in", asked.zoomed(0.5)))
    return tuple(moves)


def _overview_data(found: Gathered) -> dict[str, str]:
    """Give the brush what it needs to turn a place into a time."""
    return {
        "from": str(ms(found.overview.start)),
        "to": str(ms(found.overview.end)),
        "left": f"{LEFT / WIDE:.5f}",
        "left-narrow": f"{LEFT / NARROW:.5f}",
    }


def _bar_table(found: Gathered) -> tuple[dict[str, Any], ...]:
    """List the newest bars that hold alarms, each with the address of its part."""
    least = "at least " if found.overview.capped_at is not None else ""
    return tuple(
        {
            "start": one.start,
            "alarms": f"{least if one.alarms == found.overview.capped_at else ''}{one.alarms:,}",
            "kinds": ", ".join(f"{n:,} {family}" for family, n in sorted(one.by_family.items())),
            "address": found.asked.between(one.start, one.start + found.overview.width),
        }
        for one in reversed(found.overview.bins[-40:])
    )


def _more_lanes(found: Gathered) -> Link | None:
    if not found.more_lanes:
        return None
    if found.asked.lanes >= MOST_LANES:
        return Link(f"and {number(found.more_lanes)} more; narrow the range or the filters", "")
    label = f"and {number(found.more_lanes)} more: show up to {MOST_LANES}"
    return Link(label, found.asked.address(lanes=str(MOST_LANES)))


def _notes(found: Gathered) -> list[str]:
    """Say what is not drawn, and why."""
    notes = []
    if found.bins is not None:
        notes.append(
            f"More than {MARKS:,} alarms: lanes show counts, and those of the newest {MARKS:,} "
            f"choose the lanes."
        )
    if found.passes is None:
        notes.append("Passes are drawn for ranges up to 14 days.")
    if found.attempts_cut:
        notes.append("More starts ran on these nodes than were looked at; some bars are missing.")
    unknown = unknown_windows(found)
    if unknown:
        notes.append(
            f"{count(unknown, 'suspect window')} not drawn: known in steps only, "
            "no step time or pass says when they ran."
        )
    if found.asked.by == "slice" and not any(lane.key[0] == "slice" for lane in found.lanes):
        notes.append("No elastic event in this range names a slice; lanes are jobs.")
    notes.append(
        "Telemetry stands on the pages of alarms. Bars under 4 pixels are drawn 4 pixels wide."
    )
    return notes


def _exports(asked: Asked) -> tuple[Link, ...]:
    ends = {"from": stamp(asked.start), "to": stamp(asked.end)}
    plain: dict[str, str | None] = {"by": None, "lanes": None, "live": None, "range": None}
    query = asked.address(**plain, **ends).removeprefix("/timeline")
    return tuple(
        Link(form.upper(), f"/api/v1/alarms{query}&format={form}") for form in ("csv", "json")
    )
