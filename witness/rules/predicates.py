"""Which conditions can a row of the decision table ask of an alarm, and whom does it name?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from witness.rules import words
from witness.rules.alarm import PERSISTENT, REPLAYER, TRANSIENT, UNCLEAR, Alarm, Verdict

State = Literal["true", "false", "unknown"]
Names = Callable[[Alarm], tuple[int, ...]]

_IMPLIED = {PERSISTENT: 0, TRANSIENT: 0, UNCLEAR: 0, REPLAYER: 1}
"""The place in `(target, replayer)` that a verdict of this kind is about."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition of a row; `test` gives its state and what the alarm shows there."""

    text: str
    test: Callable[[Alarm], tuple[State, str]]


def suspect_of(verdict: Verdict) -> int | None:
    """Give the rank that a verdict holds suspect: the posted one, else the one its kind implies."""
    if verdict.suspect is not None:
        return verdict.suspect
    place = _IMPLIED.get(verdict.kind)
    return None if place is None else verdict.pair[place]


def uncovered_nonfinite(alarm: Alarm) -> tuple[int, ...]:
    """List non-finite ranks that no culprit and no verdict names."""
    if not alarm.nonfinite:
        return ()
    covered = {*alarm.culprits, *map(suspect_of, alarm.verdicts)}
    return tuple(sorted({rank for rank in alarm.nonfinite if rank not in covered}))


def check_is(wanted: str) -> Predicate:
    """Ask which check fired."""

    def test(alarm: Alarm) -> tuple[State, str]:
        return _state(alarm.check == wanted), words.cut(alarm.check)

    return Predicate(f"check is {wanted}", test)


def verdict_is(*kinds: str) -> Predicate:
    """Ask whether some verdict is of one of these kinds."""

    def test(alarm: Alarm) -> tuple[State, str]:
        held = sorted({verdict.kind for verdict in alarm.verdicts})
        shown = words.listed([words.cut(kind) for kind in held]) if held else "no verdicts"
        return _state(not set(kinds).isdisjoint(held)), shown

    return Predicate(f"a verdict is {' or '.join(kinds)}", test)


def named_by(*kinds: str) -> Names:
    """Name the suspects of verdicts of these kinds."""

    def names(alarm: Alarm) -> tuple[int, ...]:
        ranks = {suspect_of(verdict) for verdict in alarm.verdicts if verdict.kind in kinds}
        return tuple(sorted(rank for rank in ranks if rank is not None))

    return names


def nobody(alarm: Alarm) -> tuple[int, ...]:
    """Name no rank, whatever the alarm says."""
    return ()


def suspects(alarm: Alarm) -> tuple[int, ...]:
    """Name the suspects of a weights alarm."""
    return tuple(sorted(set(alarm.suspects or ())))


def culprits(alarm: Alarm) -> tuple[int, ...]:
    """Name the culprits of a compute alarm."""
    return tuple(sorted(set(alarm.culprits)))


def _state(holds: bool) -> State:
    return "true" if holds else "false"


def _suspects_named(alarm: Alarm) -> tuple[State, str]:
    state = alarm.suspects_state
    if state == "named":
        return "true", words.listed(suspects(alarm))
    if state == "missing":
        return "unknown", "missing"
    return "false", {"null": "null", "empty": "[]"}.get(state, "not part of this check")


def _suspects_null(alarm: Alarm) -> tuple[State, str]:
    state, shown = _suspects_named(alarm)
    return ("unknown" if state == "unknown" else _state(alarm.suspects_state == "null")), shown


def _has_culprits(alarm: Alarm) -> tuple[State, str]:
    return _state(bool(alarm.culprits)), words.listed(culprits(alarm))


def _nonfinite_alone(alarm: Alarm) -> tuple[State, str]:
    alone = uncovered_nonfinite(alarm)
    if alone or not alarm.nonfinite:
        return _state(bool(alone)), words.listed(alone)
    return "false", f"{words.ranks(sorted(set(alarm.nonfinite)))}, already named by the ring"


SUSPECTS_NAMED = Predicate("suspects is a list of ranks", _suspects_named)
SUSPECTS_NULL = Predicate("suspects is null", _suspects_null)
HAS_CULPRITS = Predicate("culprits is not empty", _has_culprits)
NONFINITE_ALONE = Predicate("nonfinite holds a rank that the ring does not name", _nonfinite_alone)
