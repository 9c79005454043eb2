"""What does a page say and draw of the telemetry around an alarm?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from app.actions.alarm_dossier import Dossier
from app.actions.telemetry.node_log import read_node_log
from app.actions.telemetry.shown import Panel, Shown, Telemetry, read_telemetry
from app.store import ids
from app.store.alarm_reading import AlarmFacts
from app.store.connection import Connection
from app.store.telemetry_queue import OPEN
from app.web.telemetry import log_rows
from app.web.telemetry.events import Events, alarm_event, node_at, read_events
from app.web.telemetry.grafana import Entries, Link, link
from app.web.telemetry.log_rows import LogRows
from app.web.telemetry.panels import Drawn, Span, dropped, lay_out, readings_between, spread
from app.web.telemetry.stamps import Stamp, of_alarm
from app.web.telemetry.statuses import WORDS
from witness.rules.cleaning import Clean
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.observations import Missing, Window
from witness.rules.telemetry import missing_in_words

OBSERVED = 12
_LEAD = re.compile(r"(?:\([^()]*\)|[^,.:]|[,.:](?! |$))*")
"""A sentence up to its first comma, colon or stop that stands in no brackets."""
_WHEN = {
    "before": "before the window",
    "window": "in the suspect window",
    "after": "after the alarm",
    "standing": "already there before the first sample",
    "unknown": "time not known",
}


@dataclass(frozen=True, slots=True)
class Observed:
    """One observation; `lead` is what is seen at once, `rest` the remainder of its sentences."""

    risen: bool
    lead: str
    rest: str
    when: str


@dataclass(frozen=True, slots=True)
class Suspected:
    """One suspect GPU as the page shows it."""

    uuid: str
    word: str
    status: str
    headline: str
    whole: bool
    observations: tuple[Observed, ...]
    more: int
    looked_at: tuple[str, ...]
    missing: tuple[str, ...]
    missing_fields: int
    notes: tuple[str, ...]
    drawn: tuple[Drawn, ...]
    undrawn: int
    sources: tuple[str, ...]
    events: Events
    drawn_from: datetime
    drawn_to: datetime
    suspect_from: datetime
    alarm_at: datetime
    purged: str | None
    delayed: tuple[str, ...]
    grafana: Link | None

    @property
    def gpu_id(self) -> int:
        """Give the id of the GPU."""
        return ids.derive("gpu", self.uuid)

    def with_fields(self, most: int) -> Suspected:
        """Draw no more fields than these."""
        cut = max(len(self.drawn) - most, 0)
        return replace(self, drawn=self.drawn[:most], undrawn=self.undrawn + cut)


@dataclass(frozen=True, slots=True)
class OnAlarm:
    """All that the page of an alarm says of telemetry and of what machines wrote down."""

    telemetry: Telemetry
    suspects: tuple[Suspected, ...]
    log: LogRows
    stamp: Stamp


def read_on_alarm(connection: Connection, dossier: Dossier, entries: Entries) -> OnAlarm:
    """Read what the page shows; `entries` is the setting of the sources."""
    telemetry = read_telemetry(connection, dossier, curves=True)
    return OnAlarm(
        telemetry,
        suspects(connection, telemetry, dossier.facts, entries),
        log_of(connection, telemetry, dossier.facts.id),
        of_alarm(connection, dossier.facts.id),
    )


def log_of(connection: Connection, telemetry: Telemetry, alarm_id: int) -> LogRows:
    """Lay out the log of an alarm's machines; `telemetry` says who is in doubt and since when."""
    uuids = frozenset(one.uuid for one in telemetry.suspects)
    found = read_node_log(connection, alarm_id)
    return log_rows.of_alarm(found, uuids, telemetry.times.suspect_from)


def suspects(
    connection: Connection, telemetry: Telemetry, facts: AlarmFacts, entries: Entries
) -> tuple[Suspected, ...]:
    """Lay out every suspect; what happened to it is read for those that are drawn."""
    return tuple(
        _suspect(one, telemetry, place, _beside(connection, one, telemetry.times, facts, entries))
        for place, one in enumerate(telemetry.suspects)
    )


def _beside(
    connection: Connection, shown: Shown, times: Window, facts: AlarmFacts, entries: Entries
) -> tuple[Events, Link | None]:
    """Read what happened to a suspect that is drawn, and where its node is drawn as well."""
    if not shown.panels:
        return Events(), None
    start, end = _moment(times.start), _moment(times.end)
    own = alarm_event(facts.id, _moment(times.alarm), facts.family, "This alarm")
    gpu = ids.derive("gpu", shown.uuid)
    node = node_at(connection, gpu, _moment(times.alarm))
    found = link(entries, facts.cluster, node.name if node else None, start, end)
    return read_events(connection, gpu, start, end, own), found


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _suspect(
    shown: Shown, telemetry: Telemetry, place: int, beside: tuple[Events, Link | None]
) -> Suspected:
    times, unread, (events, grafana) = telemetry.times, telemetry.unread, beside
    span = Span(
        times.start, times.end, (times.suspect_from, times.alarm), events.marks, events.jobs
    )
    kept = shown.kept
    reading: dict[str, Any] = dict(kept.reading) if kept else {}
    observed = [_observed(one) for one in reading.get("observations", ())]
    status = kept.status if kept else "not_collected"
    notes = [str(one) for one in reading.get("notes", ())]
    purged = next((one for one in notes if "by retention" in one), None)
    return Suspected(
        uuid=shown.uuid,
        word=WORDS[status],
        status=status,
        headline=kept.headline if kept else unread,
        whole=bool(kept and kept.whole),
        observations=tuple(observed[:OBSERVED]),
        more=max(len(observed) - OBSERVED, 0),
        looked_at=tuple(BY_ID[one].title for one in reading.get("looked_at", ())),
        missing=missing_in_words([Missing(**one) for one in reading.get("missing", ())]),
        missing_fields=len(reading.get("missing", ())),
        notes=tuple(one for one in notes if one != purged),
        drawn=tuple(
            _drawn(one, times, span, f"t{place}-{n}") for n, one in enumerate(shown.panels)
        ),
        undrawn=shown.panels_in_all - len(shown.panels),
        sources=tuple(dict.fromkeys(one.source for one in shown.windows if one.source)),
        events=events,
        drawn_from=_moment(times.start),
        drawn_to=_moment(times.end),
        suspect_from=_moment(times.suspect_from),
        alarm_at=_moment(times.alarm),
        purged=purged,
        delayed=tuple(
            dict.fromkeys(one.said for one in shown.windows if one.said and one.state in OPEN)
        )[:3],
        grafana=grafana,
    )


def _observed(one: Mapping[str, Any]) -> Observed:
    text = str(one["text"])
    lead = _LEAD.match(text)
    end = lead.end() if lead else len(text)
    return Observed(bool(one["risen"]), text[:end], text[end:], _WHEN[str(one["when"])])


def _drawn(panel: Panel, times: Window, span: Span, key: str) -> Drawn:
    def cells(field: Field, own: Sequence[Clean]) -> tuple[str, ...]:
        spans = (
            (times.start, times.suspect_from),
            (times.suspect_from, times.until),
            (times.until, times.end),
        )
        return (*(spread(readings_between(own, *one), field.unit) for one in spans), dropped(own))

    return lay_out(panel, span, key, cells)
