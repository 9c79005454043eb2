"""What does a row of the docket say: verdict, evidence, how sure, last hours, what is next?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from markupsafe import Markup

from app.actions.certainty import Certainty
from app.actions.tests_of_case import Tested
from app.store.columns import micros
from app.store.docket_details import HOUR_US, HOURS, Details, KindCount, first_hour
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from app.web import machine_tests, words
from app.web.chip import Chip
from app.web.drawings.hour_cells import Cell, hour_cells
from app.web.drawings.p_bar import in_digits, no_bar, p_bar
from app.web.next_step import Next, next_step
from app.web.telemetry import statuses


@dataclass(frozen=True, slots=True)
class Sure:
    """P with its bar; `value` None: not scored, `note` says why."""

    value: str | None
    bar: Markup
    note: str


@dataclass(frozen=True, slots=True)
class Row:
    """One case as the docket shows it."""

    case: DocketCase
    chips: tuple[Chip, ...]
    sure: Sure
    cells: Markup
    other_jobs: int
    next: Next


# With few audited hours the bound says nothing: P would be "at least 0.00" everywhere.
SHOWN_FROM = 0.01

_RING = {
    "culprit": "2/2",
    "persistent": "1/2 persistent",
    "transient": "1/2 transient",
    "replayer": "1/2 as replayer",
}
_HALF = {
    "ambiguous": ("ring", "names a pair"),
    "unclear": ("ring", "1/2 unclear"),
    "no_majority": ("weights", "no majority"),
    "reduced": ("reduced gradient", "NaN or Inf"),
}


def chips(
    case: DocketCase,
    kinds: Sequence[KindCount],
    telemetry: str | None = None,
    tested: Mapping[str, Tested] = MappingProxyType({}),
) -> tuple[Chip, ...]:
    """Put the evidence of a case into chips; what was not looked at is said as well."""
    found = [_chip(case, one) for one in kinds]
    status = telemetry or "not_collected"
    return (
        *found,
        Chip("DCGM", statuses.WORDS[status], statuses.CHIPS[status]),
        *machine_tests.chips(tested),
    )


def _chip(case: DocketCase, one: KindCount) -> Chip:
    named = "half" if case.standing == "software" else "hit"
    if one.kind in _RING:
        return Chip("ring", _RING[one.kind] + _times(one.incidents), named)
    if one.kind == "weights":
        return Chip("weights", "differ" + _times(one.incidents), named)
    if one.kind == "nonfinite":
        rank = f"rank {case.rank}" if case.rank is not None else "named"
        several = f"{one.incidents} incidents" if one.incidents > 1 else rank
        return Chip("non-finite", several, named)
    if one.kind in _HALF:
        label, value = _HALF[one.kind]
        return Chip(label, value + _times(one.incidents), "half")
    return Chip("check", one.kind + _times(one.incidents), "unknown")


def _times(incidents: int) -> str:
    return {1: "", 2: " twice"}.get(incidents, f" {incidents} times")


def sure(case: DocketCase, certainty: Certainty | None, key: str) -> Sure:
    """Say how sure it is that the GPU is faulty."""
    if certainty is None:
        why = "names no GPU" if case.gpu_id is None else "this kind is not scored"
        return Sure(None, no_bar(), why)
    score = certainty.score
    at_least = score.p_if_f_at_upper
    if at_least is not None and not SHOWN_FROM <= at_least < score.p:
        at_least = None
    note = "" if at_least is None else f"at least {in_digits(at_least)}"
    return Sure(in_digits(score.p), p_bar(score.p, at_least, key), note)


def cells_of(case: DocketCase, details: Details, now: datetime) -> tuple[Cell, ...]:
    """Judge each of the last 24 hours of a case's device."""
    first = first_hour(now)
    alarms: dict[int, Cell] = {}
    for alarm in details.alarms.get(case.id, ()):
        alarms[alarm.hour] = _alarm_cell(alarm.family, alarm.names_nobody)
    passes = details.passes.get(case.job_id, set())
    worked: set[int] = set()
    for work in details.work.get(case.job_id, ()):
        start = max(micros(work.started_at) // HOUR_US, first)
        worked.update(range(start, micros(work.ended_at) // HOUR_US + 1))

    def cell(hour: int) -> Cell:
        if hour in alarms:
            return alarms[hour]
        if hour in passes:
            return "pass"
        return "unreported" if hour in worked else "none"

    return tuple(cell(hour) for hour in range(first, first + HOURS))


def _alarm_cell(family: str, names_nobody: bool) -> Cell:
    if names_nobody:
        return "nobody"
    if family == "ring":
        return "ring"
    return "weights" if family == "weights" else "nonfinite"


def rows(
    found: Sequence[DocketCase],
    details: Details,
    proposals: dict[int, tuple[Proposal, ...]],
    scores: dict[int, Certainty | None],
    tested: Mapping[int, Mapping[str, Tested]],
    now: datetime,
) -> list[Row]:
    """Put the rows of one page together."""
    made = []
    filled = False  # one filled button on the page: the most urgent
    for case in found:
        key = words.ident(case.id)
        kinds = details.kinds.get(case.id, [])
        step = next_step(case, proposals.get(case.id, ()), first=not filled)
        filled = filled or step.filled
        score = scores.get(case.gpu_id) if case.gpu_id is not None else None
        made.append(
            Row(
                case=case,
                chips=chips(case, kinds, details.telemetry.get(case.id), tested.get(case.id, {})),
                sure=sure(case, score, key),
                cells=hour_cells(cells_of(case, details, now), key),
                other_jobs=max((one.jobs for one in kinds), default=1) - 1,
                next=step,
            )
        )
    return made
