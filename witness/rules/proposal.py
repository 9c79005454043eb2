"""What may be proposed for a case, why, and what stands in the way?

Recommends only. Whatever destroys needs a person's approval, and every rail of the executor
still applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from witness.rules.findings import Finding
from witness.rules.guards import BLOCKING, CODES, Caution
from witness.rules.repeat_offenders import Recurrence
from witness.rules.score import CORDON_AT, REPLACE_AT
from witness.rules.stances import RANKING, STANCES, Action, Stance

StatusClass = Literal["suspect", "ambiguous", "software"]
Health = Literal["passed", "failed", "running"]
Scope = Literal["device", "involved", "job"]

NO_NODE = "The node is not known."
NO_INSTANCE = "No instance id of the form i- and 8 or 17 hex digits is known."

MANY_DEVICES = 3
"""Two devices under one digest can be two faults; from three on, evenly spread means software."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What is known of a case when it is judged.

    `p` is None where no GPU is scored; `health_check` and `targeted_audit` None where none was
    run, or only before the newest alarm.
    `nan_only_one_digest`: only non-finite gradients, repeatedly, in one job under one digest.
    `cordoned`: the node takes no new work already, whoever saw to that.
    `by_instance`: whoever owns the machines replaces them by an instance id, as HyperPod does; GKE
    goes by the node.
    """

    findings: tuple[Finding, ...]
    p: float | None = None
    recurrence: Recurrence | None = None
    node: str | None = None
    instance_id: str | None = None
    health_check: Health | None = None
    targeted_audit: Health | None = None
    half_job: bool = False
    one_digest_many_devices: bool = False
    nan_only_one_digest: bool = False
    cordoned: bool = False
    by_instance: bool = True


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """One action with its reason; `blocked_by` () where nothing known stands in the way.

    `scope` says what it is aimed at: the case's device or its node, the nodes of the ranks
    involved, or every node of the job.
    """

    action: Action
    why: str
    blocked_by: tuple[str, ...] = ()
    scope: Scope = "device"


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
class _Case:
    """A case with its leading finding, as the functions below pass it on."""

    facts: CaseFacts
    lead: Finding
    stance: Stance

    @property
    def scope(self) -> Scope:
        if self.lead.rank is not None:
            return "device"
        return "involved" if self.lead.involved else "job"

    @property
    def blocks(self) -> tuple[Caution, ...]:
        return tuple(one for one in self.lead.cautions if one.code in BLOCKING)

    @property
    def again(self) -> Recurrence | None:
        """Give earlier incidents where a second one is reason for replacement."""
        return self.facts.recurrence if self.stance.recurs else None

    @property
    def replacing(self) -> bool:
        """Tell whether replacement is proposed by rule, whatever may still block it."""
        beyond = self.facts.p is not None and self.facts.p >= REPLACE_AT
        return beyond or self.facts.health_check == "failed" or self.again is not None

    @property
    def passed(self) -> str | None:
        """Name what the table lets a transient be released after; None: nothing passed."""
        facts = self.facts
        if "failed" in (facts.health_check, facts.targeted_audit):
            return None
        if facts.health_check == "passed":
            return "health check"
        return "targeted audit" if facts.targeted_audit == "passed" else None


def recommend(facts: CaseFacts) -> Recommendation:
    """Judge a case by its findings and by the rules above the table."""
    software = _software_cause(facts)
    if software is not None:
        return _software_first(software)
    known = [one for one in facts.findings if one.rule is not None and one.kind in STANCES]
    if not known:
        return _person_must_look(facts)
    lead = min(known, key=lambda one: (one.ambiguous, RANKING[one.kind]))
    case = _Case(facts, lead, STANCES[lead.kind])
    return _ambiguous(case) if lead.ambiguous or not case.stance.accuses else _suspect(case)


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


def _software_cause(facts: CaseFacts) -> str | None:
    """Say what points to software, or None where nothing does."""
    if facts.one_digest_many_devices:
        return "one build stands behind alarms on several GPUs"
    if facts.nan_only_one_digest:
        return "only NaN or Inf, in one job of one build"
    if facts.half_job or any(one.software_first for one in facts.findings):
        return "half of the job or more was named at once"
    return None


def _software_first(because: str) -> Recommendation:
    action = ProposedAction("none", f"No action on any node: {because}.", (), "job")
    todo = "The job’s owner looks for the cause first. Releasing stays possible."
    return Recommendation(f"Software first: {because}", todo, (action,), "software", 20)


def _person_must_look(facts: CaseFacts) -> Recommendation:
    texts = [one.meaning for one in facts.findings]
    because = _clause(texts[0]) if texts else "no finding belongs to this case"
    action = ProposedAction("none", "No row of the decision table covers what was posted.")
    headline = f"A person must look: {because}"
    return Recommendation(headline, "No recommendation.", (action,), "ambiguous", 45)


def _ambiguous(case: _Case) -> Recommendation:
    two = case.lead.has("two_nodes")
    p = case.facts.p
    actions = []
    if two or "cordon" in case.stance.besides or (p is not None and p >= CORDON_AT):
        actions.append(_cordon(case, "Nobody is settled as wrong; a cordon can be undone."))
    if case.replacing:
        actions.append(_replace(case))
    actions += [_other(one, case) for one in case.stance.besides if one != "cordon"]
    do, because = case.stance.do, case.stance.because
    if two:
        do, because = "Keep both quarantined, test both", _clause(CODES["two_nodes"])
    elif case.facts.health_check == "failed":
        do, because = "Replace", f"{because}, and the deep health check failed"
    return _made(case, f"{do}: {because}", actions, "ambiguous", case.stance.urgency)


def _suspect(case: _Case) -> Recommendation:
    facts, stance = case.facts, case.stance
    actions = [_cordon(case, f"First such incident: {stance.because}. A cordon can be undone.")]
    if case.again is not None:
        actions = [_cordon(case, "It recurs. A cordon can be undone.")]
    released = case.lead.kind == "transient" and case.passed is not None and not case.replacing
    if case.replacing:
        actions.append(_replace(case))
    if not case.replacing and not released:
        actions += [_other(one, case) for one in stance.besides]
    if case.blocks or case.lead.has("three_node_ring") or released:
        tested = not released or facts.health_check == "passed"
        more: Action = "targeted_audit" if tested else "deep_health_check"
        actions.append(_other(more, case))
    urgency = stance.urgency + (15 if case.replacing else 0) - (15 if facts.cordoned else 0)
    return _made(case, _headline(case, released), actions, "suspect", urgency, released)


def _made(
    case: _Case,
    headline: str,
    actions: list[ProposedAction],
    status: StatusClass,
    urgency: int,
    released: bool = False,
) -> Recommendation:
    """Put a recommendation together: each action once, no cordon where the node has one."""
    kept = {one.action: one for one in reversed(actions)}
    if case.facts.cordoned:
        kept.pop("cordon", None)
    ordered = tuple(reversed(kept.values()))
    nothing = (ProposedAction("none", "Nothing more to do before a person reviews the case."),)
    return Recommendation(headline, _todo(case), ordered or nothing, status, urgency, released)


def _headline(case: _Case, released: bool) -> str:
    facts, because = case.facts, case.stance.because
    if facts.health_check == "failed":
        return f"Replace: {because}, and the deep health check failed"
    if case.blocks:
        reason = _clause(CODES[case.blocks[0].code])
        return f"Quarantine, audit again before any replacement: {reason}"
    if case.again is not None:
        # What came before is long and stands beside the headline, in `what_to_do`.
        return f"Replace, it recurs: {because}"
    if case.replacing:
        return f"Replace after approval: {because}"
    if released:
        other = "audit once more" if facts.health_check == "passed" else "test it"
        return f"Release, or {other}: {because}, {case.passed} passed"
    held = facts.cordoned or facts.health_check is not None or facts.targeted_audit is not None
    return f"{'Keep quarantined' if held else 'Cordon'}, {case.stance.do}: {because}"


def _todo(case: _Case) -> str:
    facts = case.facts
    parts = [case.lead.action]
    if facts.recurrence is not None:
        parts.append(f"Recurs: {facts.recurrence.words}.")
    if facts.health_check == "passed":
        parts.append("Health check passed: a fact beside the alarm, it clears nothing.")
    elif facts.health_check is not None:
        running = facts.health_check == "running"
        parts.append(f"Health check {'is running' if running else 'failed'}.")
    if facts.targeted_audit == "passed":
        parts.append("Targeted audit passed: a fact beside the alarm, it clears nothing.")
    elif facts.targeted_audit == "failed":
        parts.append("An alarm came in the targeted audit.")
    return " ".join((*parts, *(one.text for one in case.blocks)))


def _cordon(case: _Case, why: str) -> ProposedAction:
    known = case.facts.node is not None or case.scope != "device"
    return ProposedAction("cordon", why, () if known else (NO_NODE,), case.scope)


def _replace(case: _Case) -> ProposedAction:
    facts = case.facts
    if facts.health_check == "failed":
        why = "The deep health check failed."
    elif case.again is not None:
        why = f"It recurs: {case.again.words}."
    else:
        why = f"P is {facts.p or 0:.2f}, at or above {REPLACE_AT:.2f}."
    blocked = [] if facts.node else [NO_NODE]
    if facts.instance_id is None and facts.by_instance:
        blocked.append(NO_INSTANCE)
    if facts.health_check != "failed":
        blocked += [one.text for one in case.blocks]
    return ProposedAction("replace", why, tuple(blocked), case.scope)


def _other(action: Action, case: _Case) -> ProposedAction:
    if action == "deep_health_check":
        known = case.facts.instance_id is not None or case.scope != "device"
        why = "A hardware test may find it. It can reboot or replace the node by itself."
        return ProposedAction(action, why, () if known else (NO_INSTANCE,), case.scope)
    why = "The next jobs on it audit closely: that says whether it shows again. Nothing is changed."
    return ProposedAction(action, why, (), case.scope)


def _clause(sentence: str) -> str:
    """Make a sentence the second half of a headline."""
    text = sentence.rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"
