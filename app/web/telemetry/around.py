"""What does a page say and draw of the telemetry around an alarm?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.actions.telemetry.shown import Panel, Shown, Telemetry
from app.web.telemetry.panels import Drawn, Span, dropped, lay_out, readings_between, spread
from app.web.telemetry.statuses import WORDS
from witness.rules.cleaning import Clean
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.observations import Window

OBSERVED = 12
_WHEN = {
    "before": "before the window",
    "window": "in the suspect window",
    "after": "after the alarm",
    "standing": "already there before the first sample",
    "unknown": "time not known",
}


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
        _suspect(one, telemetry.times, place, telemetry.unread)
        for place, one in enumerate(telemetry.suspects)
    )


def _suspect(shown: Shown, times: Window, place: int, unread: str) -> Suspected:
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
        headline=kept.headline if kept else unread,
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
    span = Span(times.start, times.end, times.suspect_from, (times.alarm,))

    def cells(field: Field, own: Sequence[Clean]) -> tuple[str, ...]:
        spans = (
            (times.start, times.suspect_from),
            (times.suspect_from, times.until),
            (times.until, times.end),
        )
        return (*(spread(readings_between(own, *one), field.unit) for one in spans), dropped(own))

    return lay_out(panel, span, key, cells)
