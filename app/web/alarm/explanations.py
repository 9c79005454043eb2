"""Which smallest sets of faulty GPUs explain an alarm, in words, and what would tell them apart?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.alarm_dossier import Dossier, ExplainedGroup
from witness.rules import words

SETS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Explained:
    """The smallest sets of one group of mismatches in words, and what is left open."""

    sets: tuple[str, ...]
    remarks: tuple[str, ...]


def explained(group: ExplainedGroup, dossier: Dossier) -> Explained:
    """Say each smallest set of faulty GPUs, then what is left open."""
    found = group.explanation
    sets, remarks = [], []
    for held in found.sets[:SETS_SHOWN]:
        who = words.ranks(held.faulty)
        who = f"{who[:1].upper()}{who[1:]} {'alone' if len(held.faulty) == 1 else 'together'}"
        each = "" if len(held.faulty) == 1 else "each "
        often = "every comparison" if held.persistent else "some comparisons only"
        sets.append(f"{who}, {each}wrong in {often}.")
    total = found.total if found.total is not None else len(found.sets)
    if total > SETS_SHOWN:
        remarks.append(f"And {total - SETS_SHOWN:,} more sets of the same size.")
    elif not found.complete:
        remarks.append(f"At least {found.at_least} faulty GPUs; the search for all was stopped.")
    if len(found.sets) > 1:
        remarks.append(_still_open(group, dossier))
    return Explained(tuple(sets), tuple(remarks))


def _still_open(group: ExplainedGroup, dossier: Dossier) -> str:
    pairs = {one.pair for one in dossier.alarm.verdicts}
    if len(group.explanation.ranks) == 2 and any(
        set(p) <= set(group.explanation.ranks) for p in pairs
    ):
        return "The comparisons alone cannot tell these apart; the third rank was asked for that."
    if group.decisive is None:
        return "The comparisons cannot tell these apart, and no other peer offset would."
    decides = "would tell them apart" if group.decisive.decides else "would rule some of them out"
    return f"An audit with peer offset {group.decisive.offset} {decides}."
