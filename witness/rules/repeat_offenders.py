"""Has this GPU or instance alarmed before, and more than others do?"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from witness.rules.gamma import poisson_at_least, poisson_interval

RECURRENCE_DAYS = 90
"""A second incident within this many days recurs, whatever job and node are called by then."""

KIND_WORDS = {
    "replayer": "wrong as replayer",
    "nonfinite": "gradient not finite",
    "no_majority": "weights without majority",
}
"""Kinds whose code is not a word that a sentence can carry."""


@dataclass(frozen=True, slots=True)
class PastIncident:
    """An earlier incident on the same GPU or on the same instance; rank None where unknown."""

    at: datetime
    job: str
    rank: int | None
    kind: str
    same: Literal["gpu", "instance"]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Earlier incidents inside the window, the most telling first, and a sentence about them."""

    count: int
    lead: PastIncident
    words: str
    incidents: tuple[PastIncident, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """Incidents an audited hour with the exact 95 % interval; mean None without any hours."""

    incidents: int
    hours: float
    mean: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AgainstFleet:
    """A device's rate over the fleet's, and how probable so many incidents are by chance.

    `ratio` is None where the fleet has no incident or no hours.
    """

    ratio: float | None
    chance: float | None


def recurrence(
    previous: Sequence[PastIncident],
    at: datetime,
    within_days: int = RECURRENCE_DAYS,
    kind: str | None = None,
) -> Recurrence | None:
    """Find earlier incidents at most `within_days` before `at`; None where there are none.

    Each is held against `at` alone, so events in between neither restart nor break the count.
    The lead is on the same GPU before the same instance, of the same kind before others, the
    newest of those.
    """
    since = at - timedelta(days=within_days)
    inside = [one for one in previous if since <= one.at < at]
    if not inside:
        return None
    ordered = sorted(inside, key=lambda one: one.at, reverse=True)
    ordered.sort(key=lambda one: (one.same != "gpu", one.kind != kind))
    text = "; ".join(_said(one) for one in ordered[:3])
    if len(ordered) > 3:
        text += f"; and {len(ordered) - 3} more"
    return Recurrence(len(ordered), ordered[0], text, tuple(ordered))


def rate(incidents: int, hours: float) -> Rate:
    """Estimate incidents an audited hour."""
    low, high = poisson_interval(incidents, hours)
    return Rate(incidents, hours, incidents / hours if hours > 0 else None, low, high)


def against_fleet(
    incidents: int, hours: float, fleet_incidents: int, fleet_hours: float
) -> AgainstFleet:
    """Hold one device against the fleet's rate over the same kind of hours."""
    if fleet_hours <= 0 or hours <= 0 or fleet_incidents <= 0:
        return AgainstFleet(None, None)
    usual = fleet_incidents / fleet_hours
    return AgainstFleet(incidents / hours / usual, poisson_at_least(incidents, usual * hours))


def _said(one: PastIncident) -> str:
    """Say what an earlier incident was, when, where, and what it has in common."""
    where = f"job {one.job}" if one.rank is None else f"job {one.job}, rank {one.rank}"
    same = "GPU" if one.same == "gpu" else "instance"
    kind = KIND_WORDS.get(one.kind, one.kind)
    return f"{kind} before on {one.at:%Y-%m-%d} ({where}), same {same}"
