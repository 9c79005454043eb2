"""What lies along the steps of an alarm's attempt, and which resume choices stand in the table?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.actions.alarm_dossier import Dossier
from app.actions.alarm_resume import Resume, tags_in_short
from app.actions.taint import key_of
from app.web.drawings.step_picture import (
    Flag,
    FlagState,
    Note,
    PassBeat,
    ResumeArrow,
    Row,
    StepPicture,
)
from witness.rules import words

_ROWS: tuple[Row, ...] = ("nonfinite", "ring", "weights")
CHOICE_WORDS = {
    "before_window": "before the window",
    "before_credible_window": "before the credible window",
    "before_joining": "before joining",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One row of the table of resume choices; `step` None: this choice cannot be offered."""

    kind: str
    step: int | None
    uri: str | None
    default: bool
    why: str
    tags: str
    lost_steps: int | None
    gpu_hours: float | None
    caution: str | None


def step_picture(dossier: Dossier) -> StepPicture:
    """Lay out what is drawn along the steps."""
    facts, alarm, resume = dossier.facts, dossier.alarm, dossier.resume
    low, high = _span(dossier)
    rows = _alarm_rows(dossier)
    return StepPicture(
        title=f"Steps {low} to {high}",
        described=_described(dossier),
        low=low,
        high=high,
        alarm_step=facts.step,
        alarm_rows=rows,
        alarm_says=_alarm_says(dossier),
        window=resume.window,
        credible_first=resume.credible.first if resume.credible else None,
        dropped=alarm.check != "weights",
        beats=_beats(dossier),
        flags=tuple(_flags(dossier)),
        resumes=_arrows(dossier.resume),
        notes=_notes(dossier, rows),
        clocks=_clocks(dossier),
    )


def choices(dossier: Dossier) -> tuple[Choice, ...]:
    """List the choices, those that can be offered first; the newest is the default."""
    offered = [
        Choice(
            CHOICE_WORDS.get(one.choice, one.choice),
            one.step,
            one.uri,
            place == 0,
            _why(dossier, one.choice, one.why),
            one.tags,
            one.lost_steps,
            one.lost_gpu_hours,
            one.caution,
        )
        for place, one in enumerate(dossier.resume.choices)
    ]
    missing = [
        Choice(CHOICE_WORDS[one.choice], None, None, False, one.why, "", None, None, None)
        for one in dossier.resume.missing
    ]
    return (*offered, *missing)


def _why(dossier: Dossier, choice: str, why: str) -> str:
    """Add to a credible window what it rests on."""
    resume = dossier.resume
    if choice != "before_credible_window" or resume.credible is None:
        return why
    back = resume.credible.audits_back
    basis = resume.credible_basis or ""
    said = f"{why} {basis[:1].upper()}{basis[1:]}: that means {words.counted(back, 'audit')} back."
    if dossier.resume.credible_basis and "replays" not in dossier.resume.credible_basis:
        said += f" 20 replays of step {dossier.facts.step} would narrow it."
    return said


def inside_rows(dossier: Dossier) -> list[tuple[int, str, str]]:
    """List (step, address, tags) of checkpoints that no choice may use, newest first."""
    tainted = [
        one.checkpoint
        for one in dossier.resume.saved
        if key_of(one.checkpoint) in dossier.resume.tainted
    ]
    return [(one.step, one.uri or "", tags_in_short(one)) for one in reversed(tainted)]


def _arrows(resume: Resume) -> tuple[ResumeArrow, ...]:
    """Give one arrow a step; the first choice is the default."""
    arrows: dict[int, ResumeArrow] = {}
    for one in resume.choices:
        arrows.setdefault(one.step, ResumeArrow(one.step, one.lost_steps, default=not arrows))
    return tuple(arrows.values())


