"""Who, since when, how sure, what to do, what does waiting cost: how does an alarm answer?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from app.actions import rails
from app.actions.alarm_dossier import Dossier
from app.store.case_reading import COUNTED_FOR
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from app.web import words as web_words
from app.web.alarm.verdict import gpu_index
from app.web.drawings.p_bar import in_digits, in_words, no_bar, p_bar
from app.web.next_step import Next, next_step
from witness.rules import words

AT_LEAST_FROM = 0.01
"""With few audited hours the bound says nothing, and is left out."""


@dataclass(frozen=True, slots=True)
class Sure:
    """How sure: `value` None where nothing is scored; `bar` is hatched then."""

    value: str | None
    bar: Markup
    notes: tuple[str, ...]
    case_id: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What waiting costs; `value` None: not reported."""

    value: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """The five answers, as far as they are no plain facts of the dossier."""

    who: str
    since: str | None
    since_note: str
    sure: Sure
    heading: str
    next: Next | None
    case_id: int | None
    other_cases: tuple[int, ...]
    resume_words: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class CaseState:
    """A case that the alarm belongs to, with its proposals."""

    case: DocketCase
    proposals: tuple[Proposal, ...]


def answers_of(
    dossier: Dossier,
    states: tuple[CaseState, ...],
    now: datetime,
) -> Answers:
    """Work the answers out."""
    lead = states[0] if states else None
    window = dossier.resume.window
    return Answers(
        who=_who(dossier),
        since=None if window is None else f"Step {words.window(*window).replace('–', ' to ')}",
        since_note=_last_pass(dossier),
        sure=_sure(dossier, lead),
        heading=_heading(lead) if lead else "A person must look",
        next=next_step(lead.case, lead.proposals, first=True) if lead else None,
        case_id=lead.case.id if lead else None,
        other_cases=tuple(one.case.id for one in states[1:]),
        resume_words=_resume_words(dossier),
        cost=_cost(dossier, now),
    )


def _who(dossier: Dossier) -> str:
    ranks = dossier.alarm.named_ranks()
    if not ranks:
        return "Nobody is named"
    if len(ranks) > 3:
        return f"{len(ranks):,} ranks"
    settled = dossier.facts.map_state in ("own", "inferred")
    index = gpu_index(dossier, ranks[0]) if settled and len(ranks) == 1 else None
    if index is not None:
        return f"GPU {index}, rank {ranks[0]}"
    text = words.ranks(ranks)
    return text[:1].upper() + text[1:]


def _last_pass(dossier: Dossier) -> str:
    """Say when the triggering check last passed."""
    alarm, family = dossier.alarm, dossier.facts.family
    if dossier.resume.window is None:
        return "the alarm gives no suspect window"
    ours = "; worked out here, the alarm gives no window" if dossier.resume.window_is_ours else ""
    if family == "reduced gradient":
        return f"the alarm’s step alone{ours}"
    name = "weights" if family == "weights" else "ring"
    at = alarm.last_weight_check_pass if family == "weights" else alarm.last_audit_pass
    if at is None:
        return f"{name} had not passed since the start{ours}"
    return f"{name} last passed at step {at}{ours}"


def _sure(dossier: Dossier, lead: CaseState | None) -> Sure:
    certain = dossier.certain
    case_id = lead.case.id if lead else None
    if certain:
        best = max(certain.values(), key=lambda one: one.score.p)
        score = best.score
        named = in_words(score.p)
        value = (
            f"{named[:1].upper()}{named[1:]}, P {in_digits(score.p)}"
            if named
            else f"P {in_digits(score.p)}"
        )
        worst = score.p_if_f_at_upper
        shown = worst is not None and worst >= AT_LEAST_FROM
        notes = []
        if shown and worst is not None:
            notes.append(f"at least {in_digits(worst)} with the most false alarms our audits allow")
        if len(certain) > 1:
            notes.append(f"the highest of {len(certain)} named GPUs")
        if score.incidents > 1:
            notes.append(words.counted(score.incidents, "incident") + " of this GPU in all")
        return Sure(value, p_bar(score.p, worst if shown else None, "alarm"), tuple(notes), case_id)
    return Sure(None, no_bar(), (_not_scored(dossier),), case_id)


def _not_scored(dossier: Dossier) -> str:
    named = [one for one in dossier.findings if one.rank is not None]
    if not named:
        return "no GPU is named, so none is scored"
    if all(one.gpu_id is None for one in named):
        return "which GPU this is is not known, so none is scored"
    return "no incident that the score counts"


def _heading(state: CaseState) -> str:
    """Name what is to be done in two or three words."""
    if state.case.status == "closed":
        return "Nothing more: closed"
    if any(one.status in ("approved", "executing", "accepted") for one in state.proposals):
        return "Under way"
    waiting = [one for one in state.proposals if one.status == "proposed" and not one.blocked]
    if any(one.action == "cordon" for one in waiting):
        return "Cordon now"
    if waiting:
        return f"Decide: {rails.action_word(waiting[0].action).lower()}"
    standing = {"software": "Software first", "ambiguous": "Look closer: ambiguous"}
    return standing.get(state.case.standing, "A person must look")


def _resume_words(dossier: Dossier) -> str:
    resume = dossier.resume
    if not resume.choices:
        reason = (resume.reason or "none is known").rstrip(".")
        return f"No checkpoint to resume from: {reason[:1].lower()}{reason[1:]}."
    return f"Resume from step {resume.choices[0].step} on other nodes."


def _cost(dossier: Dossier, now: datetime) -> Cost:
    gpus, facts, resume = dossier.gpus, dossier.facts, dossier.resume
    step_time = (
        f"a step takes {web_words.number(resume.step_time_s)} s"
        if resume.step_time_s is not None
        else "step time not reported"
    )
    if gpus is None:
        return Cost(
            None, ("neither a rank map nor the alarm says how many GPUs the job has", step_time)
        )
    again = resume.started_again_at
    until = again or now
    idle_s = max((until - facts.occurred_at).total_seconds(), 0)
    hours = web_words.number(gpus * idle_s / 3600)
    count = words.counted(gpus, "GPU")
    if again is not None:
        waited = web_words.duration(idle_s)
        return Cost(
            "Nothing now",
            (
                f"the job started again after {waited}; {count} stood still, {hours} GPU-hours",
                step_time,
            ),
        )
    rate = web_words.number(gpus / 60)
    idle = f"{count} idle"
    recent = timedelta(0) <= now - facts.occurred_at <= COUNTED_FOR
    if recent and not facts.example and facts.time_note is None:
        idle += f", {hours} GPU-hours so far, if nothing else uses them"
    return Cost(f"{rate} GPU-hours a minute", (idle, step_time))
