"""What may be proposed for a case, why, and what stands in the way?

Recommends only. Whatever destroys needs a person's approval, and every rail of the executor
still applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from witness.rules import words
from witness.rules.findings import Finding
from witness.rules.guards import BLOCKING
from witness.rules.repeat_offenders import Recurrence
from witness.rules.score import CORDON_AT, REPLACE_AT

Action = Literal["cordon", "replace", "deep_health_check", "targeted_audit", "none"]
StatusClass = Literal["suspect", "ambiguous", "software"]
Health = Literal["passed", "failed", "running"]

NO_NODE = "the node is not known"
NO_INSTANCE = "no instance id of the form i- and 8 or 17 hex digits is known"
SOFTWARE = "a software cause comes first"

MANY_DEVICES = 3
"""Two devices under one digest can be two faults; from three on, evenly spread means software."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What is known of a case when it is judged.

    `p` is None where no GPU is scored, `health_check` None where none was run.
    `nan_only_one_digest`: only non-finite gradients, repeatedly, in one job under one digest.
    """

    findings: tuple[Finding, ...]
    p: float | None = None
    recurrence: Recurrence | None = None
    node: str | None = None
    instance_id: str | None = None
    health_check: Health | None = None
    half_job: bool = False
    one_digest_many_devices: bool = False
    nan_only_one_digest: bool = False
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """One action with its reason; `blocked_by` () where nothing known stands in the way."""

    action: Action
    why: str
    blocked_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a case comes down to; a bigger `urgency` comes first.

    `release_allowed` only says that the table permits release. A person decides it.
    """

    headline: str
    what_to_do: str
    actions: tuple[ProposedAction, ...]
    status_class: StatusClass
    urgency: int
    release_allowed: bool = False


@dataclass(frozen=True, slots=True)
class _Stance:
    """How one kind of finding is put: reason, first clause, actions besides, urgency."""

    because: str
    do: str
    besides: tuple[Action, ...]
    urgency: int
    named: bool


_AFTER_REVIEW = "replace after review"
_STANCES: dict[str, _Stance] = {
    "persistent": _Stance("wrong again on the same work", _AFTER_REVIEW, (), 90, named=True),
    "culprit": _Stance("wrong on its own work and on a peer’s", _AFTER_REVIEW, (), 90, named=True),
    "weights": _Stance(
        "its weights differ from the strict majority", _AFTER_REVIEW, (), 90, named=True
    ),
    "replayer": _Stance(
        "wrong when it replayed a peer", "confirm again", ("targeted_audit",), 65, named=True
    ),
    "transient": _Stance(
        "right when it repeated",
        "audit or test it",
        ("targeted_audit", "deep_health_check"),
        60,
        named=True,
    ),
    "reduced": _Stance(
        "NaN or Inf after the all-reduce",
        "Keep the job stopped, test every node",
        ("deep_health_check",),
        80,
        named=False,
    ),
    "no_majority": _Stance(
        "replicas disagree, no majority says which is wrong",
        "Keep the nodes cordoned, test them",
        ("cordon", "deep_health_check"),
        75,
        named=False,
    ),
    "unclear": _Stance(
        "it did not repeat its own answer", "Test the nodes involved", ("deep_health_check",), 50, named=False
    ),
    "ambiguous": _Stance(
        "the comparison does not say which GPU is wrong",
        "Test the nodes involved",
        ("deep_health_check",),
        50,
        named=False,
    ),
    "nonfinite": _Stance(
        "its own gradient was not finite",
        "Audit or test this GPU",
        ("targeted_audit", "deep_health_check"),
        40,
        named=False,
    ),
}
_ORDER = tuple(_STANCES)
RECURRING = frozenset({"persistent", "culprit", "weights", "replayer", "transient"})
"""Kinds for which a second incident is reason enough to propose replacement."""


def recommend(facts: CaseFacts) -> Recommendation:
    """Judge a case by its findings and by the rules above the table."""
    if _software(facts):
        return _software_first(facts)
    known = [one for one in facts.findings if one.rule is not None and one.kind in _STANCES]
    if not known:
        return _person_must_look(facts)
    lead = min(known, key=lambda one: (one.ambiguous, _ORDER.index(one.kind)))
    stance = _STANCES[lead.kind]
    if lead.ambiguous or not stance.named:
        return _ambiguous(facts, lead, stance)
    return _suspect(facts, lead, stance)


def one_digest_many_devices(incidents: Sequence[tuple[str | None, str]]) -> bool:
    """Tell whether one code digest stands behind several devices evenly.

    Takes `(code digest or None, device)` an incident. A digest that was not sent proves nothing.
    """
    by_digest: dict[str, dict[str, int]] = {}
    for digest, device in incidents:
        if digest is not None:
            counts = by_digest.setdefault(digest, {})
            counts[device] = counts.get(device, 0) + 1
    return any(
        len(counts) >= MANY_DEVICES and 2 * max(counts.values()) <= sum(counts.values())
        for counts in by_digest.values()
    )


def _software(facts: CaseFacts) -> bool:
    flags = facts.half_job or facts.one_digest_many_devices or facts.nan_only_one_digest
    return flags or any(one.software_first for one in facts.findings)


def _software_first(facts: CaseFacts) -> Recommendation:
    if facts.one_digest_many_devices:
        because = "one build stands behind alarms on several GPUs"
    elif facts.nan_only_one_digest:
        because = "only NaN or Inf, in one job of one build"
    else:
        because = "half of the job or more was named at once"
    action = ProposedAction("none", f"No action on any node: {because}.")
    todo = "The job’s owner looks for the cause first. Releasing stays possible."
    return Recommendation(f"Software first: {because}", todo, (action,), "software", 20)


