"""What does an approver have to know in one look: whose work ends, what is lost, what remains?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.preview import Preview
from app.actions.previewing.parts import counted
from app.actions.previewing.resuming import Going
from app.web import words
from app.web.alarm.steps import CHOICE_WORDS

TAKES_DISKS = ("replace", "deep_health_check")
"""After these the disks of the machine are gone, or may be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question with its answer; `value` None: not known."""

    question: str
    value: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One choice of where to go on from; `step` None: it cannot be offered."""

    kind: str
    step: int | None
    uri: str | None
    age_s: float | None
    place: str
    lost_steps: int | None
    gpu_hours: float | None
    why: str
    caution: str | None


def answers(shown: Preview) -> tuple[Answer, ...]:
    """Give the five answers above everything else."""
    return (_ends(shown), _lost(shown), _room(shown), _goes_on(shown), _hour(shown))


def _ends(shown: Preview) -> Answer:
    question = "Whose work ends"
    pods = shown.live.pods
    if not shown.proposal.destroys:
        running = shown.live.victims
        stays = () if not running else (f"{counted(running, 'running pod')} stay",)
        return Answer(question, "Nobody’s", stays)
    if shown.live.gone:
        return Answer(question, "Nobody’s", ("the node is gone",))
    if pods is None:
        return Answer(question, None, ("the pods were not read",))
    if not pods and not shown.live.unread:
        return Answer(question, "Nobody’s", ("no pod that ends with the node",))
    others = sum(len(one.victims) for one in shown.live.of("other"))
    value = counted(shown.live.victims or 0, "pod")
    if others:
        value += f", {others} of other teams"
    if shown.proposal.action == "deep_health_check":
        value = f"If it fails: {value}"
    named = {"own": "the alarmed job’s", "namespace": "its namespace", "system": "system"}
    notes = [
        f"{one.namespace}: {len(one.victims)}, {named.get(one.whose, 'another team’s')}"
        for one in pods[:4]
    ]
    more = len(pods) - 4
    notes += [f"and {more} namespaces more"] if more > 0 else []
    notes += [f"{counted(shown.live.unread, 'node')} not read"] if shown.live.unread else []
    return Answer(question, value, tuple(notes))


def _lost(shown: Preview) -> Answer:
    question = "Lost for good"
    if shown.live.gone:
        return Answer(question, "Nothing more", ("the node is gone",))
    if not shown.losses:
        audit = shown.proposal.action == "targeted_audit"
        note = "nothing is changed on the node" if audit else "it can be undone"
        return Answer(question, "Nothing", (note,))
    certain = [one for one in shown.losses if one.certain]
    unsure = len(shown.losses) - len(certain)
    value = {
        "replace": "The machine’s volumes",
        "reboot": "What is in memory",
        "deep_health_check": "If it fails: the machine’s volumes",
    }.get(shown.proposal.action, "What is on the machine")
    local = [one for one in certain if "checkpoint" in one.words and "disks" in one.words]
    notes = [f"{counted(len(certain), 'thing')} listed below"]
    if local and shown.proposal.action == "replace":
        value += " and checkpoints"
    if unsure:
        notes.append(f"{unsure} more not known")
    return Answer(question, value, tuple(notes))


def _room(shown: Preview) -> Answer:
    question = "Room elsewhere"
    spare = shown.spare
    if shown.live.gone:
        return Answer(question, None, ("the node is gone, and its type with it",))
    if spare is None and shown.proposal.action == "targeted_audit":
        return Answer(question, "Not needed", ("no work moves for it",))
    if spare is None or spare.why is not None:
        return Answer(question, None, (spare.why,) if spare and spare.why else ())
    at_least = "" if spare.whole else "at least "
    notes = [f"of {spare.looked_at} nodes looked at", spare.kind or ""]
    value = f"{at_least}{len(spare.free)} free".capitalize()
    if not spare.free and not spare.whole:
        return Answer(question, None, ("none free of those looked at", *notes[1:]))
    return Answer(question, value, tuple(one for one in notes if one))


def _goes_on(shown: Preview) -> Answer:
    question = "The job goes on from"
    going = shown.going
    if going is None or not going.choices:
        return Answer(question, None, (going.reason,) if going and going.reason else ())
    best = going.choices[0]
    lost: tuple[str, ...] = ()
    lasting = going.shared or next((one for one in going.choices if one.place == "shared"), None)
    ends = shown.proposal.action in TAKES_DISKS
    if ends and best.place == "local" and lasting is not None:
        lost = (f"step {best.choice.step:,} lies on nodes’ own disks",)
        best = lasting
    cost = ""
    if best.choice.lost_gpu_hours is not None:
        cost = f", {words.number(best.choice.lost_gpu_hours)} GPU-hours"
    notes = [f"{counted(best.choice.lost_steps, 'step')} back{cost}", *lost]
    if best.place == "local":
        notes.append("saved on nodes’ own disks only")
    elif best.place == "not known":
        notes.append("whether it outlives the node is not known")
    return Answer(question, f"Step {best.choice.step:,}", tuple(notes))


def _hour(shown: Preview) -> Answer:
    question = "An hour of waiting"
    going = shown.going
    hour = going.hour if going else None
    if hour is None or hour.gpu_hours is None:
        return Answer(question, None, (hour.formula,) if hour else ())
    said = {
        "idle": "idle: the job stands still",
        "at risk": "at risk: the job runs with the suspect in it",
        "elsewhere": "the job runs without the suspect",
        "not known": "whether the job runs is not known",
    }[hour.kind]
    if hour.kind == "elsewhere":
        return Answer(question, "Costs the job nothing", (said,))
    value = f"{words.number(int(hour.gpu_hours))} GPU-hours"
    return Answer(question, value, (said, hour.formula))


def rows(going: Going | None, now_s: float) -> tuple[Row, ...]:
    """List the choices of where to go on from, those that can be offered first."""
    if going is None:
        return ()
    kinds = [(CHOICE_WORDS.get(one.choice.choice, one.choice.choice), one) for one in going.choices]
    if going.shared is not None:
        kinds.append(("before the window, on shared storage", going.shared))
        kinds.sort(key=lambda one: -one[1].choice.step)
    offered = [
        Row(
            kind,
            one.choice.step,
            one.choice.uri,
            None if one.saved_at is None else now_s - one.saved_at.timestamp(),
            one.place,
            one.choice.lost_steps,
            one.choice.lost_gpu_hours,
            f"{one.choice.why} {one.choice.tags}",
            one.choice.caution,
        )
        for kind, one in kinds
    ]
    missing = [
        Row(CHOICE_WORDS.get(kind, kind), None, None, None, "", None, None, why, None)
        for kind, why in going.missing
    ]
    return (*offered, *missing)
