"""Which rows and rules of the decision table does an alarm fulfil, and which not?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.alarm_dossier import Dossier
from app.web.alarm.answers import CaseState
from app.web.drawings.p_bar import in_digits
from witness.rules import words
from witness.rules.proposal import MANY_DEVICES
from witness.rules.score import CORDON_AT, REPLACE_AT

STATE = {"true": "t", "false": "f", "unknown": "u"}
_AT_ONCE = frozenset({"culprit", "persistent", "weights"})


@dataclass(frozen=True, slots=True)
class AboveRule:
    """A rule above the table: t, f or u; what it asks, what it does."""

    state: str
    text: str
    does: str


def rules_above(dossier: Dossier, states: tuple[CaseState, ...]) -> tuple[AboveRule, ...]:
    """Hold the rules above the table against the alarm."""
    p = max((one.score.p for one in dossier.certain.values()), default=None)
    first = any(one.kind in _AT_ONCE and not one.ambiguous for one in dossier.findings)
    sure = p is not None and p >= CORDON_AT
    return (
        AboveRule(
            "t" if first or sure else "f",
            f"Culprit, persistent or weights verdict, or P ≥ {CORDON_AT:g}",
            "proposes cordon at once" if first or sure else "would propose cordon at once",
        ),
        _replace(p),
        _again(states),
        _several_faults(dossier),
        _short_ring(dossier),
        _half(dossier),
        _digest(dossier),
    )


def _has(dossier: Dossier, *codes: str) -> bool:
    return any(code in codes for one in dossier.findings for code, _ in one.cautions)


def _replace(p: float | None) -> AboveRule:
    text = f"P ≥ {REPLACE_AT:g}"
    if p is None:
        return AboveRule("u", f"{text}: not scored", "would propose replacement")
    if p >= REPLACE_AT:
        return AboveRule("t", f"{text}: it is {in_digits(p)}", "proposes replacement")
    return AboveRule("f", f"{text}: it is {in_digits(p)}", "would propose replacement")


def _again(states: tuple[CaseState, ...]) -> AboveRule:
    text = "Second incident of this GPU or instance in the time that counts"
    again = [one.case.recurrence for one in states if one.case.recurrence]
    if again:
        return AboveRule("t", f"{text}: {again[0]}", "proposes replacement")
    if not any(one.case.subject in ("gpu", "node") for one in states):
        return AboveRule("u", f"{text}: no device is known", "would propose replacement")
    return AboveRule("f", f"{text}: first", "would propose replacement")


def _several_faults(dossier: Dossier) -> AboveRule:
    text = "More than one fault in a ring"
    if _has(dossier, "multiple_faults"):
        return AboveRule("t", text, "forbids replacement before another audit")
    pairs = len(set(dossier.alarm.mismatched_pairs))
    said = (
        words.counted(pairs, "comparison differs", "comparisons differ")
        if pairs
        else "no ring compared wrong"
    )
    return AboveRule("f", f"{text}: {said}", "would forbid replacement")


def _short_ring(dossier: Dossier) -> AboveRule:
    text = "Ring of three nodes or fewer"
    ranks = [
        *dossier.alarm.culprits,
        *(rank for pair in dossier.alarm.mismatched_pairs[:1] for rank in pair),
    ]
    if not ranks:
        return AboveRule("f", f"{text}: no ring compared wrong", "would weaken the verdict")
    nodes = dossier.setting.ring(ranks[0]).nodes
    if nodes is None:
        return AboveRule("u", f"{text}: its length is not known", "would weaken the verdict")
    if nodes <= 3:
        return AboveRule("t", f"{text}: {nodes}", "weakens the verdict: a named GPU may be healthy")
    return AboveRule("f", f"{text}: {nodes}", "would weaken the verdict")


def _half(dossier: Dossier) -> AboveRule:
    text, world = "Half the job or more named at once", dossier.setting.world_size
    named = len(dossier.alarm.named_ranks())
    if world is None:
        return AboveRule("u", f"{text}: the job’s size is not known", "would say software first")
    said = f"{text}: {named:,} of {words.counted(world, 'rank')}"
    if _has(dossier, "half_job"):
        return AboveRule("t", said, "says software first, stops node actions")
    return AboveRule("f", said, "would say software first")


def _digest(dossier: Dossier) -> AboveRule:
    text = "One code digest behind several devices"
    if dossier.facts.code_digest is None:
        return AboveRule("u", f"{text}: not sent", "would say software first")
    devices = dossier.digest_devices
    said = f"{text}: {words.counted(devices, 'device')} in a week"
    if devices >= MANY_DEVICES:
        return AboveRule("t", said, "says software first")
    return AboveRule("f", said, "would say software first")
