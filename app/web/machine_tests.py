"""How are the tests of a machine put into chips and sentences?

None of them ever clears a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.actions.tests_of_case import NOTHING, Tested
from app.store.hardware_tests import AUDIT, DEEP
from app.web.chip import Chip

NAMES = {DEEP: "health check", AUDIT: "targeted audit"}
# A passed test is no good news to look for: it is a fact, and the chip stays plain.
_KINDS = {
    "failed": "hit",
    "inconclusive": "unknown",
    "stuck": "unknown",
    "running": "unknown",
    "passed": "",
}


@dataclass(slots=True)
class Said:
    """What tests say for a fault, against it, and what is missing."""

    speaks_for: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def chips(tested: Mapping[str, Tested]) -> tuple[Chip, ...]:
    """Put tests into chips: the health check always, a targeted audit where there was one."""
    deep = tested.get(DEEP, NOTHING)
    found = [Chip(NAMES[DEEP], _value(deep), _kind(deep))]
    audit = tested.get(AUDIT, NOTHING)
    if audit.test is not None:
        found.append(Chip(NAMES[AUDIT], _value(audit), _kind(audit)))
    return tuple(found)


def _value(one: Tested) -> str:
    if one.test is None:
        return "none"
    said = {"failed": "failed", "passed": "passed"}.get(one.test.result, one.test.result)
    if one.test.kind == AUDIT and one.test.result == "failed":
        said = "an alarm came"
    if one.before_newest:
        return f"{said} before"
    return said if one.test.dated else f"{said}, no time"


def _kind(one: Tested) -> str:
    return "unknown" if one.test is None else _KINDS.get(one.test.result, "unknown")


def sentences(tested: Mapping[str, Tested], at_best: float) -> Said:
    """Say what tests showed; `at_best` is the highest recall that was published."""
    said = Said()
    for kind in (DEEP, AUDIT):
        one = tested.get(kind, NOTHING)
        if one.test is not None:
            _one(one, said, at_best)
    deep = tested.get(DEEP, NOTHING)
    if deep.test is None:
        said.missing.append("Deep health check: none.")
    return said


def _one(one: Tested, said: Said, at_best: float) -> None:
    test = one.test
    assert test is not None
    name = NAMES[test.kind].capitalize()
    checks = f" ({', '.join(test.checks)})" if test.checks else ""
    at = f"{test.at:%Y-%m-%d %H:%M} UTC, {test.source}"
    if test.result == "failed":
        word = "an alarm came" if test.kind == AUDIT else "failed"
        said.speaks_for.append(f"{name} {word}{checks}: {at}. {test.words}")
    elif test.result == "passed":
        said.against.append(
            f"{name} passed{checks}: {at}. {test.words}{_when(one)}{_recall(one, at_best)} "
            "It clears nothing."
        )
    elif test.result == "running":
        said.missing.append(f"{name}{checks} is running: {at}.")
    else:
        said.missing.append(f"{name}{checks}: {test.result}, {at}. {test.words}")


def _when(one: Tested) -> str:
    return " It passed before the newest alarm." if one.before_newest else ""


def _recall(one: Tested, at_best: float) -> str:
    test = one.test
    if test is None or test.recall is None:
        return ""
    found = (
        f" It finds an assumed {test.recall:.0%} of defective GPUs, at best {at_best:.0%} by what "
        "was published."
    )
    return found if test.dated else f"{found} Without a time it weighs nothing in the score."
