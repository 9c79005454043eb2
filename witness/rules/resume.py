"""From which checkpoint may the job resume, what does each choice cost, what is tainted?

Tags record which checks had passed when a checkpoint was saved. They never prove the state
clean, so no word here says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from witness.rules import words

Choice = Literal["before_window", "before_credible_window", "before_joining"]
Trust = Literal["candidate", "verified", "tainted"]
Window = tuple[int, int]

NO_STEP = -1
"""The highest step where the suspect window begins at step 0: no saved state lies before it."""


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
class LeftOut:
    """A checkpoint that is not offered, and why."""

    checkpoint: Checkpoint
    why: str


@dataclass(frozen=True, slots=True)
class ResumeFloor:
    """The highest step a restarting job may resume from.

    `highest_step` is None where nothing limits it, and -1 where no saved state of the job may be
    used. `checkpoint` is the newest committed one that is allowed, None where none is known.
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
    other_windows: Iterable[Window] = (),
) -> tuple[ResumeChoice, ...]:
    """Offer up to three checkpoints, the newest first; two bounds may lead to the same one.

    `credible_first` is the first step of the credible window, `joined_step` the step at which
    the suspect GPU joined this job. None leaves the choice out. `other_windows` are those of
    other open alarms of the same attempt: a choice inside one carries a caution.
    """
    others = tuple(other_windows)
    usable = _untainted(checkpoints, window)
    choices = []
    for choice, bound, why in _bounds(window, credible_first, joined_step):
        found = newest_before(usable, bound)
        if found is None:
            continue
        lost = max(alarm_step - found.step, 0)
        choices.append(
            ResumeChoice(
                choice=choice,
                step=found.step,
                uri=found.uri,
                lost_steps=lost,
                lost_gpu_hours=_gpu_hours(lost, step_time_s, gpus),
                why=why,
                tags=tags(found),
                caution=_caution(checkpoints, found, bound, others),
            )
        )
    return tuple(sorted(choices, key=lambda one: -one.step))


def no_choice_reason(checkpoints: Sequence[Checkpoint], window: Window | None) -> str | None:
    """Say why nothing can be offered, or None where something can."""
    if window is None:
        return "The alarm gives no suspect window, so no checkpoint can be held against it."
    if not checkpoints:
        return "No checkpoint of this job is known."
    if newest_before(_untainted(checkpoints, window), window[0]) is not None:
        return None
    if any(one.step < window[0] for one in checkpoints):
        return f"Every known checkpoint before step {window[0]} is unfinished or tainted."
    return (
        f"No known checkpoint was saved before step {window[0]}, where the suspect window begins."
    )


def left_out(checkpoints: Sequence[Checkpoint], window: Window) -> tuple[LeftOut, ...]:
    """Say of each checkpoint that is incomplete or not before the window why it is no choice."""
    bad = tainted(checkpoints, window)
    found = []
    for one in checkpoints:
        reasons = []
        if window[0] <= one.step <= window[1]:
            reasons.append(f"inside the suspect window {words.window(*window)}")
        elif one in bad:
            reasons.append("descends from a checkpoint inside the suspect window")
        if one.committed is False:
            reasons.append("not written to the end")
        if one.step > window[1]:
            reasons.append("later than the alarm")
        if reasons:
            found.append(LeftOut(one, " and ".join(reasons)))
    return tuple(found)


def newest_before(checkpoints: Iterable[Checkpoint], bound: int) -> Checkpoint | None:
    """Give the newest checkpoint strictly before a step.

    A committed one counts first; one of unknown state only where there is no committed one.
    """
    before = [one for one in checkpoints if one.step < bound and one.committed is not False]
    known = [one for one in before if one.committed]
    return max(known or before, key=lambda one: one.step, default=None)


def tags(checkpoint: Checkpoint) -> str:
    """Say what the tags record, and that a record is no proof."""
    if not checkpoint.tagged:
        return "No tags: which checks had passed is not known."
    audit, weights = checkpoint.last_audit_pass, checkpoint.last_weight_check_pass
    if audit is not None and audit == weights:
        return f"Passed checks up to {audit}; this is a record, not a proof."
    if audit is None and weights is None:
        return "Ring never checked, weights never checked."
    ring = "Ring never checked" if audit is None else f"Ring passed up to {audit}"
    held = "weights never checked" if weights is None else f"weights passed up to {weights}"
    return f"{ring}, {held}; this is a record, not a proof."


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


def resume_floor(checkpoints: Sequence[Checkpoint], open_windows: Iterable[Window]) -> ResumeFloor:
    """Give the highest step that lies before every open suspect window of the job.

    `open_windows` are the windows of alarms that nobody has adjudicated as harmless.
    """
    windows = list(open_windows)
    if not windows:
        newest = max((one for one in checkpoints if one.committed), key=_step, default=None)
        return ResumeFloor(None, newest, "No open alarm of this job limits where it resumes.")
    first, last = min(windows)
    bad = {id(one) for window in windows for one in tainted(checkpoints, window)}
    found = newest_before((one for one in checkpoints if id(one) not in bad), first)
    why = (
        f"An open alarm holds steps {words.window(first, last)} suspect: "
        f"resume from before step {first}."
    )
    if first == 0:
        why += " No saved state of this job lies before that."
    elif found is None:
        why += " No checkpoint before it is known to be complete."
    return ResumeFloor(first - 1 if first else NO_STEP, found, why)


def _bounds(
    window: Window | None, credible_first: int | None, joined_step: int | None
) -> list[tuple[Choice, int, str]]:
    """List the choices that can be looked for: what bounds them, and why they would do."""
    bounds: list[tuple[Choice, int, str]] = []
    if window is not None:
        steps = words.window(*window)
        why = f"Newest before the suspect window {steps}: right if the fault shows at every step."
        bounds.append(("before_window", window[0], why))
    if credible_first is not None:
        why = (
            f"Newest before step {credible_first}, to which an intermittent fault may reach back "
            "(95 %)."
        )
        bounds.append(("before_credible_window", credible_first, why))
    if joined_step is not None:
        why = (
            f"Newest before the suspect GPU joined this job at step {joined_step}: that GPU had no "
            "part in it."
        )
        bounds.append(("before_joining", joined_step, why))
    return bounds


def _step(checkpoint: Checkpoint) -> int:
    return checkpoint.step


def _untainted(checkpoints: Sequence[Checkpoint], window: Window | None) -> list[Checkpoint]:
    bad = {id(one) for one in tainted(checkpoints, window)}
    return [one for one in checkpoints if id(one) not in bad]


def _gpu_hours(steps: int, step_time_s: float | None, gpus: int | None) -> float | None:
    if step_time_s is None or gpus is None:
        return None
    return steps * step_time_s * gpus / 3600


def _caution(
    checkpoints: Iterable[Checkpoint], found: Checkpoint, bound: int, others: tuple[Window, ...]
) -> str | None:
    """Say what speaks against a choice: its state, another alarm, or a newer one left out."""
    said = []
    if found.committed is None:
        said.append("Whether this checkpoint was written to the end is not known.")
    inside = [window for window in others if window[0] <= found.step <= window[1]]
    if inside:
        steps = words.window(*min(inside))
        said.append(f"It lies in the suspect window {steps} of another alarm.")
    newer = sorted({one.step for one in checkpoints if found.step < one.step < bound})
    if newer:
        said.append(f"Newer, but not known to be complete or tainted: {words.listed(newer)}.")
    return " ".join(said) or None
