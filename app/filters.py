"""Which rows does a list or a page show?  The same filters everywhere, each error naming its field.

`read_filters(parameters, known)` takes the query string of a page or of a JSON list.  Every filter
may be given more than once and then means any of the values; an empty value is no filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.errors import Problem

TEXT_FILTERS = (
    "cluster",
    "namespace",
    "job",
    "node",
    "instance",
    "gpu",
    "check",
    "rule",
    "status",
)
FILTERS = (*TEXT_FILTERS, "from", "to", "q")
LONGEST = 1_000
MOST_VALUES = 50

Parameters = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Filters:
    """What was asked for: `()` and None mean "all".

    `job`, `node`, `instance` and `gpu` hold names or ids as typed; `since` is inclusive, `until`
    exclusive; `q` is free text.
    """

    cluster: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    job: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    rule: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    q: str | None = None
    as_typed: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def narrowed(self) -> bool:
        """Tell whether anything is filtered at all."""
        return self != Filters()


def read_filters(parameters: Parameters, known: Iterable[str] = FILTERS) -> Filters:
    """Read the filters out of a query string; other parameters are left to the caller.

    A filter that this list does not know (`known`) is refused: ignoring it would show rows that
    were not asked for.
    """
    allowed = set(known)
    values: dict[str, list[str]] = {}
    for name, value in parameters:
        if name not in FILTERS or value == "":
            continue
        if name not in allowed:
            raise bad(name, f"This list cannot be filtered by {name}.")
        values.setdefault(name, []).append(_checked(name, value))
    for name, given in values.items():
        limit = MOST_VALUES if name in TEXT_FILTERS else 1
        if len(given) > limit:
            raise bad(name, f"{name} was given {len(given)} times; {limit} is the most.")
    since, until = _instant(values, "from"), _instant(values, "to")
    if since is not None and until is not None and since >= until:
        raise bad("to", "to must be later than from.")
    typed = tuple((name, value) for name, given in values.items() for value in given)
    texts = {name: tuple(values.get(name, ())) for name in TEXT_FILTERS}
    return Filters(**texts, since=since, until=until, q=_one(values, "q"), as_typed=typed)


def bad(name: str, message: str) -> Problem:
    """Refuse one parameter of the query string."""
    return Problem(400, "bad_parameter", message, field=name)


def instant(name: str, text: str) -> datetime:
    """Read an RFC 3339 time or a date; without zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"{name} must be a time such as 2026-03-02T10:00:00Z, not {text[:60]!r}."
        raise bad(name, message) from None


def _checked(name: str, value: str) -> str:
    if len(value) > LONGEST:
        raise bad(name, f"{name} is longer than {LONGEST} characters.")
    if "\x00" in value:
        raise bad(name, f"{name} holds a NUL character.")
    return value


def _one(values: dict[str, list[str]], name: str) -> str | None:
    given = values.get(name)
    return given[0] if given else None


def _instant(values: dict[str, list[str]], name: str) -> datetime | None:
    text = _one(values, name)
    return None if text is None else instant(name, text)
