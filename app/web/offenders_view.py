"""What does the page of repeat offenders say, row by row?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from markupsafe import Markup

from app.actions.offender_query import CHECKS, KINDS, ORDERS, day_text, write_query
from app.actions.offender_ranking import Ranked, Ranking
from app.store.offender_devices import OpenCase, Place
from app.store.offender_shapes import Order, Query
from app.store.tables import WINDOWS
from app.web import words
from app.web.drawings.p_bar import in_digits, no_bar, p_bar
from app.web.drawings.rates import (
    Mark,
    Scale,
    incident_strip,
    mark_of,
    one_mark,
    rate_axis,
    rate_interval,
)
from witness.rules.repeat_offenders import Recurrence

PAGE = 50
KIND_WORDS = {
    "culprit": "culprit",
    "persistent": "persistent",
    "transient": "transient",
    "replayer": "replayer computed wrong",
    "unclear": "unclear",
    "ambiguous": "ambiguous pair",
    "weights": "weights differ",
    "no_majority": "weights, no majority",
    "nonfinite": "non-finite gradient",
    "reduced": "reduced gradient",
}
CHECK_WORDS = {
    "nonfinite": "non-finite",
    "ring": "ring",
    "weights": "weights",
    "reduced gradient": "reduced gradient",
}
SUBJECT_WORDS = {
    "gpu": ("GPU", "GPUs"),
    "node": ("node", "nodes"),
    "instance": ("instance", "instances"),
}
ORDER_WORDS = {"p": "P", "rate": "rate, lower end", "incidents": "incidents"}
LEGEND: tuple[tuple[Mark, str], ...] = (
    ("ring", "ring"),
    ("nonfinite", "non-finite"),
    ("weights", "weights"),
    ("nobody", "names nobody"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One device as shown; markup is drawn by the server, texts are other people's."""

    place: int
    label: str
    address: str | None
    where: Place | None
    gpu_index: int | None
    case: OpenCase | None
    gpus_with_incidents: int
    p: str | None
    p_bar: Markup
    rate: Markup
    rate_words: str
    strip: Markup
    last_at: datetime
    recurs: str | None
    recurrence: str | None
    incidents: int
    alarms: int
    jobs: int
    hours: float | None


@dataclass(frozen=True, slots=True)
class View:
    """The whole page."""

    query: Query
    rows: tuple[Row, ...]
    summary: str
    heading: str
    one: str
    axis: Markup
    strip_head: str
    note: str | None
    newer: str | None
    older: str | None
    all_time: str
    csv: str
    json: str
    fields: dict[str, str]
    ranked_by: dict[Order, str]
    legend: tuple[tuple[Markup, str], ...]


def build(query: Query, ranking: Ranking, now: datetime, page: int) -> View:
    """Lay the ranking out."""
    fleet = ranking.fleet
    usual = fleet.incidents / fleet.audited_gpu_hours if fleet.audited_gpu_hours > 0 else None
    usual = usual or None
    rates = [row.rate for row in ranking.rows if row.rate is not None]
    scale = Scale.of(
        [*(rate.high for rate in rates), *(rate.low for rate in rates if rate.low), usual or 1]
    )
    until = ranking.until or now
    since = ranking.since or min(
        (row.device.incidents[0].first_at for row in ranking.rows if row.device.incidents),
        default=until,
    )
    pairs = write_query(query)
    one, many = SUBJECT_WORDS[query.subject]
    return View(
        query=query,
        rows=tuple(_row(row, scale, usual, since, until) for row in ranking.rows),
        summary=_summary(query, ranking, usual),
        heading=words.count(ranking.totals.devices, one, many),
        one=one,
        axis=rate_axis(scale, usual),
        strip_head=_span(since, ranking.until),
        note=_note(query, ranking, many),
        newer=None if page == 1 else link([*pairs, *_page(page - 1)]),
        older=link([*pairs, *_page(page + 1)]) if page * PAGE < ranking.reach else None,
        all_time=link(write_query(replace(query, days=None, first_day=None, last_day=None))),
        csv="/api/v1/offenders?" + urlencode([*pairs, ("format", "csv")]),
        json="/api/v1/offenders" + (f"?{urlencode(pairs)}" if pairs else ""),
        fields=_fields(query),
        ranked_by={order: link(write_query(_ordered(query, order))) for order in ORDERS},
        legend=tuple((one_mark(mark), text) for mark, text in LEGEND),
    )


def link(pairs: Sequence[tuple[str, str]]) -> str:
    """Write the address of a query."""
    return "/offenders" + (f"?{urlencode(pairs)}" if pairs else "")


def _span(since: datetime, until: datetime | None) -> str:
    """Head the column of incidents with its first and last day."""
    last = "now" if until is None else _day(until - timedelta(days=1))
    return f"{_day(since)} to {last}"


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b %Y}"