def _span(dossier: Dossier) -> tuple[int, int]:
    """Choose the steps to draw: from the nearest thing to go back to, to a little past the alarm.

    What lies many times further back is said at the edge and does not squeeze the rest.
    """
    step, resume, alarm = dossier.facts.step, dossier.resume, dossier.alarm
    window_first = resume.window[0] if resume.window else step
    near = [window_first, *(resume.choices[:1] and [resume.choices[0].step])]
    near += [
        one for one in (alarm.last_audit_pass, alarm.last_weight_check_pass) if one is not None
    ]
    near = [one for one in near if one <= step]
    low = min(near) if near else step
    span = max(step - max(low, step - 10_000_000), 4)
    far = [one.step for one in resume.choices]
    far += [resume.credible.first] if resume.credible else []
    low = min([low, *(one for one in far if step - one <= 6 * span)])
    low = max(low, step - 6 * max(step - window_first, span), 0)
    return low, step + max((step - low) // 5, 2)


def _alarm_rows(dossier: Dossier) -> tuple[Row, ...]:
    alarm = dossier.alarm
    if dossier.facts.family == "weights":
        return ("weights",)
    rows: list[Row] = []
    if dossier.facts.family == "ring":
        rows.append("ring")
    if alarm.nonfinite or dossier.facts.family in ("nonfinite", "reduced gradient"):
        rows.append("nonfinite")
    return tuple(rows)


def _alarm_says(dossier: Dossier) -> str:
    named = dossier.alarm.named_ranks()
    if dossier.facts.family == "reduced gradient":
        return "reduced gradient"
    return f"alarm, {words.ranks(named, 2)}" if named else "alarm, nobody named"


def _beats(dossier: Dossier) -> tuple[PassBeat, ...]:
    """Give the reported passes, and the last passes that the alarm itself tells of."""
    step = dossier.facts.step
    beats = [
        PassBeat(row, one.first_step, min(one.last_step, step), one.count)
        for one in dossier.beats
        for row in _ROWS
        if row == one.check and one.first_step <= step
    ]
    last: tuple[tuple[Row, int | None], ...] = (
        ("ring", dossier.alarm.last_audit_pass),
        ("weights", dossier.alarm.last_weight_check_pass),
    )
    for row, at in last:
        if at is not None and not any(
            one.row == row and one.first <= at <= one.last for one in beats
        ):
            beats.append(PassBeat(row, at, at, 1))
    return tuple(beats)


def _notes(dossier: Dossier, rows: tuple[Row, ...]) -> dict[Row, Note]:
    notes: dict[Row, Note] = {}
    beats = _beats(dossier)
    for row in _ROWS:
        mine = [one for one in beats if one.row == row]
        if row in rows or any(one.last >= dossier.facts.step for one in mine):
            continue
        notes[row] = "not reached" if mine else "not reported"
    return notes


def _flags(dossier: Dossier) -> Iterable[Flag]:
    resume, step = dossier.resume, dossier.facts.step
    first = resume.window[0] if resume.window else step
    for one in resume.saved:
        saved = one.checkpoint
        state: FlagState = "before" if saved.step < first else "after"
        if key_of(saved) in resume.tainted:
            state = "inside"
        elif saved.committed is False:
            state = "unfinished"
        yield Flag(saved.step, state)


def _clocks(dossier: Dossier) -> tuple[tuple[int, str], ...]:
    """Give the times, in UTC, of the alarm and of the newest passes well before it."""
    facts = dossier.facts
    low, high = _span(dossier)
    clocks = [(facts.step, f"{facts.occurred_at:%H:%M:%S}")]
    for beat in dossier.beats:
        apart = all(abs(beat.last_step - step) * 6 > high - low for step, _ in clocks)
        if low <= beat.last_step < facts.step and apart:
            clocks.append((beat.last_step, f"{beat.at:%H:%M:%S}"))
    return tuple(clocks)


def _described(dossier: Dossier) -> str:
    resume, facts = dossier.resume, dossier.facts
    parts = [f"The alarm is at step {facts.step}."]
    for one in dossier.covered:
        parts.append(
            f"{one.check} passed {words.counted(one.count, 'time')}, last at {one.last_step}."
        )
    if resume.window:
        parts.append(f"The suspect window is {words.window(*resume.window)}.")
    inside = [one for one in _flags(dossier) if one.state == "inside"]
    parts.append(f"{words.counted(len(inside), 'checkpoint')} inside it.")
    if resume.choices:
        best = resume.choices[0]
        parts.append(f"Resuming from {best.step} loses {words.counted(best.lost_steps, 'step')}.")
    return " ".join(parts)
