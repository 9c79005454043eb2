"""Which start of a job does a document belong to?

A start is told apart by its attempt number and uid, and where the job sends none, or numbers its
starts from one again after each submission, by the time of its rank map.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from app.store import ids
from app.store.intake.lookup import rows_of_keys
from app.store.intake.upsert import merge
from app.store.tables import attempts

# Two maps of one number that differ and lie closer than this contradict each other; further
# apart they are two starts that carry one number.
SAME_START_US = 60 * 1_000_000
# A clock of a job that is further behind than this would put an alarm before its own start.
SKEW_US = 300 * 1_000_000


@dataclass(slots=True)
class Attempt:
    """One start of a job; times in microseconds, None as in the table."""

    id: int
    job_id: int
    series: int
    number: int | None
    uid: str | None
    started_at: int | None
    first_seen_at: int
    last_seen_at: int
    rank_map_id: int | None = None
    maps: int = 0
    world_size: int | None = None
    alarm_at: int | None = None
    last_pass_at: int | None = None
    step_time_s: float | None = None
    code_digest: str | None = None
    image_digest: str | None = None
    framework: str | None = None
    producer: str | None = None
    first: bool = True  # the first start of its series
    changed: bool = False

    def seen(self, at: int) -> None:
        """Widen the interval in which the attempt was seen."""
        self.first_seen_at = min(self.first_seen_at, at)
        self.last_seen_at = max(self.last_seen_at, at)
        self.changed = True


_READ = (
    "id",
    "job_id",
    "series",
    "number",
    "uid",
    "started_at",
    "first_seen_at",
    "last_seen_at",
    "rank_map_id",
    "maps",
    "world_size",
    "alarm_at",
    "last_pass_at",
    "step_time_s",
    "code_digest",
    "image_digest",
    "framework",
    "producer",
)


def series_of(job_id: int, number: int | None) -> int:
    """Derive what all starts under one attempt number of a job share."""
    return ids.derive("attempt series", job_id, number)


class AttemptBook:
    """The starts that a group of documents can belong to, with what the group changes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._series: dict[int, list[Attempt]] = {}
        self._jobs: dict[int, list[Attempt]] = {}
        self._whole: set[int] = set()  # jobs of which every start is loaded

    def load(self, numbered: Iterable[tuple[int, int]], unnumbered: Iterable[int]) -> None:
        """Read the starts of (job, number) pairs, and all starts of jobs that send no number."""
        wanted = {series_of(job, number) for job, number in numbered} - self._series.keys()
        for series in wanted:
            self._series[series] = []
        for attempt in self._rows("series", wanted):
            self._series[attempt.series].append(attempt)
        jobs = set(unnumbered) - self._whole
        self._whole |= jobs
        for attempt in self._rows("job_id", jobs):
            known = self._series.setdefault(attempt.series, [])
            if all(one.id != attempt.id for one in known):
                known.append(attempt)
        for job in jobs:
            self._jobs[job] = [
                one for starts in self._series.values() for one in starts if one.job_id == job
            ]
        for starts in self._series.values():
            _number_starts(starts)

    def find(
        self, job_id: int, number: int | None, uid: str | None, at: int
    ) -> tuple[Attempt | None, bool]:
        """Find the start; the second value says that it was inferred from the time."""
        if number is None:
            mapped = [one for one in self._jobs.get(job_id, ()) if one.started_at is not None]
            begun = [one for one in mapped if one.started_at and one.started_at <= at + SKEW_US]
            return _by_time(begun, at), True
        starts = self._series.get(series_of(job_id, number), [])
        fitting = [one for one in starts if uid is None or one.uid in (None, uid)]
        exact = [one for one in fitting if uid is not None and one.uid == uid]
        candidates = exact or fitting
        if len(candidates) < 2:
            return (candidates[0] if candidates else None), False
        mapped = [one for one in candidates if one.started_at is not None]
        return _by_time(mapped or candidates, at), True

    def open(self, job_id: int, number: int | None, uid: str | None, at: int) -> Attempt:
        """Begin a start that no document has named before."""
        series = series_of(job_id, number)
        starts = self._series.setdefault(series, [])
        told_apart = at if starts or number is None else None
        attempt = Attempt(
            id=ids.derive("attempt", job_id, number, uid, told_apart),
            job_id=job_id,
            series=series,
            number=number,
            uid=uid,
            started_at=None,
            first_seen_at=at,
            last_seen_at=at,
            first=not starts,
            changed=True,
        )
        starts.append(attempt)
        self._jobs.setdefault(job_id, []).append(attempt)
        return attempt

    def starts(self, job_id: int, number: int | None) -> list[Attempt]:
        """List the known starts under one number, or those without a number."""
        return self._series.get(series_of(job_id, number), [])

    def write(self) -> None:
        """Write what changed."""
        changed = [one for starts in self._series.values() for one in starts if one.changed]
        rows = [{name: getattr(one, name) for name in _READ} for one in changed]
        for row in rows:
            row["audited_seconds"] = 0.0
        merge(
            self._connection,
            attempts,
            rows,
            {
                "started_at": "set",
                "first_seen_at": "min",
                "last_seen_at": "max",
                "rank_map_id": "set",
                "maps": "max",
                "world_size": "fill",
                "alarm_at": "min",
                "last_pass_at": "max",
                "step_time_s": "set",
                "uid": "fill",
                "code_digest": "fill",
                "image_digest": "fill",
                "framework": "fill",
                "producer": "fill",
            },
        )
        for one in changed:
            one.changed = False

    def _rows(self, key: str, keys: Iterable[int]) -> list[Attempt]:
        rows = rows_of_keys(self._connection, attempts, _READ, keys, key)
        return [Attempt(*row) for row in rows]


def _number_starts(starts: list[Attempt]) -> None:
    starts.sort(key=lambda one: (one.started_at or one.first_seen_at, one.id))
    for place, attempt in enumerate(starts):
        attempt.first = place == 0


def _by_time(starts: list[Attempt], at: int) -> Attempt | None:
    """Take the newest start that had begun; the oldest one for a time before all of them."""
    if not starts:
        return None
    ordered = sorted(starts, key=lambda one: (one.started_at or one.first_seen_at, one.id))
    begun = [one for one in ordered if (one.started_at or one.first_seen_at) <= at]
    return begun[-1] if begun else ordered[0]
