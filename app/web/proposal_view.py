"""What is a proposal about, and which next step of it may a person take?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions import rails
from app.actions.settle import can_be_settled
from app.actions.undo import CAN_BE_ASKED_AGAIN, CAN_BE_LIFTED
from app.store import (
    case_reading,
    checkpoint_reading,
    docket_reading,
    evidence,
    proposal_comments,
    proposals,
)
from app.store.case_reading import CaseFinding, Stopped
from app.store.connection import Connection
from app.store.docket_reading import DocketCase
from app.store.proposal_comments import Comment
from app.store.proposals import Proposal
from app.web.next_step import status_word
from witness.rules.resume import Checkpoint, newest_before


@dataclass(frozen=True, slots=True)
class Subject:
    """What a proposal is about, as far as the database knows it."""

    proposal: Proposal
    case: DocketCase
    evidence_version: int
    stopped: Stopped | None
    siblings: tuple[Proposal, ...]  # all proposals of the case
    comments: tuple[Comment, ...]

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
        return makes_sense_again(one) and one.ordinal == newest

    @property
    def can_be_settled(self) -> bool:
        """Tell whether a person may say what became of it."""
        return can_be_settled(self.proposal)

    @property
    def can_be_read_again(self) -> bool:
        """Tell whether a reading of the cluster could settle the outcome."""
        return self.proposal.status in ("unknown", "accepted", "waiting")

    @property
    def is_live(self) -> bool:
        """Tell whether something may still change by itself."""
        one = self.proposal
        return one.status in proposals.UNDER_WAY or one.next_look_at is not None


def makes_sense_again(one: Proposal) -> bool:
    """Tell whether another try could end otherwise, and cannot do the same thing twice.

    What failed may be tried again where the provider says so; what nobody knows, only after it
    was looked for.
    """
    if one.status not in CAN_BE_ASKED_AGAIN:
        return False
    if one.status == "failed":
        return bool(one.details.get("retry")) or one.action in ("cordon", "uncordon")
    if one.status == "unknown":
        return bool(one.looks or one.details.get("read_again") or one.details.get("seen_at"))
    return True


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
    "reboot": "Reboot the node",
    "deep_health_check": "Run a deep health check",
    "targeted_audit": "Audit aimed at the node",
}
WAYS = {
    "label": "by the node’s health label",
    "gke_label": "by GKE’s fault label",
    "gke_host": "by reporting the host",
}


def subject(connection: Connection, proposal_id: int) -> Subject | None:
    """Read a proposal with everything beside it; None where there is none."""
    proposal = proposals.get(connection, proposal_id)
    if proposal is None:
        return None
    case = docket_reading.one(connection, proposal.case_id)
    assert case is not None
    return Subject(
        proposal=proposal,
        case=case,
        evidence_version=evidence.version(connection, proposal.case_id),
        stopped=case_reading.stopped_job(connection, case.job_id),
        siblings=proposals.of_cases(connection, [proposal.case_id])[proposal.case_id],
        comments=proposal_comments.of_proposal(connection, proposal_id),
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


def done_words(proposal: Proposal | None, by: str, now: datetime) -> str:
    """Say after an approval what was done, in words that stay true when the page is reloaded."""
    if proposal is None:
        return "The proposal is not there any more."
    said = f"{rails.title(proposal)} approved by {by} at {now:%H:%M:%S} UTC."
    if proposal.status in ("approved", "executing"):
        return f"{said} The cluster had not answered after 3 s; this page shows what came of it."
    return f"{said} {proposal.outcome or ''}".strip()
