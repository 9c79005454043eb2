"""What does each row of the decision table say, and which rows does an alarm match?

One table, as data: pages, proposals and audit entries all read it from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from witness.rules import words
from witness.rules.alarm import (
    COMPUTE,
    PERSISTENT,
    REDUCED,
    REPLAYER,
    TRANSIENT,
    UNATTRIBUTABLE,
    UNCLEAR,
    WEIGHTS,
    Alarm,
    Verdict,
)
from witness.rules.topology import Topology

TABLE_VERSION = 1
"""Raised with every change of a row; proposals are bound to the version that made them."""

State = Literal["true", "false", "unknown"]
Proposes = Literal["cordon", "deep_health_check", "targeted_audit", "none"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition of a row; `test` gives its state and what the alarm shows there."""

    text: str
    test: Callable[[Alarm], tuple[State, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what the alarm says, what it means, what to do. `names` gives the ranks it names."""

    id: str
    alarm_says: str
    predicates: tuple[Predicate, ...]
    meaning: str
    action: str
    ambiguous: bool
    cautions: tuple[str, ...]
    proposes: tuple[Proposes, ...]
    kind: str
    names: Callable[[Alarm], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PredicateResult:
    """A predicate held against one alarm."""

    text: str
    state: State
    shown_value: str


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row held against one alarm; `ranks` are those it names, () where it names nobody."""

    row: Row
    predicates: tuple[PredicateResult, ...]
    matched: bool
    ranks: tuple[int, ...]


def evaluate(alarm: Alarm, topology: Topology | None = None) -> tuple[RowResult, ...]:
    """Hold every row against an alarm, in the order of the table."""
    return tuple(_held(row, alarm) for row in ROWS)


def row(row_id: str) -> Row:
    """Give a row by its id; KeyError for an id that the table does not have."""
    return BY_ID[row_id]


def suspect_of(verdict: Verdict) -> int | None:
    """Give the rank that a verdict holds suspect: the posted one, else the one its kind implies."""
    if verdict.suspect is not None:
        return verdict.suspect
    implied = {PERSISTENT: 0, TRANSIENT: 0, UNCLEAR: 0, REPLAYER: 1}.get(verdict.kind)
    return None if implied is None else verdict.pair[implied]


def uncovered_nonfinite(alarm: Alarm) -> tuple[int, ...]:
    """List non-finite ranks that no culprit and no verdict names."""
    if not alarm.nonfinite:
        return ()
    covered = {*alarm.culprits, *map(suspect_of, alarm.verdicts)}
    return tuple(sorted({rank for rank in alarm.nonfinite if rank not in covered}))


def _held(one: Row, alarm: Alarm) -> RowResult:
    results = []
    for predicate in one.predicates:
        state, shown = predicate.test(alarm)
        results.append(PredicateResult(predicate.text, state, shown))
    matched = all(result.state == "true" for result in results)
    return RowResult(one, tuple(results), matched, one.names(alarm) if matched else ())


def _state(holds: bool) -> State:
    return "true" if holds else "false"


def _check_is(wanted: str) -> Predicate:
    def test(alarm: Alarm) -> tuple[State, str]:
        return _state(alarm.check == wanted), alarm.check

    return Predicate(f"check is {wanted}", test)


def _verdict_is(*kinds: str) -> Predicate:
    def test(alarm: Alarm) -> tuple[State, str]:
        held = sorted({verdict.kind for verdict in alarm.verdicts})
        state = _state(any(kind in held for kind in kinds))
        return state, words.listed(held) if held else "no verdicts"

    return Predicate(f"a verdict is {' or '.join(kinds)}", test)


def _named_by(*kinds: str) -> Callable[[Alarm], tuple[int, ...]]:
    def names(alarm: Alarm) -> tuple[int, ...]:
        ranks = {suspect_of(verdict) for verdict in alarm.verdicts if verdict.kind in kinds}
        return tuple(sorted(rank for rank in ranks if rank is not None))

    return names


def _suspects_named(alarm: Alarm) -> tuple[State, str]:
    if alarm.suspects_state == "named":
        return "true", words.listed(sorted(set(alarm.suspects or ())))
    if alarm.suspects_state == "missing":
        return "unknown", "missing"
    return "false", {"null": "null", "empty": "[]"}.get(alarm.suspects_state, "not part of this check")


def _suspects_null(alarm: Alarm) -> tuple[State, str]:
    state, shown = _suspects_named(alarm)
    if state == "unknown":
        return state, shown
    return _state(alarm.suspects_state == "null"), shown


def _has_culprits(alarm: Alarm) -> tuple[State, str]:
    return _state(bool(alarm.culprits)), words.listed(sorted(set(alarm.culprits)))


def _nonfinite_alone(alarm: Alarm) -> tuple[State, str]:
    alone = uncovered_nonfinite(alarm)
    if alone or not alarm.nonfinite:
        return _state(bool(alone)), words.listed(alone)
    return "false", f"{words.ranks(sorted(set(alarm.nonfinite)))}, named by the ring already"


def _nobody(alarm: Alarm) -> tuple[int, ...]:
    return ()


def _sorted_suspects(alarm: Alarm) -> tuple[int, ...]:
    return tuple(sorted(set(alarm.suspects or ())))


def _sorted_culprits(alarm: Alarm) -> tuple[int, ...]:
    return tuple(sorted(set(alarm.culprits)))


_IS_WEIGHTS = _check_is(WEIGHTS)
_IS_COMPUTE = _check_is(COMPUTE)

ROWS: tuple[Row, ...] = (
    Row(
        "W1",
        "The weight check names one or more replicas.",
        (_IS_WEIGHTS, Predicate("suspects is a list of ranks", _suspects_named)),
        "After the update this replica holds other weights than a strict majority of them.",
        "Keep its node cordoned; replace it after review.",
        False,
        ("The healthy majority is not free of it: gradients of this replica were averaged into all.",),
        ("cordon",),
        "weights",
        _sorted_suspects,
    ),
    Row(
        "W2",
        "The weight check finds a difference and names nobody (suspects is null).",
        (_IS_WEIGHTS, Predicate("suspects is null", _suspects_null)),
        "The replicas disagree, and no strict majority says which of them is wrong.",
        "Ambiguous: keep the nodes involved cordoned, look at their DCGM telemetry and run a deep health check.",
        True,
        (),
        ("cordon", "deep_health_check"),
        "no_majority",
        _nobody,
    ),
    Row(
        "R1",
        "The ring names one or more culprits.",
        (_IS_COMPUTE, Predicate("culprits is not empty", _has_culprits)),
        "Both comparisons that this rank takes part in differ.",
        "Keep its node quarantined; replace it after review, or when it recurs.",
        False,
        ("Holds for at most one faulty GPU among those that replay each other; with two, a healthy one can be named.",),
        ("cordon",),
        "culprit",
        _sorted_culprits,
    ),
    Row(
        "R2",
        "A confirmed pair has the verdict persistent.",
        (_IS_COMPUTE, _verdict_is(PERSISTENT)),
        "The target gives the same wrong answer again, and the third GPU agrees with the replayer.",
        "Keep its node quarantined; replace it after review.",
        False,
        (),
        ("cordon",),
        "persistent",
        _named_by(PERSISTENT),
    ),
    Row(
        "R3",
        "A confirmed pair has the verdict transient.",
        (_IS_COMPUTE, _verdict_is(TRANSIENT)),
        "The target was right when it computed again, as the third GPU was. An intermittent fault can look the same.",
        "Keep its node quarantined until an audit aimed at it, or a deep health check, has passed; replace it if it recurs.",
        False,
        (),
        ("cordon", "targeted_audit"),
        "transient",
        _named_by(TRANSIENT),
    ),
    Row(
        "R4",
        "A confirmed pair has the verdict replayer computed wrong.",
        (_IS_COMPUTE, _verdict_is(REPLAYER)),
        "The GPU that replayed erred; the target's own result was right.",
        "Treat the replayer as the suspect and confirm it once more.",
        False,
        ("When audits compare the loss only, a persistent fault can end in this verdict.",),
        ("cordon", "targeted_audit"),
        "replayer",
        _named_by(REPLAYER),
    ),
    Row(
        "N1",
        "A rank's own gradient is not finite, and no comparison of the ring names that rank.",
        (_IS_COMPUTE, Predicate("nonfinite holds a rank that the ring does not name", _nonfinite_alone)),
        "NaN or Inf arose in the backward pass without showing in the loss, or a gradient norm is too large for float32 (above about 1.8e19).",
        "Ambiguous: aim an audit at the rank, or look at DCGM telemetry and run a deep health check.",
        True,
        (),
        ("targeted_audit", "deep_health_check"),
        "nonfinite",
        uncovered_nonfinite,
    ),
    Row(
        "G1",
        "The reduced gradient is not finite.",
        (_check_is(REDUCED),),
        "NaN or Inf appeared in the all-reduce, though every rank's own gradient was finite. Nobody is named.",
        "Ambiguous: keep the job stopped, look at DCGM telemetry and run a deep health check on every node of the job, and resume from before the alarm's step.",
        True,
        (),
        ("deep_health_check",),
        "reduced",
        _nobody,
    ),
    Row(
        "U1",
        "A confirmed pair has the verdict unattributable or unclear.",
        (_IS_COMPUTE, _verdict_is(UNATTRIBUTABLE, UNCLEAR)),
        "The three GPUs that computed the same micro-batch do not agree on an answer.",
        "Ambiguous: look at DCGM telemetry and run a deep health check on the nodes involved.",
        True,
        (),
        ("deep_health_check",),
        "ambiguous",
        _named_by(UNCLEAR),
    ),
)

BY_ID: dict[str, Row] = {one.id: one for one in ROWS}
