"""What is the verdict of one alarm, in a title that says what happened and to which GPU?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.alarm_dossier import Dossier
from app.store.alarm_reading import StoredFinding
from witness.rules import words

NOBODY = {
    "G1": "NaN or Inf after the all-reduce; no rank is named",
    "W2": "Replicas hold different weights, and no strict majority says which is wrong",
    "U1": "Three GPUs computed the same work and do not agree",
}
SAYS = {
    "R1": "computed wrong, on its own work and on a peer’s",
    "R2": "computed wrong, and wrong again on the same work",
    "R3": "computed wrong once, and was right when it repeated",
    "R4": "computed wrong when it replayed a peer",
    "N1": "made NaN or Inf in its own gradient",
    "W1": "holds other weights than the strict majority",
    "U1": "computed wrong, and did not repeat its own answer",
}
SAY_MANY = {
    "R1": "computed wrong, each on its own work and on a peer’s",
    "R2": "computed wrong, and wrong again on the same work",
    "R3": "computed wrong once, and were right when they repeated",
    "R4": "computed wrong when they replayed a peer",
    "N1": "made NaN or Inf in their own gradients",
    "W1": "hold other weights than the strict majority",
    "U1": "computed wrong, and did not repeat their own answers",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The title: a GPU of a node where both are known, else `who`; then what it did.

    `plain` is the same for the browser's title bar.
    """

    gpu_index: int | None
    node: str | None
    who: str
    says: str
    plain: str


def verdict_of(dossier: Dossier) -> Verdict:
    """Put the findings of an alarm into one title."""
    named = [one for one in dossier.findings if one.rank is not None]
    step = dossier.facts.step
    where = f"step {step} of {dossier.facts.job}"
    if not named:
        says = _nobody(dossier)
        return Verdict(None, None, "", says, f"{says}, {where}")
    lead = _lead(named)
    ranks = sorted({one.rank for one in named if one.rank is not None})
    plain = f"{_capital(words.ranks(ranks, 4))}, {where}"
    if lead.software_first:
        who = f"{len(dossier.alarm.named_ranks()):,} ranks are named at once:"
        return Verdict(None, None, who, "look for a software cause first", plain)
    cannot_tell = _two_nodes(lead)
    if cannot_tell is not None:
        return Verdict(None, None, "", cannot_tell, plain)
    if dossier.findings_in_all > len(dossier.findings):
        who = f"{len(dossier.alarm.named_ranks()):,} ranks"
        return Verdict(None, None, who, _many(named), plain)
    if len(ranks) > 1:
        return Verdict(None, None, _capital(words.ranks(ranks, 6)), _many(named), plain)
    says = SAYS.get(lead.rule or "", "is named, by a verdict that is not known here")
    index = gpu_index(dossier, lead.rank)
    if lead.node is None:
        return Verdict(None, None, f"Rank {lead.rank}", says, plain)
    who = f"GPU {index} of" if index is not None else f"Rank {lead.rank} on"
    return Verdict(index, lead.node, who, says, plain)


def gpu_index(dossier: Dossier, rank: int | None) -> int | None:
    """Give the index of a rank's GPU in its machine, as the map says."""
    row = None if rank is None else dossier.rows_by_rank.get(rank)
    if row is None:
        return None
    return row.place.gpu_index if row.place.gpu_index is not None else row.place.local_rank


def _lead(named: list[StoredFinding]) -> StoredFinding:
    """Give the finding that the title is about: one that is not ambiguous before one that is."""
    return min(named, key=lambda one: (one.rule is None, one.ambiguous, one.ordinal))


def _two_nodes(lead: StoredFinding) -> str | None:
    for code, text in lead.cautions:
        if code == "two_nodes":
            return text.rstrip(".")
    return None


def _many(named: list[StoredFinding]) -> str:
    rules = {one.rule for one in named}
    if len(rules) == 1:
        return SAY_MANY.get(rules.pop() or "", "are named, by a verdict that is not known here")
    return "computed wrong, as different rows of the table say"


def _nobody(dossier: Dossier) -> str:
    rules = [one.rule for one in dossier.findings if one.rule]
    if rules:
        return NOBODY.get(rules[0], dossier.facts.summary)
    first = dossier.findings[0] if dossier.findings else None
    if first is not None and first.cautions:
        return first.cautions[0][1].rstrip(".")
    return dossier.facts.summary


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
