"""From where may the job of one alarm resume, at which cost, and why is a choice missing?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions.taint import key_of, tainted_by
from app.store import attempt_reading, checkpoint_reading
from app.store.alarm_reading import AlarmFacts, StoredFinding
from app.store.attempt_reading import Beat, Covered, Joined
from app.store.checkpoint_reading import OpenWindow, SavedState
from app.store.connection import Connection
from witness.rules import resume, words
from witness.rules.alarm import Alarm
from witness.rules.resume import Checkpoint, ResumeChoice
from witness.rules.suspect_window import (
    EVIDENCE,
    CredibleWindow,
    credible_window,
    reported_window,
)

Window = tuple[int, int]
SUSPECTS = 5
"""Of more named ranks the first ones are looked at; past a few the choice is software's anyway."""

BASIS = {
    "culprit": "2 of 2 comparisons were wrong",
    "persistent": "the target's second computation was wrong again",
    "transient": "the target's second computation was right",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """A choice that cannot be offered, and why."""

    choice: str
    why: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Everything about resuming after one alarm.

    `window` is the alarm's, or worked out from its last pass (`window_is_ours`), or None.
    `reason` is set where no choice can be offered.  `tainted` holds (step, uri).
    """

    choices: tuple[ResumeChoice, ...]
    reason: str | None
    missing: tuple[Missing, ...]
    window: Window | None
    window_is_ours: bool
    credible: CredibleWindow | None
    credible_basis: str | None
    saved: tuple[SavedState, ...]
    tainted: frozenset[tuple[int, str | None]]
    left_out: tuple[Checkpoint, ...]
    gpus: int | None
    step_time_s: float | None
    started_again_at: datetime | None


@dataclass(frozen=True, slots=True)
class Ground:
    """What the choices are worked out from."""

    facts: AlarmFacts
    alarm: Alarm
    findings: tuple[StoredFinding, ...]
    beats: tuple[Beat, ...]
    covered: tuple[Covered, ...]
    gpus: int | None


def resume_after(connection: Connection, ground: Ground) -> Resume:
    """Work out where the job of an alarm may resume."""
    facts, alarm = ground.facts, ground.alarm
    window, ours = _window(ground)
    credible, basis, no_credible = _credible(connection, ground, window)
    joined, no_joined = _joined(connection, ground)
    bounds = [window[0]] if window else [alarm.step]
    bounds += [credible.first] if credible else []
    bounds += [joined] if joined is not None else []
    saved = checkpoint_reading.read_around(connection, facts.job_id, bounds, alarm.step)
    tainted, others = _taints(connection, facts, saved, window)
    offered = [one.checkpoint for one in saved if key_of(one.checkpoint) not in tainted]
    choices = resume.resume_choices(
        offered,
        window,
        credible.first if credible else None,
        joined,
        alarm.step,
        facts.step_time_s,
        ground.gpus,
    )
    offered_kinds = {one.choice for one in choices}
    if credible and "before_credible_window" not in offered_kinds:
        no_credible = _nothing_before(credible)
    if joined is not None and "before_joining" not in offered_kinds:
        no_joined = f"No complete checkpoint before step {joined}, where it joined, is known."
    missing = [
        Missing("before_credible_window", no_credible) if no_credible else None,
        Missing("before_joining", no_joined) if no_joined else None,
    ]
    return Resume(
        choices=choices,
        reason=None if choices else _no_reason(offered, window),
        missing=tuple(one for one in missing if one is not None),
        window=window,
        window_is_ours=ours,
        credible=credible,
        credible_basis=basis,
        saved=saved,
        tainted=tainted,
        left_out=tuple(others),
        gpus=ground.gpus,
        step_time_s=facts.step_time_s,
        started_again_at=attempt_reading.read_next_start(
            connection, facts.job_id, facts.occurred_at
        ),
    )


def _nothing_before(credible: CredibleWindow) -> str:
    back = words.counted(credible.audits_back, "audit")
    if credible.reaches_start:
        return (
            f"An intermittent fault may reach back {back}, past the first step of this attempt, "
            "and no complete checkpoint before it is known."
        )
    return (
        f"An intermittent fault may reach back {back}, to step {credible.first}, "
        "and no complete checkpoint before it is known."
    )


def _no_reason(offered: Sequence[Checkpoint], window: Window | None) -> str:
    return resume.no_choice_reason(offered, window) or "No known checkpoint can be offered."


def _window(ground: Ground) -> tuple[Window | None, bool]:
    """Give the alarm's window, else the one that its last pass implies."""
    if ground.facts.window is not None:
        return ground.facts.window, False
    alarm = ground.alarm
    derived = reported_window(
        alarm.check,
        alarm.step,
        start_step(ground),
        alarm.last_audit_pass,
        alarm.last_weight_check_pass,
    )
    return derived, derived is not None


def start_step(ground: Ground) -> int:
    """Give the first step of the attempt: as said, else as first passed, else 0."""
    schedule = ground.alarm.schedule
    if schedule is not None and schedule.start_step is not None:
        return schedule.start_step
    return min((one.first_step for one in ground.covered), default=0)


def audit_every(ground: Ground) -> int | None:
    """Give the interval of the triggering check: as said, else as its passes lie."""
    schedule = ground.alarm.schedule
    weights = ground.facts.family == "weights"
    if schedule is not None:
        said = schedule.check_every if weights else schedule.audit_every
        if said:
            return said
    wanted = "weights" if weights else "ring"
    for beat in ground.beats:
        if beat.check == wanted and beat.count > 1:
            return max(1, round((beat.last_step - beat.first_step) / (beat.count - 1)))
    return None


def _credible(
    connection: Connection, ground: Ground, window: Window | None
) -> tuple[CredibleWindow | None, str | None, str | None]:
    """Give (window, what it rests on, why there is none): the widest of the named ranks."""
    named = [one for one in ground.findings if one.rank is not None][:SUSPECTS]
    if window is None or not named:
        return None, None, "Nobody is named, so no replay can say how often the fault shows."
    every = audit_every(ground)
    if every is None:
        return None, None, "The audit interval is not reported."
    found: list[tuple[CredibleWindow, str]] = []
    for finding in named:
        evidence = _evidence(connection, ground, finding)
        if evidence is not None:
            wrong, replays, basis = evidence
            start = start_step(ground)
            found.append((credible_window(window, wrong, replays, every, start), basis))
    if not found:
        why = (
            f"Step {ground.alarm.step} was not replayed on the suspect, "
            "so how often the fault shows is not known."
        )
        return None, None, why
    widest = min(found, key=lambda one: one[0].first)
    return widest[0], widest[1], None


def _evidence(
    connection: Connection, ground: Ground, finding: StoredFinding
) -> tuple[int, int, str] | None:
    """Give (wrong, replays, in words): counted replays, else what the verdict amounts to."""
    facts = ground.facts
    if facts.attempt_id is not None:
        replays, wrong = attempt_reading.read_replays(
            connection, facts.attempt_id, facts.step, finding.rank, finding.gpu_id
        )
        if 0 <= wrong <= replays and replays:
            return wrong, replays, f"{wrong} of {replays} replays of step {facts.step} were wrong"
    if finding.kind not in EVIDENCE:
        return None
    return (*EVIDENCE[finding.kind], BASIS[finding.kind])


def _joined(connection: Connection, ground: Ground) -> tuple[int | None, str | None]:
    """Give the step at which the suspect's machine joined the job, or why there is none."""
    named = [one for one in ground.findings if one.node_id is not None][:SUSPECTS]
    if not named:
        return None, "No machine is known to be suspect."
    steps = []
    for finding in named:
        assert finding.node_id is not None
        joined = attempt_reading.read_joined(connection, ground.facts.job_id, finding.node_id)
        why = _not_joined(joined)
        if why is not None or joined is None or joined.first_step is None:
            return None, why
        steps.append(joined.first_step)
    return min(steps), None


def _not_joined(joined: Joined | None) -> str | None:
    if joined is None:
        return "When the suspect's machine joined this job is not known."
    at = _clock(joined.started_at)
    if joined.first_of_job:
        return f"The suspect's machine was in the job from its first known start, {at}."
    if joined.first_step is None:
        return f"The suspect's machine joined at {at}, at a step that is not reported."
    return None


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _taints(
    connection: Connection, facts: AlarmFacts, saved: Sequence[SavedState], window: Window | None
) -> tuple[frozenset[tuple[int, str | None]], list[Checkpoint]]:
    """Give what lies in this window or descends from it, and what another alarm's window holds."""
    tainted: set[tuple[int, str | None]] = set()
    if window is not None:
        mine = OpenWindow(facts.id, facts.attempt_id, *window, facts.occurred_at, "")
        tainted |= tainted_by(mine, saved)
    elsewhere: set[tuple[int, str | None]] = set()
    for other in checkpoint_reading.read_windows(connection, facts.job_id):
        if other.alarm_id != facts.id:
            elsewhere |= tainted_by(other, saved)
    others = [
        one.checkpoint
        for one in saved
        if key_of(one.checkpoint) in elsewhere - tainted
        and (window is None or one.checkpoint.step < window[0])
    ]
    return frozenset(tainted | elsewhere), others


def tags_in_short(checkpoint: Checkpoint) -> str:
    """Write the tags for a dense list: "ring 20, weights 20"."""
    if not checkpoint.tagged:
        return "no tags"
    ring, held = checkpoint.last_audit_pass, checkpoint.last_weight_check_pass
    return words.listed(
        [
            "ring never checked" if ring is None else f"ring {ring}",
            "weights never checked" if held is None else f"weights {held}",
        ]
    )
