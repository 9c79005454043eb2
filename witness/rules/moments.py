"""How do the rules write a time? Always in UTC; a page puts it into the reader's zone."""

from datetime import UTC, datetime


def at(time: float) -> str:
    """Write seconds since 1970 as "2026-03-02 10:14:30 UTC"; as a number where no year fits."""
    moment = _moment(time)
    return f"{time:g} s" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def span(first: float, last: float) -> str:
    """Write a stretch of time, with the date once where both ends share it."""
    begin, end = _moment(first), _moment(last)
    if begin is None or end is None:
        return f"{at(first)} to {at(last)}"
    if begin.date() == end.date():
        return f"{begin:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"


def _moment(time: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):
        return None
