"""What happens next in a case, who has to do it, and which button leads there?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.actions import rails
from app.store.docket_reading import DocketCase
from app.store.proposals import UNDER_WAY, Proposal
from app.web.words import ident

WORD_OF_STATUS = {
    "proposed": "waits for a decision",
    "approved": "approved, not taken up yet",
    "executing": "being carried out",
    "accepted": "accepted, not proven yet",
    "waiting": "ordered, its effect is awaited",
    "verified": "done, proven by reading",
    "refused": "refused",
    "failed": "failed, nothing changed",
    "gone": "node is gone",
    "unknown": "outcome unknown",
    "rejected": "rejected",
    "superseded": "superseded",
    "expired": "expired",
}

RESULT_WORDS = {
    "dry_run": "dry run, nothing changed",
    "alarmed": "an alarm came in it",
    "not_taken": "no job took it",
    "too_few": "over, too few audits",
    "withdrawn": "withdrawn",
}


@dataclass(frozen=True, slots=True)
class Next:
    """One sentence, a button where there is something to press, and since when it waits."""

    words: str
    button: str | None = None
    address: str | None = None
    kind: Literal["do", "", "to-destroy"] = ""
    since: datetime | None = None
    waits_for: str | None = None  # "cluster" where no person has to do anything now

    @property
    def filled(self) -> bool:
        """Tell whether the button is the filled one."""
        return self.kind == "do"


def status_word(proposal: Proposal) -> str:
    """Say how a proposal stands in a few words."""
    if proposal.result in RESULT_WORDS:
        return RESULT_WORDS[str(proposal.result)]
    if proposal.result in ("already_ours", "already_by_other") and proposal.status == "verified":
        return "satisfied without change"
    if proposal.details.get("stands") not in (None, "holds"):
        return "changed by somebody since"
    return WORD_OF_STATUS.get(proposal.status, proposal.status)


def next_step(case: DocketCase, proposals: Sequence[Proposal], *, first: bool) -> Next:
    """Choose the next step of a case from its proposals."""
    if case.status == "closed":
        return Next(f"Closed as {case.adjudication}.", since=None)
    for choose in (_unknown, _under_way, _waiting):
        chosen = choose(proposals, first)
        if chosen is not None:
            return chosen
    newest = _newest_decided(proposals)
    if newest is not None:
        return _after(newest, proposals)
    blocked = [one for one in proposals if one.status == "proposed"]
    if blocked:
        return _blocked(case, blocked[0])
    return Next(case.advice, "Open the case", f"/cases/{ident(case.id)}", since=case.opened_at)


def _unknown(proposals: Sequence[Proposal], first: bool) -> Next | None:
    for one in reversed(proposals):
        if one.status == "unknown":
            newer = [p for p in proposals if p.action == one.action and p.ordinal > one.ordinal]
            if newer:
                continue
            words = f"{rails.action_word(one.action)}: {one.outcome}"
            kind: Literal["do", ""] = "do" if first else ""
            return Next(words, "Look at it", f"/proposals/{ident(one.id)}", kind, one.finished_at)
    return None


def _under_way(proposals: Sequence[Proposal], first: bool) -> Next | None:
    for one in proposals:
        if one.status in UNDER_WAY:
            words = f"{rails.action_word(one.action)} approved by {one.decided_by}, "
            words += f"{status_word(one)}."
            return Next(words, None, f"/proposals/{ident(one.id)}", "", one.decided_at, "cluster")
    return None


def _waiting(proposals: Sequence[Proposal], first: bool) -> Next | None:
    for one in proposals:
        if one.status == "proposed" and not one.blocked:
            word = rails.action_word(one.action)
            if one.destroys:
                return Next(
                    one.why, f"Review {word.lower()}", _address(one), "to-destroy", one.created_at
                )
            kind: Literal["do", ""] = "do" if first else ""
            return Next(one.why, f"Preview {word.lower()}", _address(one), kind, one.created_at)
    return None


def _address(proposal: Proposal) -> str:
    return f"/proposals/{ident(proposal.id)}"


def _newest_decided(proposals: Sequence[Proposal]) -> Proposal | None:
    decided = [one for one in proposals if one.decided_at is not None]
    return max(decided, key=lambda one: (one.decided_at, one.id), default=None)


def _after(newest: Proposal, proposals: Sequence[Proposal]) -> Next:
    words = f"{rails.action_word(newest.action)} "
    if newest.status == "rejected":
        because = f": {newest.decision_reason}" if newest.decision_reason else ""
        words += f"rejected by {newest.decided_by}{because}."
    else:
        words += f"approved by {newest.decided_by}: {status_word(newest)}."
    rest = [one for one in proposals if one.status == "proposed"]
    if rest:
        word = rails.action_word(rest[0].action)
        words += f" {word} proposed, {rest[0].blocked}."
        button = f"Review {word.lower()}"
        kind: Literal["to-destroy", ""] = "to-destroy" if rest[0].destroys else ""
        return Next(words, button, _address(rest[0]), kind)
    return Next(words, "Open it", _address(newest))


def _blocked(case: DocketCase, one: Proposal) -> Next:
    word = rails.action_word(one.action)
    words = f"{word} proposed; {one.blocked}."
    kind: Literal["to-destroy", ""] = "to-destroy" if one.destroys else ""
    return Next(words, f"Review {word.lower()}", _address(one), kind, one.created_at)
