"""What does a page say and draw of the telemetry around an alarm?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from app.actions.telemetry.shown import Curve, Panel, Shown, Telemetry
from app.web import words
from app.web.drawings.small_multiple import Line, Picture, bounds, draw
from app.web.telemetry.statuses import WORDS
from witness.rules.cleaning import clean
from witness.rules.dcgm_fields import BY_ID
from witness.rules.merging import MISSED
from witness.rules.observations import Window
from witness.rules.samples import Series, scrape_interval

OBSERVED = 12
_WHEN = {
    "before": "before the window",
    "window": "in the suspect window",
    "after": "after the alarm",
    "standing": "already there before the first sample",
    "unknown": "time not known",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """One small multiple, and the same as a row of numbers."""

    title: str
    picture: Markup
    risen: bool
    meaning: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suspected:
    """One suspect GPU as the page shows it."""

    uuid: str
    word: str
    status: str
    headline: str
    whole: bool
    observations: tuple[tuple[bool, str, str], ...]
    more: int
    looked_at: tuple[str, ...]
    missing: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]
    drawn: tuple[Drawn, ...]
    undrawn: int
    sources: tuple[str, ...]


def suspects(telemetry: Telemetry) -> tuple[Suspected, ...]:
    """Lay out every suspect."""
    return tuple(
        _suspect(one, telemetry.times, place) for place, one in enumerate(telemetry.suspects)
    )


def _suspect(shown: Shown, times: Window, place: int) -> Suspected:
    kept = shown.kept
    reading: dict[str, Any] = dict(kept.reading) if kept else {}
    observed = [
        (bool(one["risen"]), str(one["text"]), _WHEN[str(one["when"])])
        for one in reading.get("observations", ())
    ]
    status = kept.status if kept else "not_collected"
    return Suspected(
        uuid=shown.uuid,
        word=WORDS[status],
        status=status,
        headline=kept.headline if kept else "Not pulled yet: it waits for its turn.",
        whole=bool(kept and kept.whole),
        observations=tuple(observed[:OBSERVED]),
        more=max(len(observed) - OBSERVED, 0),
        looked_at=tuple(BY_ID[one].title for one in reading.get("looked_at", ())),
        missing=_missing(reading.get("missing", ())),
        notes=tuple(str(one) for one in reading.get("notes", ())),
        drawn=tuple(_drawn(one, times, f"t{place}-{n}") for n, one in enumerate(shown.panels)),
        undrawn=shown.panels_in_all - len(shown.panels),
        sources=tuple(dict.fromkeys(one.source for one in shown.windows if one.source)),
    )


def _missing(missing: Sequence[dict[str, Any]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Group missing fields by reason."""
    by_reason: dict[str, list[str]] = {}
    for one in missing:
        by_reason.setdefault(str(one["text"]), []).append(BY_ID[one["field_id"]].title)
    merged: dict[str, list[str]] = {}
    for text, titles in by_reason.items():
        merged.setdefault(text, []).extend(titles)
    return tuple((text, tuple(titles)) for text, titles in merged.items())


def _drawn(panel: Panel, times: Window, key: str) -> Drawn:
    interval = scrape_interval(one.series for one in panel.curves)
    lines = [_line(one, interval) for one in panel.curves]
    own = [one.series for one in panel.curves if one.role == "suspect"]
    low, high = bounds(lines)
    unit = panel.field.unit
    title = panel.field.title + "".join(f", {name} {value}" for name, value in panel.part)
    picture = Picture(
        key=key,
        title=title,
        described=f"From {_number(low, unit)} to {_number(high, unit)}; the suspect against "
        f"{words.count(len(panel.curves) - len(own), 'other GPU')}.",
        start=times.start,
        end=times.end,
        suspect_from=times.suspect_from,
        alarm=times.alarm,
        lines=lines,
        gaps=_gaps(own, times, interval),
        low=_number(low, unit),
        high=_number(high, unit),
    )
    return Drawn(
        title, draw(picture), panel.risen, panel.field.meaning.shows, _cells(own, times, unit)
    )


def _line(curve: Curve, interval: float | None) -> Line:
    """Cut one GPU's readings at its gaps; samples that are no readings are left out."""
    cleaned = clean(curve.series, interval)
    stretches: list[list[tuple[float, float]]] = []
    last: float | None = None
    for time, value in zip(cleaned.times, cleaned.values, strict=True):
        if last is None or (interval and time - last > MISSED * interval):
            stretches.append([])
        stretches[-1].append((time, value))
        last = time
    return Line(stretches, curve.role == "suspect")


def _gaps(
    own: Sequence[Series], times: Window, interval: float | None
) -> list[tuple[float, float]]:
    """List where the suspect has no sample although one was due."""
    if not interval:
        return []
    seen = sorted({time for one in own for time in one.times if times.start <= time <= times.end})
    edges = [times.start, *seen, times.end]
    longest = 2 * MISSED * interval
    return [(a, b) for a, b in pairwise(edges) if b - a > longest]


def _cells(own: Sequence[Series], times: Window, unit: str) -> tuple[str, ...]:
    """Give the suspect's median before, and its lowest and highest in the window and after it."""
    samples = [one for series in own for one in zip(series.times, series.values, strict=True)]
    spans = (
        (times.start, times.suspect_from),
        (times.suspect_from, times.until),
        (times.until, times.end),
    )
    cells = []
    for first, last in spans:
        values = sorted(value for time, value in samples if first <= time < last)
        if not values:
            cells.append("no sample")
        elif values[0] == values[-1]:
            cells.append(_number(values[0], unit))
        else:
            cells.append(f"{_number(values[0], unit)} to {_number(values[-1], unit)}")
    return tuple(cells)


def _number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.3g}"
    return f"{text} {unit}".strip()
