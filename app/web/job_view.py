"""What does the page of one job say, section by section?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from markupsafe import Markup

from app.actions.job_dossier import ATTEMPTS_PAGE, JobDossier
from app.actions.job_map import MapView
from app.store import ids
from app.store.job_reading import AttemptRow
from app.web import words
from app.web.drawings.hour_strip import HourStrip, hour_strip, lane_labels
from app.web.drawings.rates import Mark

FAMILY_MARKS: dict[str, Mark] = {"ring": "ring", "nonfinite": "nonfinite", "weights": "weights"}


@dataclass(frozen=True, slots=True)
class State:
    """How the job stands: a tag's class, the word, and since when."""

    tag: str
    word: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class JobView:
    """The parts that the template does not read from the dossier itself."""

    state: State
    strip: Markup
    strip_labels: Markup
    newer_attempts: str | None
    older_attempts: str | None


def build(dossier: JobDossier, now: datetime, page: int) -> JobView:
    """Lay a job out."""
    address = f"/jobs/{ids.show(dossier.job.id)}"
    more = page * ATTEMPTS_PAGE < dossier.attempts_in_all
    return JobView(
        state=state_of(dossier),
        strip=hour_strip(_strip(dossier, now)),
        strip_labels=lane_labels(),
        newer_attempts=f"{address}?attempts={page - 1}#attempts" if page > 1 else None,
        older_attempts=f"{address}?attempts={page + 1}#attempts" if more else None,
    )


def state_of(dossier: JobDossier) -> State:
    """Say how the newest attempt stands, as far as anybody knows."""
    newest = dossier.newest
    if newest is None:
        return State("unknown", "No start is known", None)
    if newest.alarm_at is not None:
        return State("suspect", "Stopped at an alarm", newest.alarm_at)
    if dossier.silent:
        heard = newest.last_pass_at or newest.began
        word = "Silent: passes stopped" if newest.last_pass_at else "Silent: no pass ever came"
        return State("unknown", word, heard)
    if newest.last_pass_at is None:
        return State("unknown", "No pass is known", newest.began)
    return State("", "Last pass", newest.last_pass_at)


def attempt_words(attempt: AttemptRow) -> str:
    """Name a start: its number, or that there is none, and which start of several it was."""
    if attempt.number is None:
        return f"no number, start {attempt.start}"
    if attempt.starts > 1:
        return f"attempt {attempt.number}, start {attempt.start} of {attempt.starts}"
    return f"attempt {attempt.number}"


def ranges(numbers: Sequence[int], most: int = 4) -> str:
    """Write ranks as ranges: "8-15, 24-31"; past `most` ranges say how many ranks there are."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{first}" if first == last else f"{first} to {last}" for first, last in runs[:most]]
    if len(runs) > most:
        texts.append(f"and more, {len(numbers):,} in all")
    return ", ".join(texts)


def map_link(job_id: int, attempt_id: int, view: MapView, **changed: str | int) -> str:
    """Write the address of the job's page with another look at the map."""
    pairs: dict[str, str | int] = {
        "attempt": ids.show(attempt_id),
        "map": view.by,
        "find": view.find,
        "page": view.page,
    }
    pairs.update(changed)
    kept = {
        name: value
        for name, value in pairs.items()
        if value not in ("", 1) and not (name == "map" and value == "nodes")
    }
    return f"/jobs/{ids.show(job_id)}?{urlencode(kept)}#map"


def unplaced_words(view: MapView) -> str | None:
    """Say how many ranks of a map have no node."""
    posted = view.posted
    if not posted.unplaced:
        return None
    have = "has" if posted.unplaced == 1 else "have"
    return f"{posted.unplaced:,} of {words.count(posted.ranks, 'rank')} {have} no node"


def _strip(dossier: JobDossier, now: datetime) -> HourStrip:
    strip = dossier.strip
    worked: set[int] = set()
    for attempt in dossier.attempts:
        first, last = _hour(attempt.began), _hour(min(attempt.ended, now))
        worked.update(range(max(first, strip.first), min(last, strip.last) + 1))
    return HourStrip(
        first=strip.first,
        last=strip.last,
        passes={(one.hour, one.check): one.count for one in strip.hours},
        worked=frozenset(worked),
        alarms=[
            (_hour(one.occurred_at), FAMILY_MARKS.get(one.family, "nobody"))
            for one in dossier.alarms
        ],
    )


def _hour(at: datetime) -> int:
    return int(at.timestamp()) // 3600
