"""What does the page of a GPU say and draw of its telemetry?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from urllib.parse import urlencode

from app.actions.telemetry.on_demand import Range
from app.actions.telemetry.ranged import read_ranged
from app.actions.telemetry.shown import Panel
from app.store import telemetry_asked, telemetry_kept
from app.store.connection import Connection
from app.store.device_reading import Gpu
from app.store.telemetry_queue import ENDED_EMPTY, OPEN, Window
from app.web import words
from app.web.telemetry.events import Events, read_events
from app.web.telemetry.panels import Drawn, Span, dropped, lay_out, number
from app.web.telemetry.statuses import WORDS
from app.web.timeline.asked import stamp
from witness.rules.cleaning import Clean
from witness.rules.counting import counted
from witness.rules.dcgm_fields import Field

READINGS = 10
ASKED = 12


@dataclass(frozen=True, slots=True)
class Said:
    """What was read of the GPU for one alarm; `at` None: the alarm is not known any more."""

    alarm_id: int
    at: datetime | None
    status: str
    word: str
    headline: str
    whole: bool


@dataclass(frozen=True, slots=True)
class AskedTime:
    """Windows of one time that stand alike; `is_own` tells whether this GPU is one of them."""

    start: datetime
    end: datetime
    words: str
    state: str
    gpus: int
    is_own: bool
    samples: int
    source: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnGpu:
    """The telemetry of a GPU; `empty` counts windows in the range that came to nothing."""

    readings: tuple[Said, ...]
    more_readings: bool
    span: Range
    first: str
    last: str
    address: str
    asked: tuple[AskedTime, ...]
    more_asked: int
    waiting: int
    empty: int
    damaged: str | None
    drawn: tuple[Drawn, ...]
    undrawn: int
    events: Events


def read_on_gpu(connection: Connection, gpu: Gpu, span: Range) -> OnGpu:
    """Read what the page of a GPU shows of its telemetry in a time."""
    kept = telemetry_kept.readings_of_gpu(connection, gpu.id, READINGS + 1)
    times = telemetry_asked.times_of(connection, [one.alarm_id for one in kept])
    found = read_ranged(connection, gpu, span)
    events = read_events(connection, gpu.id, span.start, span.end)
    drawn_span = Span(span.start.timestamp(), span.end.timestamp(), None, events.marks, events.jobs)
    asked = _asked(found.windows, gpu.id)
    query = urlencode([("from", stamp(span.start)), ("to", stamp(span.end))])
    return OnGpu(
        readings=tuple(
            Said(
                one.alarm_id, times.get(one.alarm_id), one.status, WORDS[one.status], one.headline,
                one.whole,
            )
            for one in kept[:READINGS]
        ),
        more_readings=len(kept) > READINGS,
        span=span,
        first=stamp(span.start),
        last=stamp(span.end),
        address=query,
        asked=tuple(asked[:ASKED]),
        more_asked=max(len(asked) - ASKED, 0),
        waiting=sum(one.state in OPEN and not one.pulled_at for one in found.windows),
        empty=sum(one.state in ENDED_EMPTY for one in found.windows),
        damaged=found.own.damaged,
        drawn=tuple(_drawn(one, drawn_span, f"g{n}") for n, one in enumerate(found.panels)),
        undrawn=found.panels_in_all - len(found.panels),
        events=events,
    )  # fmt: skip


def _drawn(panel: Panel, span: Span, key: str) -> Drawn:
    return lay_out(panel, span, key, _cells)


def _cells(field: Field, own: Sequence[Clean]) -> tuple[str, ...]:
    """Give lowest, median, highest, how a counter moved, and what is no reading."""
    values = [value for one in own for value in one.values]
    if not values:
        return ("no reading", "–", "–", "–", dropped(own))
    ends = (min(values), median(values), max(values))
    moved = "; ".join(_moved(field, one) for one in own) if field.kind == "counter" else "–"
    return (*(number(one, field.unit) for one in ends), moved, dropped(own))


def _moved(field: Field, one: Clean) -> str:
    """Say by how much a counter rose, and where it was set back."""
    found = counted(one.times, one.values, field.resets)
    said = f"rose by {number(found.total, field.unit)}"
    for fall in found.falls[:3]:
        at = f"{datetime.fromtimestamp(fall.at, tz=UTC):%d %b %H:%M:%S} UTC"
        said += f", {'fell, which it cannot' if fall.kept else 'reset'} by {at}"
    more = len(found.falls) - 3
    return said + (f", and {words.count(more, 'more reset')}" if more > 0 else "")


def _asked(windows: Sequence[Window], gpu_id: int) -> list[AskedTime]:
    """Put windows that stand alike into one line, this GPU's first, then the newest."""
    alike: dict[tuple[datetime, datetime, str], list[Window]] = {}
    for one in windows:
        alike.setdefault((one.start, one.end, _words(one)), []).append(one)
    lines = [
        AskedTime(
            start=start,
            end=end,
            words=said,
            state=group[0].state,
            gpus=len(group),
            is_own=any(one.gpu_id == gpu_id for one in group),
            samples=sum(one.samples for one in group),
            source=next((one.source for one in group if one.source), None),
            warnings=tuple(dict.fromkeys(text for one in group for text in one.warnings))[:3],
        )
        for (start, end, said), group in alike.items()
    ]
    return sorted(lines, key=lambda one: (not one.is_own, -one.start.timestamp()))


def _words(window: Window) -> str:
    """Say how a window stands."""
    said = f" {window.said}" if window.said else ""
    if window.state == "claimed":
        return "Being pulled now."
    if window.state == "queued":
        if window.pulled_at is not None:
            return "Pulled; its end is not stored yet and is pulled again."
        return f"Waiting to be pulled.{said}"
    if window.state == "done":
        if not window.samples:
            return "Done: the source has no samples of this GPU in this time. That clears nothing."
        part = " The source called its answer incomplete." if window.partial else ""
        return f"Done.{part}"
    if window.state == "no_source":
        return "No source of metrics is configured for this cluster."
    return said.strip() or "Refused."
