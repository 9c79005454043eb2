"""What stands on the page of one case?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from app.actions import certainty, rails, tests_of_case
from app.actions.certainty import Certainty, FalseAlarms
from app.actions.return_to_service import Return, of_a_case
from app.context import Context
from app.store import (
    audit_reading,
    blast_reading,
    case_reading,
    condemned_reading,
    docket_details,
    docket_reading,
    proposals,
    telemetry_kept,
)
from app.store.blast_reading import ReachedJob
from app.store.case_reading import CaseFinding, CaseIncident, Note, Sibling, Stopped
from app.store.condemned_reading import Sighting
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from app.web import machine_tests, words
from app.web.case_evidence import Evidence, evidence
from app.web.docket_view import SHOWN_FROM
from app.web.drawings.blast import blast
from app.web.drawings.ladder import WhatIf, ladder
from app.web.drawings.p_bar import in_digits, in_words
from app.web.next_step import status_word
from app.web.proposal_view import TITLES, can_be_lifted, resume_point
from witness.rules.resume import Checkpoint
from witness.rules.score import CleanHours, TestPassed, score

TEST_RECALL = 0.70
"""Recall of a deep health check in the line "if it passes"; published are 0.25 to 0.70."""


@dataclass(frozen=True, slots=True)
class Sureness:
    """P with the ladder that made it."""

    value: str
    likely: str
    at_least: str | None
    drawing: Markup
    terms: tuple[tuple[str, str, str], ...]  # text, factor, P after
    rate: str
    fleet: str


@dataclass(frozen=True, slots=True)
class Deed:
    """One line of what was done."""

    at: datetime
    words: str
    by: str | None = None
    address: str | None = None
    kind: str = "action"  # action, note, alarm


@dataclass(frozen=True, slots=True)
class Panel:
    """One proposal in the side column."""

    proposal: Proposal
    title: str
    word: str
    can_be_lifted: bool


@dataclass(frozen=True, slots=True)
class CasePage:
    """Everything on the page."""

    case: DocketCase
    evidence: Evidence
    findings: tuple[CaseFinding, ...]
    incidents: tuple[CaseIncident, ...]
    sureness: Sureness | None
    jobs: tuple[ReachedJob, ...]
    drawing: Markup
    resume: Checkpoint | None
    stopped: Stopped | None
    waiting: tuple[Panel, ...]
    decided: tuple[Panel, ...]
    deeds: tuple[Deed, ...]
    siblings: tuple[Sibling, ...]
    returning: Return | None
    sightings: tuple[Sighting, ...]
    probation_days: float

    @property
    def missing_actions(self) -> list[tuple[str, Panel]]:
        """Give what waits for a decision and would tell more, for links on the checklist."""
        wanted = {"targeted_audit": "Targeted audit", "deep_health_check": "Deep health check"}
        return [
            (f"{wanted[one.proposal.action]}: preview", one)
            for one in self.waiting
            if one.proposal.action in wanted
        ]

    def level(self, name: str) -> int:
        """Count the jobs of one level."""
        return sum(job.level == name for job in self.jobs)


def read_case(context: Context, case_id: int) -> CasePage | None:
    """Read everything for the page; None where there is no such case."""
    now = context.now()
    with context.store.reading() as connection:
        case = docket_reading.one(connection, case_id)
        if case is None:
            return None
        return _page(context, connection, case, now)


def _page(context: Context, connection: Connection, case: DocketCase, now: datetime) -> CasePage:
    settings = context.settings
    findings = case_reading.newest_findings(connection, case.id)
    incidents = case_reading.newest_incidents(connection, case.id)
    replays = case_reading.replays_of(connection, case.gpu_id)
    kinds = docket_details.kinds(connection, [case.id]).get(case.id, [])
    fleet = certainty.false_alarms(connection)
    scored = None
    if case.gpu_id is not None:
        scored = certainty.of_gpu(connection, case.gpu_id, now, fleet)
    jobs = blast_reading.reached(connection, case)
    about = [(case.id, case.gpu_id, case.last_alarm_id)]
    telemetry = telemetry_kept.of_cases(connection, about).get(case.id)
    mine = proposals.of_cases(connection, [case.id]).get(case.id, ())
    panels = [_panel(one, mine) for one in mine]
    return CasePage(
        case=case,
        evidence=evidence(
            case,
            findings,
            kinds,
            replays,
            scored.score if scored else None,
            machine_tests.sentences(
                tests_of_case.of_case(connection, case), settings.deep_check_recall_at_best
            ),
            telemetry,
        ),
        findings=findings,
        incidents=incidents,
        sureness=None if scored is None else _sureness(scored, fleet, words.ident(case.id)),
        jobs=jobs,
        drawing=blast(*_device(case), jobs, words.ident(case.id)),
        resume=resume_point(connection, findings[0] if findings else None),
        stopped=case_reading.stopped_job(connection, case.job_id),
        waiting=tuple(one for one in panels if one.proposal.status == "proposed"),
        decided=tuple(one for one in reversed(panels) if one.proposal.status != "proposed"),
        deeds=tuple(_deeds(connection, case, mine)),
        siblings=case_reading.siblings(connection, case.id),
        returning=of_a_case(connection, settings, case, mine, now),
        sightings=() if case.gpu_id is None else condemned_reading.of_gpu(connection, case.gpu_id),
        probation_days=settings.probation_days,
    )


def _panel(one: Proposal, all_of_case: Sequence[Proposal]) -> Panel:
    title = TITLES.get(one.action, one.action)
    return Panel(one, title, status_word(one), can_be_lifted(one, all_of_case))


def _device(case: DocketCase) -> tuple[str, str]:
    node = f"…{case.node[-8:]}" if case.node else "node not known"
    if case.gpu_uuid:
        return f"GPU {words.short_uuid(case.gpu_uuid)}", node
    return ("Node" if case.subject == "node" else "Job"), node if case.node else case.job[:18]


def _sureness(scored: Certainty, fleet: FalseAlarms, key: str) -> Sureness:
    found = scored.score
    at_least = found.p_if_f_at_upper
    if at_least is not None and not SHOWN_FROM <= at_least < found.p:
        at_least = None
    return Sureness(
        value=in_digits(found.p),
        likely=in_words(found.p),
        at_least=None if at_least is None else in_digits(at_least),
        drawing=ladder(found, at_least, what_if(scored), key),
        terms=tuple(
            (term.text, f"{term.factor:,.3g}", in_digits(term.odds_after / (1 + term.odds_after)))
            for term in found.ladder
        ),
        rate=_rate(found.rate_mean_per_hour, found.rate_low, found.rate_high, found.incidents),
        fleet=_fleet(fleet),
    )


def what_if(scored: Certainty) -> list[WhatIf]:
    """Say what P would be after a passed test, after clean days, and at the bound of f."""
    made = []
    tested = any(isinstance(one, TestPassed) for one in scored.history)
    test = score((*scored.history, TestPassed("deep health check", TEST_RECALL)))
    if test is not None and not tested:  # once a kind of test
        made.append(WhatIf(f"If a deep health check of recall {TEST_RECALL:.2f} passes", test.p))
    clean = score((*scored.history, CleanHours(30 * 24)))
    if clean is not None:
        made.append(WhatIf("If 30 clean days of audits follow", clean.p))
    if scored.score.p_if_f_at_upper is not None:
        made.append(WhatIf("If f is at this fleet’s bound", scored.score.p_if_f_at_upper))
    return made


def _rate(mean: float, low: float, high: float, incidents: int) -> str:
    little = " One incident says little about the rate." if incidents == 1 else ""
    often, seldom = _every(high), _every(low)
    return (
        f"If it is faulty, it fires again once in {_every(mean)} of audited work, "
        f"5–95 %: once in {often} to once in {seldom}.{little}"
    )


def _every(per_hour: float) -> str:
    if per_hour <= 0:
        return "a very long time"
    hours = 1 / per_hour
    if hours < 72:
        return f"{hours:,.0f} hours" if hours >= 1 else f"{hours * 60:,.0f} minutes"
    days = hours / 24
    return f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"


def _fleet(fleet: FalseAlarms) -> str:
    if not fleet.upper:
        return (
            "No audited hour of this fleet is known yet, so nothing here bounds "
            "the rate f of false accusations: it is assumed."
        )
    bound = max(fleet.upper.values())
    return (
        f"The {fleet.audited_gpu_hours:,.0f} audited GPU-hours of this fleet bound f "
        f"at {bound:.2g} an hour; below that it is assumed."
    )


def _deeds(connection: Connection, case: DocketCase, mine: Sequence[Proposal]) -> list[Deed]:
    found = [
        Deed(entry.at, entry.summary)
        for entry in audit_reading.of_case(connection, case.id)
        if entry.verb != "note.added"
    ]
    found += [_note(one) for one in case_reading.notes_of(connection, case.id)]
    found += [
        Deed(
            one.created_at,
            f"{rails.action_word(one.action)} proposed by {one.recommended_by}",
            address=f"/proposals/{words.ident(one.id)}",
        )
        for one in mine
        if one.action != "uncordon"
    ]
    opened = Deed(case.opened_at, "Case opened by an alarm", address=None, kind="alarm")
    return [*sorted(found, key=lambda one: one.at, reverse=True)[:200], opened]


def _note(one: Note) -> Deed:
    return Deed(one.at, one.text, one.author, kind="note")
