"""What does the page of a GPU say and draw of its telemetry?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from urllib.parse import urlencode

from app.actions.telemetry.moved import OverMonths, read_moved
from app.actions.telemetry.node_log import read_node_log_of
from app.actions.telemetry.on_demand import WINDOWS, Range
from app.actions.telemetry.ranged import read_ranged
from app.actions.telemetry.shown import Panel
from app.store import telemetry_asked, telemetry_kept
from app.store.connection import Connection
from app.store.device_reading import Gpu, Node
from app.store.telemetry_queue import ENDED_EMPTY, OPEN, Window
from app.web import words
from app.web.telemetry import log_rows, stamps
from app.web.telemetry.events import Events, node_at, read_events
from app.web.telemetry.grafana import Entries, Link, link
from app.web.telemetry.log_rows import LogRows
from app.web.telemetry.panels import Drawn, Span, dropped, lay_out, number
from app.web.telemetry.ranges import Ranges, around, ranges_of
from app.web.telemetry.stamps import Stamp
from app.web.telemetry.statuses import WORDS
from app.web.timeline.asked import stamp
from witness.rules.amounts import amount
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
    around: str | None


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
    purged_at: datetime | None


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
    node: Node | None
    log: LogRows | None
    months: OverMonths | None
    grafana: Link | None
    ranges: Ranges
    stamp: Stamp

    def amount(self, value: float, field: Field | None) -> str:
        """Write how much a field moved, in the units that it may be counted in."""
        return number(value, "") if field is None else amount(field, value)


def stamp_of(connection: Connection, gpu: Gpu, span: Range) -> Stamp:
    """Stamp what the page shows of a time, without reading any samples."""
    windows = telemetry_asked.beside(connection, gpu.id, span.start, span.end, WINDOWS)
    return stamps.stamp(windows, telemetry_kept.readings_of_gpu(connection, gpu.id, READINGS + 1))


def read_on_gpu(
    connection: Connection, gpu: Gpu, span: Range, now: datetime, entries: Entries
) -> OnGpu:
    """Read what the page of a GPU shows of its telemetry in a time."""
    kept = telemetry_kept.readings_of_gpu(connection, gpu.id, READINGS + 1)
    times = telemetry_asked.times_of(connection, [one.alarm_id for one in kept])
    found = read_ranged(connection, gpu, span)
    events = read_events(connection, gpu.id, span.start, span.end)
    drawn_span = Span(span.start.timestamp(), span.end.timestamp(), None, events.marks, events.jobs)
    asked = _asked(found.windows, gpu.id)
    node = node_at(connection, gpu.id, span.end)
    query = urlencode([("from", stamp(span.start)), ("to", stamp(span.end))])
    return OnGpu(
        readings=tuple(_said(one, times.get(one.alarm_id), now) for one in kept[:READINGS]),
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
        node=node,
        log=None if node is None else _log(connection, gpu, node, span),
        months=read_moved(connection, gpu.id, gpu.uuid),
        grafana=None if node is None else link(
            entries, node.cluster, node.name, span.start, span.end
        ),
        ranges=ranges_of(span, now),
        stamp=stamps.stamp(found.windows, kept),
    )  # fmt: skip


def _said(one: telemetry_kept.Kept, at: datetime | None, now: datetime) -> Said:
    return Said(
        one.alarm_id, at, one.status, WORDS[one.status], one.headline, one.whole,
        None if at is None or at > now else around(at, now),
    )  # fmt: skip


def _log(connection: Connection, gpu: Gpu, node: Node, span: Range) -> LogRows:
    return log_rows.of_gpu(read_node_log_of(connection, node, span.start, span.end), gpu.uuid)


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
            purged_at=max((one.purged_at for one in group if one.purged_at), default=None),
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
        if window.purged_at is not None:
            return "Done; retention has deleted the samples since. They can be asked for again."
        if not window.samples:
            return "Done: the source has no samples of this GPU in this time. That clears nothing."
        part = " The source called its answer incomplete." if window.partial else ""
        return f"Done.{part}"
    if window.state == "no_source":
        return "No source of metrics is configured for this cluster."
    return said.strip() or "Refused."
