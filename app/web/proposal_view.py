"""What does a person see of a proposal: what will happen, what is lost, what came of it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions import rails
from app.actions.preview import Preview
from app.actions.undo import CAN_BE_ASKED_AGAIN, CAN_BE_LIFTED
from app.store import (
    case_reading,
    checkpoint_reading,
    docket_reading,
    evidence,
    held_nodes,
    proposals,
)
from app.store.case_reading import CaseFinding, Stopped
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.proposals import Proposal
from app.web.next_step import status_word
from witness.rules.resume import Checkpoint, newest_before


@dataclass(frozen=True, slots=True)
class Subject:
    """What a proposal is about, as far as the database knows it."""

    proposal: Proposal
    case: DocketCase
    evidence_version: int
    finding: CaseFinding | None
    stopped: Stopped | None
    resume: Checkpoint | None  # None: no checkpoint before the window is known
    held: int
    siblings: tuple[Proposal, ...]  # all proposals of the case

    @property
    def title(self) -> str:
        """Name the action as an order."""
        return TITLES.get(self.proposal.action, self.proposal.action)

    @property
    def status(self) -> str:
        """Say how it stands."""
        return status_word(self.proposal)

    @property
    def can_be_lifted(self) -> bool:
        """Tell whether a person may take this cordon back."""
        return can_be_lifted(self.proposal, self.siblings)

    @property
    def can_be_asked_again(self) -> bool:
        """Tell whether the same action may be proposed anew."""
        one = self.proposal
        newest = max(p.ordinal for p in self.siblings if p.action == one.action)
        return one.status in CAN_BE_ASKED_AGAIN and one.ordinal == newest

    @property
    def can_be_read_again(self) -> bool:
        """Tell whether a reading of the cluster could settle the outcome."""
        return self.proposal.status in ("unknown", "accepted")


def can_be_lifted(one: Proposal, all_of_case: Sequence[Proposal]) -> bool:
    """Tell whether a cordon stands, as far as is known here, and was not taken back yet."""
    if one.action != "cordon" or one.status not in CAN_BE_LIFTED:
        return False
    return not any(
        other.action == "uncordon"
        and other.node_id == one.node_id
        and other.status in ("verified", "approved", "executing", "accepted")
        and other.created_at > one.created_at
        for other in all_of_case
    )


TITLES = {
    "cordon": "Cordon the node",
    "uncordon": "Uncordon the node",
    "replace": "Replace the node",
    "deep_health_check": "Run a deep health check",
    "targeted_audit": "Audit aimed at the node",
}


def subject(connection: Connection, proposal_id: int) -> Subject | None:
    """Read a proposal with everything beside it; None where there is none."""
    proposal = proposals.get(connection, proposal_id)
    if proposal is None:
        return None
    case = docket_reading.one(connection, proposal.case_id)
    assert case is not None
    found = case_reading.newest_findings(connection, proposal.case_id, 1)
    finding = found[0] if found else None
    stopped = case_reading.stopped_job(connection, case.job_id)
    return Subject(
        proposal=proposal,
        case=case,
        evidence_version=evidence.version(connection, proposal.case_id),
        finding=finding,
        stopped=stopped,
        resume=resume_point(connection, finding),
        held=held_nodes.count(connection),
        siblings=proposals.of_cases(connection, [proposal.case_id])[proposal.case_id],
    )


def resume_point(connection: Connection, finding: CaseFinding | None) -> Checkpoint | None:
    """Find the newest checkpoint before the suspect window of a finding's alarm."""
    if finding is None or finding.window_first is None:
        return None
    last = finding.window_last if finding.window_last is not None else finding.step
    saved = checkpoint_reading.read_around(
        connection, finding.job_id, (finding.window_first,), last
    )
    return newest_before([one.checkpoint for one in saved], finding.window_first)


def will_happen(about: Subject, shown: Preview) -> list[str]:
    """Say what an approval does, sentence by sentence."""
    if about.proposal.action == "uncordon":
        return [
            "Our taint and our note are taken off the node; new pods can land on it.",
            "A cordon that somebody else set stays as it is.",
        ]
    if about.proposal.action != "cordon":
        return ["Nothing from here: this version cannot carry it out."]
    pods = shown.live.pods
    running = sum(len(members) for members in pods.values()) if pods is not None else None
    stay = {None: "Running pods keep running.", 0: "No pod of any job runs on it now."}.get(
        running, f"The {running} running pod{'s' if running != 1 else ''} listed here keep running."
    )
    before = about.held
    return [
        "New pods stay away from the node: it becomes unschedulable, with our taint and note.",
        stay,
        f"Nodes cordoned from here: {before} becomes {before + 1}.",
        "Undo: uncordon, at any time, by any operator.",
    ]


def loses(shown: Preview) -> list[str]:
    """Say what a replacement would take with it."""
    lost = ["The root and secondary volumes of the node, local NVMe disks included."]
    for namespace, pods in (shown.live.pods or {}).items():
        names = ", ".join(pod.name for pod in pods[:5])
        more = f" and {len(pods) - 5} more" if len(pods) > 5 else ""
        system = " (system)" if any(pod.system for pod in pods) else ""
        lost.append(f"Pods of namespace {namespace}{system}: {names}{more}. They end.")
    if shown.live.pods is None:
        lost.append("Pods on it: not known, the cluster could not be read.")
    lost.append("The chance to replay the triggering step on this GPU, if it has not run before.")
    return lost


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One step of a proposal's life."""

    at: datetime | None
    words: str


def life(proposal: Proposal) -> list[LifeStep]:
    """Tell what happened to a proposal, in order."""
    by = proposal.recommended_by
    steps = [LifeStep(proposal.created_at, f"Proposed by {by}: {proposal.why}")]
    if proposal.decided_at is not None:
        verdict = "Rejected" if proposal.status == "rejected" else "Approved"
        because = f": {proposal.decision_reason}" if proposal.decision_reason else ""
        steps.append(LifeStep(proposal.decided_at, f"{verdict} by {proposal.decided_by}{because}"))
    if proposal.claimed_at is not None:
        steps.append(LifeStep(proposal.claimed_at, "Taken up by a worker of the service"))
    if proposal.finished_at is not None and proposal.status != "rejected":
        steps.append(LifeStep(proposal.finished_at, proposal.outcome or proposal.status))
    for line in proposal.details.get("drift") or ():
        steps.append(LifeStep(None, f"Found when the node was read later: {line}"))
    return steps


def done_words(proposal: Proposal | None, by: str, now: datetime) -> str:
    """Say after an approval what was done, in words that stay true when the page is reloaded."""
    if proposal is None:
        return "The proposal is not there any more."
    said = f"{rails.title(proposal)} approved by {by} at {now:%H:%M:%S} UTC."
    if proposal.status in ("approved", "executing"):
        return f"{said} The cluster had not answered after 3 s; this page shows what came of it."
    return f"{said} {proposal.outcome or ''}".strip()
