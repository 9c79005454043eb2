"""How does an alarm read, to a program and to a person?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from witness.rules import words
from witness.rules.suspect_window import reported_window

Alarm = dict[str, Any]
"""The alarm document: plain JSON values, equal on every rank of the job."""


class SilentCorruption(RuntimeError):
    """A check fired; `alarm` is the document, equal on every rank."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(in_words(alarm))
        self.alarm = alarm


def document(
    check: str,
    step: int,
    start_step: int,
    passes: Mapping[str, int | None],
    *,
    update_applied: bool,
    **more: Any,
) -> Alarm:
    """Put an alarm together; `passes` are the tags of a checkpoint saved now.

    `update_applied` says whether the weights already went through this step. What is None or
    empty in `more` is left out, but for what a check always says (`suspects` null means: nobody).
    """
    window = reported_window(
        check, step, start_step, passes["last_audit_pass"], passes["last_weight_check_pass"]
    )
    always = ("nonfinite", "mismatched_pairs", "culprits", "verdicts", "suspects")
    given = {key: value for key, value in more.items() if key in always or value}
    return {
        "check": check,
        "step": step,
        **given,
        "suspect_window": list(window or (step, step)),
        **passes,
        "update_applied": update_applied,
    }


def named(alarm: Mapping[str, Any]) -> list[int]:
    """List every rank that an alarm holds suspect, each once."""
    found = [
        *alarm.get("culprits", ()),
        *alarm.get("nonfinite", ()),
        *(alarm.get("suspects") or ()),
    ]
    found += [one["suspect"] for one in alarm.get("verdicts", ()) if one["suspect"] is not None]
    return sorted(set(found))


def in_words(alarm: Mapping[str, Any]) -> str:
    """Say in a sentence or two what fired, whom it names and where to resume."""
    first, last = alarm["suspect_window"]
    who = named(alarm)
    applied = "was already applied" if alarm.get("update_applied") else "was not applied"
    resume = f"from a checkpoint saved before step {first}" if first else "from the very beginning"
    return (
        f"Silent data corruption: the check of {_CHECKS.get(alarm['check'], alarm['check'])} fired "
        f"at step {alarm['step']} and names {words.ranks(who) if who else 'nobody'}. The step "
        f"{applied}. Suspect: {'step' if first == last else 'steps'} {words.window(first, last)}; "
        f"resume {resume}."
    )


_CHECKS = {
    "compute": "each rank's computation",
    "reduced gradient": "the reduced gradient",
    "weights": "the weights",
}
