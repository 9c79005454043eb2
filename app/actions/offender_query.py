"""How is a query about repeat offenders written in an address, and read back?

The page, its CSV and JSON and the saved queries all use the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar, get_args

from app.filters import bad, instant, read_filters
from app.store.intake.offender_rows import day_of
from app.store.offender_shapes import Order, Query, Subject
from app.store.tables import WINDOWS

CHECKS = ("nonfinite", "ring", "weights", "reduced gradient")
KINDS = (
    "culprit",
    "persistent",
    "transient",
    "replayer",
    "unclear",
    "ambiguous",
    "weights",
    "no_majority",
    "nonfinite",
    "reduced",
)
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
ORDERS: tuple[Order, ...] = get_args(Order)
PARAMETERS = (
    "by",
    "window",
    "from",
    "to",
    "check",
    "kind",
    "incidents",
    "alarms",
    "jobs",
    "cluster",
    "q",
    "rank",
)
_MOST = 1_000_000_000

T = TypeVar("T", bound=str)


def read_query(given: Iterable[tuple[str, str]]) -> Query:
    """Read a query string; raise a 400 that names the parameter which is wrong."""
    pairs = [(name, value) for name, value in given if name in PARAMETERS and value != ""]
    words = [pair for pair in pairs if pair[0] not in ("from", "to")]
    filters = read_filters(words, ("cluster", "check", "q"))
    query = Query(
        subject=_one_of(pairs, "by", SUBJECTS, "gpu"),
        checks=_known(filters.check, "check", CHECKS),
        kinds=_known(tuple(value for name, value in pairs if name == "kind"), "kind", KINDS),
        clusters=filters.cluster,
        incidents=_least(pairs, "incidents"),
        alarms=_least(pairs, "alarms"),
        jobs=_least(pairs, "jobs"),
        q=filters.q.strip() if filters.q else None,
        order=_one_of(pairs, "rank", ORDERS, "p"),
    )
    if set(query.checks) == set(CHECKS):
        query = replace(query, checks=())
    return _windowed(query, _single(pairs, "window"), _moment(pairs, "from"), _moment(pairs, "to"))


def write_query(query: Query) -> list[tuple[str, str]]:
    """Write a query as parameters, leaving out what is as it is anyway."""
    pairs: list[tuple[str, str]] = []
    plain = Query()
    if query.subject != plain.subject:
        pairs.append(("by", query.subject))
    pairs += _window_pairs(query)
    pairs += [("check", one) for one in query.checks]
    pairs += [("kind", one) for one in query.kinds]
    for name in ("incidents", "alarms", "jobs"):
        if getattr(query, name) != 1:
            pairs.append((name, str(getattr(query, name))))
    pairs += [("cluster", one) for one in query.clusters]
    if query.q:
        pairs.append(("q", query.q))
    if query.order != plain.order:
        pairs.append(("rank", query.order))
    return pairs


def day_text(day: int | None) -> str:
    """Write a day counted from 1970 as a date; empty where there is none."""
    return "" if day is None else datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def _window_pairs(query: Query) -> list[tuple[str, str]]:
    if query.days is not None:
        return [] if query.days == Query().days else [("window", str(query.days))]
    if query.first_day is None and query.last_day is None:
        return [("window", "all")]
    bounds = (("from", query.first_day), ("to", query.last_day))
    return [
        ("window", "custom"),
        *((name, day_text(day)) for name, day in bounds if day is not None),
    ]


def _windowed(
    query: Query, window: str | None, since: datetime | None, until: datetime | None
) -> Query:
    if window is None:
        window = "custom" if since or until else "90"
    if window == "all":
        return replace(query, days=None)
    if window == "custom":
        # A query of whole days: "to" names the last day that counts.
        first = None if since is None else day_of(since)
        last = None if until is None else day_of(until)
        if first is not None and last is not None and first > last:
            raise bad("to", "to must not be earlier than from.")
        return replace(query, days=None, first_day=first, last_day=last)
    if window not in {str(days) for days in WINDOWS}:
        choices = ", ".join(map(str, WINDOWS))
        raise bad("window", f"window must be one of {choices}, all or custom.")
    return replace(query, days=int(window))


def _moment(pairs: list[tuple[str, str]], name: str) -> datetime | None:
    text = _single(pairs, name)
    return None if text is None else instant(name, text)


def _single(pairs: list[tuple[str, str]], name: str) -> str | None:
    values = [value for one, value in pairs if one == name]
    if len(values) > 1:
        raise bad(name, f"{name} was given {len(values)} times.")
    return values[0] if values else None


def _one_of(pairs: list[tuple[str, str]], name: str, known: tuple[T, ...], otherwise: T) -> T:
    value = _single(pairs, name)
    for one in known:
        if one == value:
            return one
    if value is None:
        return otherwise
    raise bad(name, f"{name} must be one of {', '.join(known)}.")


def _known(values: tuple[str, ...], name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in known:
            raise bad(name, f"{name} must be one of {', '.join(known)}.")
    return tuple(one for one in known if one in values)


def _least(pairs: list[tuple[str, str]], name: str) -> int:
    text = _single(pairs, name)
    if text is None:
        return 1
    if not (text.isascii() and text.isdigit() and len(text) < 11 and 1 <= int(text) <= _MOST):
        raise bad(name, f"{name} must be a whole number from 1.")
    return int(text)
