"""What does the decision table say, whole, and what would it say of a pasted alarm?

Nothing is stored and nothing is looked up: the same rules that read a posted alarm read this one,
without a rank map.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from witness.rules.alarm import Alarm, AlarmError, read_alarm
from witness.rules.decision_table import RowResult, evaluate
from witness.rules.findings import Finding, findings
from witness.rules.guards import BLOCKING, CODES
from witness.rules.proposal import MANY_DEVICES, CaseFacts, Recommendation, recommend
from witness.rules.repeat_offenders import RECURRENCE_DAYS
from witness.rules.ring import Explanation, explain
from witness.rules.score import CORDON_AT, REPLACE_AT

LONGEST = 256 * 1024
"""Letters of a pasted document; an alarm that names 16,384 ranks has half of that."""


@dataclass(frozen=True, slots=True)
class AboveRule:
    """One rule that stands above the table: when it holds, and what then."""

    when: str
    then: str


@dataclass(frozen=True, slots=True)
class Guard:
    """One reservation that can be attached to a finding."""

    code: str
    meaning: str
    blocks_replacement: bool


ABOVE: tuple[AboveRule, ...] = (
    AboveRule(
        f"A first culprit, persistent or weights verdict, or P from {CORDON_AT:g} on",
        "A cordon is proposed at once. It can be undone; the job resumes elsewhere meanwhile.",
    ),
    AboveRule(
        f"P from {REPLACE_AT:g} on, a failed deep health check, or a second incident of the same "
        f"GPU or instance within {RECURRENCE_DAYS} days, whatever job and node are called by then",
        "A replacement is proposed. A person approves it.",
    ),
    AboveRule(
        f"One code digest stands behind {MANY_DEVICES} devices or more, none of them with more "
        "than half of the incidents; or only NaN and Inf, in one job of one build",
        "Software first: no action on any node.",
    ),
    AboveRule(
        "Half of the job or more is named at once",
        "Software first: no action on any node. Releasing stays possible.",
    ),
    AboveRule(
        "Whatever can destroy: replacement, reboot, deep health check",
        "Needs a person’s approval of exactly that, bound to the evidence it was made from.",
    ),
    AboveRule(
        "A passed health check, clean telemetry, a reboot",
        "Facts beside the alarm. They clear nothing.",
    ),
)

GUARDS: tuple[Guard, ...] = tuple(
    Guard(code, meaning, code in BLOCKING) for code, meaning in CODES.items()
)


class PasteError(ValueError):
    """A pasted text that cannot be read as an alarm; `field` names the part, None: the whole."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules say of one alarm without a rank map."""

    alarm: Alarm
    posted_as: str
    rows: tuple[RowResult, ...]
    findings: tuple[Finding, ...]
    recommendation: Recommendation
    explanations: tuple[Explanation, ...]

    @property
    def matched(self) -> tuple[str, ...]:
        """List the ids of the rows that match."""
        return tuple(one.row.id for one in self.rows if one.matched)


def judge(text: str) -> Judged:
    """Read a pasted alarm, bare or in its envelope; raise PasteError saying what is wrong."""
    document = _document(text)
    inner, posted_as = document, "the alarm document itself"
    if "alarm" in document:
        inner, posted_as = document["alarm"], "a posted document with its envelope"
    try:
        alarm = read_alarm(inner)
    except AlarmError as error:
        raise PasteError(str(error), error.field) from None
    found = findings(alarm)
    audits = alarm.audits(alarm.peer_offset) if alarm.mismatched_pairs else ()
    return Judged(
        alarm=alarm,
        posted_as=posted_as,
        rows=evaluate(alarm),
        findings=found,
        recommendation=recommend(CaseFacts(found)),
        explanations=explain(audits, alarm.world_size),
    )


def _document(text: str) -> Mapping[str, Any]:
    if not text.strip():
        raise PasteError("Nothing was pasted.")
    if len(text) > LONGEST:
        raise PasteError(
            f"The text has {len(text):,} letters; {LONGEST:,} is the most that is read here."
        )
    try:
        # Bare NaN and Infinity tokens are read as Python reads them.
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.msg == "Extra data":
            raise PasteError(f"A second document begins at {where}; paste one.") from None
        raise PasteError(f"This is no JSON: {error.msg.lower()} at {where}.") from None
    except (RecursionError, ValueError):
        message = "This JSON is nested too deep, or one of its numbers has too many digits."
        raise PasteError(message) from None
    if not isinstance(document, dict):
        raise PasteError("An alarm is a JSON object, in braces.")
    return document
