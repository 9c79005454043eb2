"""From where may the job go on, what does each choice cost, and what does an hour of waiting?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions.alarm_resume import Ground, Resume, resume_after
from app.actions.taint import key_of
from app.store import alarm_reading, attempt_reading, case_reading, node_checkpoints
from app.store.attempt_reading import Beat, Covered
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from witness.rules.alarm import read_alarm
from witness.rules.resume import ResumeChoice, newest_before, resume_choices
from witness.rules.storage import Place, place_of
from witness.rules.waiting_cost import HourOfWaiting, Standing, hour_of_waiting


@dataclass(frozen=True, slots=True)
class Choice:
    """One checkpoint to go on from; `saved_at` None: not said. `place` tells whether it stays."""

    choice: ResumeChoice
    saved_at: datetime | None
    place: Place


@dataclass(frozen=True, slots=True)
class Going:
    """How the alarmed job can go on; `reason` is set where no choice can be offered."""

    alarm_id: int
    alarm_step: int
    choices: tuple[Choice, ...]
    reason: str | None
    missing: tuple[tuple[str, str], ...]  # choice, why it cannot be offered
    shared: (
        Choice | None
    )  # newest before the window that outlives every node, where it is no choice
    hour: HourOfWaiting
    gpus: int | None
    step_time_s: float | None
    stopped_at: datetime | None  # None: the job runs, or nobody says


def going_on(connection: Connection, case: DocketCase) -> Going | None:
    """Work out how the job of a case's newest alarm can go on; None: the alarm is not kept."""
    facts = alarm_reading.read_alarm(connection, case.last_alarm_id)
    if facts is None:
        return None
    alarm = read_alarm(json.loads(facts.body)["alarm"])
    found = alarm_reading.read_findings(connection, facts.id)
    beats: tuple[Beat, ...] = ()
    covered: tuple[Covered, ...] = ()
    if facts.attempt_id is not None:
        beats = attempt_reading.read_beats(connection, facts.attempt_id, facts.step)
        covered = attempt_reading.read_covered(connection, facts.attempt_id)
    gpus = facts.world_size or alarm.world_size
    resume = resume_after(connection, Ground(facts, alarm, found, beats, covered, gpus))
    saved = {(one.checkpoint.step, one.checkpoint.uri): one.checkpoint for one in resume.saved}
    standing, stopped_at = _standing(connection, case)
    choices = tuple(
        Choice(one, saved[one.step, one.uri].saved_at, place_of(one.uri)) for one in resume.choices
    )
    return Going(
        facts.id,
        facts.step,
        choices,
        resume.reason,
        tuple((one.choice, one.why) for one in resume.missing),
        _shared(facts.step, resume, choices),
        hour_of_waiting(gpus, facts.step_time_s, standing),
        gpus,
        facts.step_time_s,
        stopped_at,
    )


def _shared(step: int, resume: Resume, choices: Sequence[Choice]) -> Choice | None:
    """Find the newest state before the window that outlives every node; None: it is offered."""
    if resume.window is None or not choices or choices[0].place == "shared":
        return None
    lasting = [
        one.checkpoint
        for one in resume.saved
        if key_of(one.checkpoint) not in resume.tainted and place_of(one.checkpoint.uri) == "shared"
    ]
    found = newest_before(lasting, resume.window[0])
    if found is None or any((one.choice.step, one.choice.uri) == key_of(found) for one in choices):
        return None
    (made,) = resume_choices(
        [found], resume.window, None, None, step, resume.step_time_s, resume.gpus
    )
    return Choice(made, found.saved_at, "shared")


def _standing(
    connection: Connection, case: DocketCase
) -> tuple[Standing | None, datetime | None]:  # fmt: skip
    """Tell whether the job stands still, runs with the suspect in it, or runs without."""
    newest = case_reading.stopped_job(connection, case.job_id)
    if newest is None:
        return None, None
    if not newest.started_again:
        return "stopped", newest.alarm_at
    if case.node_id is None:
        return None, None
    uses = node_checkpoints.newest_start_uses(connection, case.job_id, case.node_id)
    if uses is None:
        return None, None
    return ("with the suspect" if uses else "elsewhere"), None