def window_words(query: Query) -> str:
    """Name the window."""
    if query.days is not None:
        return f"{query.days} days"
    first, last = day_text(query.first_day), day_text(query.last_day)
    if first and last:
        return f"the days from {first} to {last}"
    if first or last:
        return f"the days from {first} on" if first else f"the days up to {last}"
    return "all time"


def choices() -> dict[str, object]:
    """List what the form offers."""
    return {
        "subjects": [(key, one) for key, (one, _) in SUBJECT_WORDS.items()],
        "windows": [
            *((str(days), f"{days} days") for days in WINDOWS),
            ("all", "all time"),
            ("custom", "from … to …"),
        ],
        "checks": [(one, CHECK_WORDS[one]) for one in CHECKS],
        "kinds": [(one, KIND_WORDS[one]) for one in KINDS],
        "orders": list(ORDER_WORDS.items()),
    }


def _row(row: Ranked, scale: Scale, usual: float | None, since: datetime, until: datetime) -> Row:
    device, key = row.device, f"{row.place}"
    served = device.exposure.spans(since, until)
    shown = [
        (one.first_at, mark_of(one.kind))
        for one in device.incidents
        if since <= one.first_at <= until
    ]
    return Row(
        place=row.place,
        label=device.label,
        address=_address(row),
        where=device.place,
        gpu_index=device.place.gpu_index if device.place else None,
        case=device.case,
        gpus_with_incidents=device.gpus_with_incidents,
        p=None if row.score is None else p_text(row.score.p),
        p_bar=no_bar() if row.score is None else p_bar(row.score.p, None, key),
        rate=rate_interval(row.rate, scale, usual, key),
        rate_words=_rate_words(row),
        strip=incident_strip(shown, since, until, served, key),
        last_at=row.candidate.last_at,
        recurs=_recurs(row.recurrence),
        recurrence=row.recurrence.words if row.recurrence else None,
        incidents=row.candidate.incidents,
        alarms=row.candidate.alarms,
        jobs=row.jobs,
        hours=row.hours,
    )


def p_text(p: float) -> str:
    """Write P; what rounds to 1 is not written as certain."""
    return "> 0.9999" if p > 0.9999 else in_digits(p)


def _recurs(found: Recurrence | None) -> str | None:
    if found is None:
        return None
    kind = KIND_WORDS.get(found.lead.kind, found.lead.kind)
    more = f" and {found.count - 1} more" if found.count > 1 else ""
    return f"{kind} before on {found.lead.at:%Y-%m-%d}{more}"


def _address(row: Ranked) -> str | None:
    if row.device.gpu_id is not None:
        return f"/gpus/{words.ident(row.device.gpu_id)}"
    place = row.device.place
    return None if place is None else f"/nodes/{words.ident(place.node_id)}"


def _rate_words(row: Ranked) -> str:
    if row.rate is None or row.rate.mean is None:
        return "unknown: no audited hours"
    said = "once in " + words.duration(3600 / row.rate.mean) if row.rate.mean > 0 else "none"
    ratio = row.against.ratio if row.against else None
    if ratio is None:
        return said
    return f"{said}, {words.number(ratio)} times the fleet’s"


def _summary(query: Query, ranking: Ranking, usual: float | None) -> str:
    one, many = SUBJECT_WORDS[query.subject]
    totals = ranking.totals
    named = words.count(totals.devices, one, many)
    said = f"{named} with {words.count(totals.incidents, 'incident')} in {window_words(query)}."
    if usual is not None:
        return f"{said} The fleet’s rate is {usual:.2g} per audited GPU-hour."
    if ranking.fleet.audited_gpu_hours > 0:
        hours = words.number(ranking.fleet.audited_gpu_hours)
        return f"{said} The fleet had none of these in {hours} audited GPU-hours."
    return f"{said} No passes are known in this window, so the fleet’s rate is unknown."


def _note(query: Query, ranking: Ranking, many: str) -> str | None:
    notes = []
    if ranking.cut:
        notes.append("More names begin like this than are looked at; write more of the name.")
    if ranking.reach < ranking.totals.devices:
        notes.append(
            f"Ranked are the {ranking.reach} {many} with the weightiest incidents; "
            "rank by incidents to page through all."
        )
    return " ".join(notes) or None


def _page(page: int) -> list[tuple[str, str]]:
    return [] if page <= 1 else [("page", str(page))]


def _ordered(query: Query, order: Order) -> Query:
    return replace(query, order=order)


def _fields(query: Query) -> dict[str, str]:
    custom = query.first_day is not None or query.last_day is not None
    window = "custom" if custom else "all" if query.days is None else str(query.days)
    return {
        "window": window,
        "from": day_text(query.first_day),
        "to": day_text(query.last_day),
        "q": query.q or "",
    }
