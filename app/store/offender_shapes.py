"""What can be asked about repeat offenders, and in which shapes does the answer come?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from app.store.tables import WINDOWS

Subject = Literal["gpu", "instance", "node"]
Order = Literal["p", "rate", "incidents"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for; empty tuples and None mean "all".

    `days` is a window up to today, None: all time unless `first_day` (inclusive) or `last_day`
    (inclusive) bound it, both counted from 1970.
    """

    subject: Subject = "gpu"
    days: int | None = 90
    first_day: int | None = None
    last_day: int | None = None
    checks: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    incidents: int = 1
    alarms: int = 1
    jobs: int = 1
    q: str | None = None
    order: Order = "p"

    @property
    def counted_ahead(self) -> bool:
        """Tell whether the windows answer this, without summing days."""
        bounded = self.first_day is not None or self.last_day is not None
        preset = self.days is None or self.days in WINDOWS
        return preset and not bounded and not self.checks and not self.kinds

    def day_range(self, today: int) -> tuple[int | None, int | None]:
        """Give the first and last day of the window; None where it is open."""
        if self.days is not None:
            return today - self.days + 1, None
        return self.first_day, self.last_day


@dataclass(frozen=True, slots=True)
class Candidate:
    """One device of the answer with its counts in the window."""

    subject: Subject
    key: str
    cluster: str
    incidents: int
    alarms: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Totals:
    """How many devices fit the query, with how many incidents together."""

    devices: int = 0
    incidents: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Incidents and audited GPU-hours of the whole fleet in the same window."""

    incidents: int
    audited_gpu_hours: float


@dataclass(frozen=True, slots=True)
class Found:
    """Devices in the asked order, the totals and the fleet."""

    candidates: tuple[Candidate, ...]
    totals: Totals
    fleet: Fleet
    today: int
    cut: bool = field(default=False)  # the text began more names than are looked at
