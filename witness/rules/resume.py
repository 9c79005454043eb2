"""From which checkpoint may the job resume, what does each choice cost, what is tainted?

Tags record which checks had passed when a checkpoint was saved. They never prove the state
clean, so no word here says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from witness.rules import words

Choice = Literal["before_window", "before_credible_window", "before_joining"]
Trust = Literal["candidate", "verified", "tainted"]
Window = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One saved state.

    `committed` is None where nobody said whether it was written to the end; `tagged` is False
    where the job sent no tags; `parent` is the address of the state it descends from.
    """

    step: int
    uri: str | None = None
    saved_at: datetime | None = None
    committed: bool | None = None
    last_audit_pass: int | None = None
    last_weight_check_pass: int | None = None
    tagged: bool = False
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeChoice:
    """One checkpoint to resume from, with what it costs; None where a cost is not known."""

    choice: Choice
    step: int
    uri: str | None
    lost_steps: int
    lost_gpu_hours: float | None
    why: str
    tags: str
    caution: str | None


@dataclass(frozen=True, slots=True)
class ResumeFloor:
    """The highest step a restarting job may resume from, None where nothing limits it.

    `checkpoint` is the newest committed one that is allowed, None where none is known.
    """

    highest_step: int | None
    checkpoint: Checkpoint | None
    why: str


def resume_choices(
    checkpoints: Sequence[Checkpoint],
    window: Window | None,
    credible_first: int | None,
    joined_step: int | None,
    alarm_step: int,
    step_time_s: float | None = None,
    gpus: int | None = None,
) -> tuple[ResumeChoice, ...]:
    """Offer up to three checkpoints, the newest first; one that two bounds share appears once.

    `credible_first` is the first step of the credible window, `joined_step` the step at which
    the suspect GPU joined this job. None leaves the choice out.
    """
    bounds: list[tuple[Choice, int, str]] = []
    if window is not None:
        why = f"Newest before the suspect window {words.window(*window)}: right for a fault that shows at every step."
        bounds.append(("before_window", window[0], why))
    if credible_first is not None:
        why = f"Newest before step {credible_first}, to which an intermittent fault may reach back (95 %)."
        bounds.append(("before_credible_window", credible_first, why))
    if joined_step is not None:
        why = f"Newest before the suspect GPU joined this job at step {joined_step}: that GPU had no part in it."
        bounds.append(("before_joining", joined_step, why))
    choices = []
    for choice, bound, why in bounds:
        found = newest_before(checkpoints, bound)
        if found is not None:
            lost = max(alarm_step - found.step, 0)
            hours = _gpu_hours(lost, step_time_s, gpus)
            caution = _caution(checkpoints, found, bound)
            choices.append(
                ResumeChoice(choice, found.step, found.uri, lost, hours, why, tags(found), caution)
            )
    return tuple(sorted(choices, key=lambda one: -one.step))


def no_choice_reason(checkpoints: Sequence[Checkpoint], window: Window | None) -> str | None:
    """Say why nothing can be offered, or None where something can."""
    if window is None:
        return "The alarm gives no suspect window, so no checkpoint can be held against it."
    if not checkpoints:
        return "No checkpoint of this job is known."
    if newest_before(checkpoints, window[0]) is not None:
        return None
    earlier = [one for one in checkpoints if one.step < window[0]]
    if earlier:
        return f"Every known checkpoint before step {window[0]} was left unfinished."
    return f"No known checkpoint was saved before step {window[0]}, where the suspect window begins."


def newest_before(checkpoints: Iterable[Checkpoint], bound: int) -> Checkpoint | None:
    """Give the newest checkpoint strictly before a step: a committed one, else one of unknown state."""
    before = [one for one in checkpoints if one.step < bound and one.committed is not False]
    known = [one for one in before if one.committed]
    return max(known or before, key=lambda one: one.step, default=None)


def tags(checkpoint: Checkpoint) -> str:
    """Say what the tags record, and that a record is no proof."""
    if not checkpoint.tagged:
        return "No tags: which checks had passed is not known."
    audit, weights = checkpoint.last_audit_pass, checkpoint.last_weight_check_pass
    if audit is None and weights is None:
        return "Neither ring nor weights had ever passed a check."
    if audit is not None and audit == weights:
        return f"Passed checks up to {audit}; this is a record, not a proof."
    ring = "ring never checked" if audit is None else f"ring passed up to {audit}"
    held = "weights never checked" if weights is None else f"weights passed up to {weights}"
    return f"{ring[0].upper()}{ring[1:]}, {held}; this is a record, not a proof."


def tainted(checkpoints: Sequence[Checkpoint], window: Window | None) -> tuple[Checkpoint, ...]:
    """List checkpoints inside the window and all that descend from them, in the order given."""
    if window is None:
        return ()
    bad = {index for index, one in enumerate(checkpoints) if window[0] <= one.step <= window[1]}
    heirs: dict[str, list[int]] = {}
    for index, one in enumerate(checkpoints):
        if one.parent is not None:
            heirs.setdefault(one.parent, []).append(index)
    queue = list(bad)
    while queue:
        uri = checkpoints[queue.pop()].uri
        for heir in heirs.get(uri, ()) if uri is not None else ():
            if heir not in bad:
                bad.add(heir)
                queue.append(heir)
    return tuple(one for index, one in enumerate(checkpoints) if index in bad)


def trust(
    checkpoint: Checkpoint,
    is_tainted: bool,
    audit_passed: int | None,
    weights_passed: int | None,
) -> Trust:
    """Place one checkpoint: verified only after both checks passed again at a later step.

    `audit_passed` and `weights_passed` are the newest passes of the state that went on from it.
    Tainted outweighs all: taint goes away with named evidence only, never with a pass.
    """
    if is_tainted:
        return "tainted"
    passes = (audit_passed, weights_passed)
    if checkpoint.committed and all(one is not None and one > checkpoint.step for one in passes):
        return "verified"
    return "candidate"


def resume_floor(
    checkpoints: Sequence[Checkpoint], open_windows: Mapping[int, Window] | Iterable[Window]
) -> ResumeFloor:
    """Give the highest step that lies before every open suspect window of the job.

    `open_windows` are the windows of alarms that nobody has adjudicated as harmless.
    """
    windows = list(open_windows.values() if isinstance(open_windows, Mapping) else open_windows)
    if not windows:
        newest = max((one for one in checkpoints if one.committed), key=_step, default=None)
        return ResumeFloor(None, newest, "No open alarm of this job limits where it resumes.")
    first, last = min(windows)
    found = newest_before(checkpoints, first)
    why = f"An open alarm holds steps {words.window(first, last)} suspect, so resume from before step {first}."
    if found is None:
        why += " No checkpoint before it is known to be complete."
    return ResumeFloor(first - 1, found, why)


def _step(checkpoint: Checkpoint) -> int:
    return checkpoint.step


def _gpu_hours(steps: int, step_time_s: float | None, gpus: int | None) -> float | None:
    if step_time_s is None or gpus is None:
        return None
    return steps * step_time_s * gpus / 3600


def _caution(checkpoints: Sequence[Checkpoint], found: Checkpoint, bound: int) -> str | None:
    """Say what speaks against a choice: unknown state, or a newer one that was left out."""
    if found.committed is None:
        return "Whether this checkpoint was written to the end is not known."
    newer = [one for one in checkpoints if found.step < one.step < bound]
    if newer:
        steps = words.listed(sorted({one.step for one in newer}))
        return f"Newer but not known to be complete: {steps}."
    return None