def _person_must_look(facts: CaseFacts) -> Recommendation:
    texts = list(dict.fromkeys(one.meaning for one in facts.findings))
    because = texts[0].rstrip(".") if texts else "nothing was found that a rule covers"
    action = ProposedAction("none", "No row of the decision table covers what was posted.")
    return Recommendation(
        f"A person must look: {because[0].lower()}{because[1:]}",
        "No recommendation.",
        (action,),
        "ambiguous",
        45,
    )


def _ambiguous(facts: CaseFacts, lead: Finding, stance: _Stance) -> Recommendation:
    cordon = lead.has("two_nodes") or "cordon" in stance.besides or _likely(facts)
    actions = [_cordon(facts, "The finding is ambiguous; a cordon can be undone.")] if cordon else []
    if _beyond(facts):
        actions.append(_replace(facts, lead, _why_replace(facts, lead)))
    actions += [_other(action, facts) for action in stance.besides if action != "cordon"]
    if lead.rule == "R1":
        actions.append(_other("deep_health_check", facts))
    two = next((one.text for one in lead.cautions if one.code == "two_nodes"), None)
    do = "Keep both quarantined, test both" if two else stance.do
    because = two.rstrip(".")[0].lower() + two.rstrip(".")[1:] if two else stance.because
    return Recommendation(
        f"{do}: {because}", _todo(facts, lead), tuple(actions), "ambiguous", stance.urgency
    )


def _suspect(facts: CaseFacts, lead: Finding, stance: _Stance) -> Recommendation:
    actions = [_cordon(facts, f"The suspect was {stance.because}. A cordon can be undone.")]
    replacing = _beyond(facts) or _recurs(facts, lead)
    if replacing:
        actions.append(_replace(facts, lead, _why_replace(facts, lead)))
    released = lead.kind == "transient" and facts.health_check == "passed" and not replacing
    if not replacing and not released:
        actions += [_other(action, facts) for action in stance.besides]
    if lead.blocks_replacement or lead.has("three_node_ring"):
        actions.append(_other("targeted_audit", facts))
    headline = _headline(facts, lead, stance, replacing, released)
    urgency = stance.urgency - (15 if facts.cordoned else 0) + (15 if replacing else 0)
    distinct = tuple({one.action: one for one in actions}.values())
    return Recommendation(headline, _todo(facts, lead), distinct, "suspect", urgency, released)


def _headline(
    facts: CaseFacts, lead: Finding, stance: _Stance, replacing: bool, released: bool
) -> str:
    if lead.blocks_replacement:
        return "Quarantine, audit again before any replacement: some named GPUs may be healthy"
    if facts.health_check == "failed":
        return f"Replace: {stance.because}, and the deep health check failed"
    if replacing and facts.recurrence is not None:
        job = facts.recurrence.lead.job
        return f"Replace: wrong again, the {_nth(facts.recurrence.count + 1)} time, before in {job}"
    if replacing:
        return f"Replace: {stance.because}"
    if released:
        return f"Release, or audit once more: {stance.because}, health check passed"
    held = facts.cordoned or facts.health_check is not None
    return f"{'Keep quarantined' if held else 'Cordon'}, {stance.do}: {stance.because}"


def _todo(facts: CaseFacts, lead: Finding) -> str:
    parts = [lead.action]
    if facts.recurrence is not None:
        said = facts.recurrence.words
        parts.append(f"{said[0].upper()}{said[1:]}.")
    if facts.health_check == "passed":
        parts.append("The deep health check passed: that is a fact beside it and clears nothing.")
    elif facts.health_check == "failed":
        parts.append("The deep health check failed.")
    elif facts.health_check == "running":
        parts.append("A deep health check is running.")
    parts += [one.text for one in lead.cautions if one.code in BLOCKING]
    return " ".join(parts)


def _likely(facts: CaseFacts) -> bool:
    return facts.p is not None and facts.p >= CORDON_AT


def _beyond(facts: CaseFacts) -> bool:
    return facts.health_check == "failed" or (facts.p is not None and facts.p >= REPLACE_AT)


def _recurs(facts: CaseFacts, lead: Finding) -> bool:
    return facts.recurrence is not None and lead.kind in RECURRING


def _why_replace(facts: CaseFacts, lead: Finding) -> str:
    if facts.health_check == "failed":
        return "The deep health check failed."
    if facts.recurrence is not None and lead.kind in RECURRING:
        return f"It recurs: {facts.recurrence.words}."
    return f"P is {facts.p:.2f}, at or above {REPLACE_AT:.2f}."


def _cordon(facts: CaseFacts, why: str) -> ProposedAction:
    return ProposedAction("cordon", why, () if facts.node else (NO_NODE,))


def _replace(facts: CaseFacts, lead: Finding, why: str) -> ProposedAction:
    blocked = [] if facts.node else [NO_NODE]
    if facts.instance_id is None:
        blocked.append(NO_INSTANCE)
    if facts.health_check != "failed":
        blocked += [one.text for one in lead.cautions if one.code in BLOCKING]
    return ProposedAction("replace", why, tuple(blocked))


def _other(action: Action, facts: CaseFacts) -> ProposedAction:
    if action == "deep_health_check":
        blocked = () if facts.instance_id else (NO_INSTANCE,)
        why = "A hardware test may find it. It can reboot or replace the node by itself."
        return ProposedAction(action, why, blocked)
    return ProposedAction(action, "Replays of the triggering step against two witnesses settle most.")


def _nth(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def thresholds() -> str:
    """Say at which P what is proposed."""
    return f"Cordon from P {CORDON_AT:.2f}, replacement from P {REPLACE_AT:.2f}; {words.times(2)} within the window counts as recurring."
