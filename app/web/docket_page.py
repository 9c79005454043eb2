"""What does one look at the docket read, and which address shows which part of it?"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request

from app.actions import certainty, tests_of_case
from app.context import Context
from app.filters import Filters, bad, read_filters
from app.store import (
    condemned_reading,
    docket_details,
    docket_reading,
    fleet_reading,
    proposals,
    telemetry_kept,
)
from app.store.condemned_reading import Sighting
from app.store.connection import Connection
from app.store.docket_reading import DocketCase, DocketCounts, Key
from app.store.fleet_reading import FleetState
from app.web import docket_view
from app.web.docket_view import Row

PAGE = 50
CONDEMNED = 5  # the newest condemned GPUs at work stand above the cases
SHOWN = ("open", "me", "suspect", "ambiguous", "software", "closed")
FILTERS = (
    "cluster",
    "namespace",
    "job",
    "node",
    "instance",
    "gpu",
    "check",
    "rule",
    "from",
    "to",
    "q",
)
GROUPS = (
    (docket_reading.PERSON, "Waits for a person", "most urgent first"),
    (docket_reading.CLUSTER, "Under way in the cluster", ""),
    (docket_reading.WATCHED, "Waits for someone else, or is watched", ""),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for."""

    show: str
    filters: Filters
    after: Key | None

    def address(self, base: str = "/", *, show: str | None = None, after: Key | None = None) -> str:
        """Write the address of another part of the docket under the same filters."""
        pairs = [*self.filters.as_typed]
        wanted = show or self.show
        if wanted != "open":
            pairs.append(("show", wanted))
        if after is not None:
            pairs.append(("cursor", write_cursor(after)))
        return base + (f"?{urlencode(pairs)}" if pairs else "")


@dataclass(frozen=True, slots=True)
class Group:
    """The rows that wait for one sort of somebody."""

    title: str
    note: str
    total: int | None  # None: the filters make the count of the group another one
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Pill:
    """One filter with its count."""

    label: str
    count: int
    address: str
    current: bool


@dataclass(frozen=True, slots=True)
class Docket:
    """Everything on the page."""

    asked: Asked
    groups: list[Group]
    pills: list[Pill]
    counts: DocketCounts
    fleet: FleetState
    condemned: tuple[Sighting, ...]  # at work, and nobody took note
    older: str | None
    newest_document: datetime | None
    stamp: str


def read_asked(request: Request) -> Asked:
    """Read the query string; a wrong value is refused by name."""
    pairs = request.query_params.multi_items()
    show = request.query_params.get("show") or "open"
    if show not in SHOWN:
        raise bad("show", f"show must be one of {', '.join(SHOWN)}.")
    cursor = request.query_params.get("cursor")
    return Asked(show, read_filters(pairs, FILTERS), read_cursor(cursor) if cursor else None)


def write_cursor(key: Key) -> str:
    """Write a place in the order as an opaque text."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Key:
    """Read a place back; refuse what is none."""
    try:
        padded = text + "=" * (-len(text) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        group, urgency, at, case_id = parts
        fits = all(type(one) is int and abs(one) < 2**63 for one in parts)
    except (ValueError, TypeError, RecursionError):
        fits, group, urgency, at, case_id = False, 0, 0, 0, 0
    if not fits:
        raise bad("cursor", "This cursor is none of ours; begin again without.")
    return group, urgency, at, case_id


def read_docket(context: Context, asked: Asked) -> Docket:
    """Read one page of the docket in one database connection."""
    now = context.now()
    silent_after = timedelta(minutes=context.settings.silent_after_minutes)
    with context.store.reading() as connection:
        found = _cases(connection, asked)
        shown = found[:PAGE]
        counts = docket_reading.counts(connection, asked.filters)
        rows = read_rows(connection, shown, now)
        return Docket(
            asked=asked,
            groups=_groups(rows, counts, asked),
            pills=_pills(counts, asked),
            counts=counts,
            fleet=fleet_reading.read(connection, now, silent_after),
            condemned=condemned_reading.open_ones(connection, CONDEMNED),
            older=asked.address(after=shown[-1].key) if len(found) > PAGE else None,
            newest_document=docket_reading.newest_document(connection),
            stamp=stamp(connection, now),
        )


def _cases(connection: Connection, asked: Asked) -> tuple[DocketCase, ...]:
    if asked.show == "closed":
        return docket_reading.closed_cases(connection, asked.filters, asked.after, PAGE + 1)
    return docket_reading.open_cases(connection, asked.show, asked.filters, asked.after, PAGE + 1)


def read_rows(connection: Connection, found: tuple[DocketCase, ...], now: datetime) -> list[Row]:
    """Read what stands beside the cases and put the rows together."""
    case_ids = [case.id for case in found]
    gpu_ids = {case.gpu_id for case in found if case.gpu_id is not None}
    fleet = certainty.false_alarms(connection)
    details = docket_details.read(connection, case_ids, {case.job_id for case in found}, now)
    about = [(case.id, case.gpu_id, case.last_alarm_id) for case in found]
    details.telemetry = telemetry_kept.of_cases(connection, about)
    return docket_view.rows(
        found,
        details,
        proposals.of_cases(connection, case_ids),
        certainty.of_gpus(connection, gpu_ids, now, fleet),
        tests_of_case.of_cases(connection, found),
        now,
    )


def stamp(connection: Connection, now: datetime) -> str:
    """Name what the docket shows; the minute is in it, since waiting times are on the page."""
    back = condemned_reading.stamp(connection)
    return f"{fleet_reading.stamp(connection)}-{back}-{int(now.timestamp()) // 60}"


def _groups(rows: list[Row], counts: DocketCounts, asked: Asked) -> list[Group]:
    if asked.show == "closed":
        return [Group("Closed", "newest alarm first", counts.closed, rows)] if rows else []
    totals = {
        docket_reading.PERSON: counts.person,
        docket_reading.CLUSTER: counts.cluster,
        docket_reading.WATCHED: counts.watched,
    }
    plain = asked.show in ("open", "me")
    made = []
    for group, title, note in GROUPS:
        mine = [row for row in rows if row.case.group == group]
        if mine:
            made.append(Group(title, note, totals[group] if plain else None, mine))
    return made


def _pills(counts: DocketCounts, asked: Asked) -> list[Pill]:
    labels = (
        ("me", "Waits for me", counts.person),
        ("open", "All open", counts.open),
        ("suspect", "Suspect", counts.suspect),
        ("ambiguous", "Ambiguous", counts.ambiguous),
        ("software", "Software first", counts.software),
        ("closed", "Closed", counts.closed),
    )
    return [
        Pill(label, number, asked.address(show=show), asked.show == show)
        for show, label, number in labels
    ]
