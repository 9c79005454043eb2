"""Which other times lie one click away from the one that is shown?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from app.actions.telemetry.on_demand import EARLIEST, LONGEST, Range
from app.web.timeline.asked import stamp

AROUND_BEFORE, AROUND_AFTER = timedelta(minutes=90), timedelta(minutes=30)
LATEST = (("last 2 hours", timedelta(hours=2)), ("last 24 hours", LONGEST))


@dataclass(frozen=True, slots=True)
class Ranges:
    """Queries of an address; None where there is nothing on that side."""

    earlier: str | None
    later: str | None
    latest: tuple[tuple[str, str], ...]


def ranges_of(span: Range, now: datetime) -> Ranges:
    """Give the times beside a range, as long as it, and the newest ones."""
    length = span.end - span.start
    first = span.start - length
    last = min(span.end + length, now)
    return Ranges(
        _query(first, span.start) if first >= EARLIEST else None,
        _query(last - length, last) if span.end < now - timedelta(minutes=1) else None,
        tuple((label, _query(now - back, now)) for label, back in LATEST),
    )


def around(at: datetime, now: datetime) -> str:
    """Give the query for the time around an alarm."""
    return _query(at - AROUND_BEFORE, min(at + AROUND_AFTER, now))


def _query(start: datetime, end: datetime) -> str:
    return urlencode([("from", stamp(start)), ("to", stamp(end))])
