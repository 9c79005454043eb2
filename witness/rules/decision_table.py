"""What does each row of the decision table say, and which rows does an alarm match?

One table, as data: pages, proposals and audit entries all read it from here.
"""

from dataclasses import dataclass
from typing import Literal

from witness.rules import predicates
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
)
from witness.rules.predicates import Names, Predicate, State, check_is, named_by, verdict_is
from witness.rules.topology import Topology

TABLE_VERSION = 1
"""Raised with every change of a row; proposals are bound to the version that made them."""

Proposes = Literal["cordon", "deep_health_check", "targeted_audit", "none"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what the alarm says, what it means, what to do.

    `cautions` hold for every finding of the row; `names` gives the ranks it names; `kind` is the
    finding's kind.
    """

    id: str
    alarm_says: str
    predicates: tuple[Predicate, ...]
    meaning: str
    action: str
    ambiguous: bool
    cautions: tuple[str, ...]
    proposes: tuple[Proposes, ...]
    kind: str
    names: Names


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
    """Hold every row against an alarm, in the order of the table.

    Rows ask the alarm alone. What the layout in `topology` takes away from a matching row is a
    matter of the guards and stands in the findings.
    """
    return tuple(_held(row, alarm) for row in ROWS)


def _held(row: Row, alarm: Alarm) -> RowResult:
    results = []
    for predicate in row.predicates:
        state, shown = predicate.test(alarm)
        results.append(PredicateResult(predicate.text, state, shown))
    matched = all(result.state == "true" for result in results)
    return RowResult(row, tuple(results), matched, row.names(alarm) if matched else ())


ROWS: tuple[Row, ...] = (
    Row(
        id="W1",
        alarm_says="The weight check names one or more replicas.",
        predicates=(check_is(WEIGHTS), predicates.SUSPECTS_NAMED),
        meaning=(
            "After the update this replica holds other weights than a strict majority of them."
        ),
        action="Keep its node cordoned; replace it after review.",
        ambiguous=False,
        cautions=(
            "The majority is not free of the fault: this replica's gradients were averaged into "
            "every copy since the check last passed.",
        ),
        proposes=("cordon",),
        kind="weights",
        names=predicates.suspects,
    ),
    Row(
        id="W2",
        alarm_says="The weight check finds a difference and names nobody (suspects is null).",
        predicates=(check_is(WEIGHTS), predicates.SUSPECTS_NULL),
        meaning="The replicas disagree, and no strict majority says which of them is wrong.",
        action=(
            "Ambiguous: keep the nodes involved cordoned, look at their DCGM telemetry and run a "
            "deep health check."
        ),
        ambiguous=True,
        cautions=("With two replicas nobody can be named.",),
        proposes=("cordon", "deep_health_check"),
        kind="no_majority",
        names=predicates.nobody,
    ),
    Row(
        id="R1",
        alarm_says="The ring names one or more culprits.",
        predicates=(check_is(COMPUTE), predicates.HAS_CULPRITS),
        meaning=(
            "Both ring comparisons of this rank differ. That holds for at most one faulty GPU "
            "among those that replay each other (same local index); with two, a healthy GPU can "
            "be named."
        ),
        action="Keep its node quarantined; replace it after review, or when it recurs.",
        ambiguous=False,
        cautions=(
            "Several culprits of one local index, or mismatches that one fault does not explain: "
            "some named GPUs may be healthy, so audit again before any replacement.",
            "On a ring of three nodes two faulty GPUs can leave only the healthy one named.",
            "On two nodes the check cannot tell one from the other.",
        ),
        proposes=("cordon",),
        kind="culprit",
        names=predicates.culprits,
    ),
    Row(
        id="R2",
        alarm_says="A confirmed pair has the verdict persistent.",
        predicates=(check_is(COMPUTE), verdict_is(PERSISTENT)),
        meaning=(
            "The target gives the same wrong answer again, and the third GPU agrees with the "
            "replayer."
        ),
        action="Keep its node quarantined; replace it after review.",
        ambiguous=False,
        cautions=("Needs a third rank on a third node to be an independent witness.",),
        proposes=("cordon",),
        kind="persistent",
        names=named_by(PERSISTENT),
    ),
    Row(
        id="R3",
        alarm_says="A confirmed pair has the verdict transient.",
        predicates=(check_is(COMPUTE), verdict_is(TRANSIENT)),
        meaning=(
            "The target was right when it computed again and agrees with the third GPU. An "
            "intermittent fault can look the same."
        ),
        action=(
            "Keep its node quarantined until an audit aimed at it, or a deep health check, has "
            "passed; replace it if it recurs."
        ),
        ambiguous=False,
        cautions=("Needs a third rank on a third node to be an independent witness.",),
        proposes=("cordon", "targeted_audit", "deep_health_check"),
        kind="transient",
        names=named_by(TRANSIENT),
    ),
    Row(
        id="R4",
        alarm_says="A confirmed pair has the verdict replayer computed wrong.",
        predicates=(check_is(COMPUTE), verdict_is(REPLAYER)),
        meaning="The GPU that replayed erred; the target's own result was right.",
        action="Treat the replayer as the suspect and confirm it once more.",
        ambiguous=False,
        cautions=(
            "Where audits compare the loss only, a persistent fault can end in this verdict: it "
            "counts in full in the history of the GPU.",
        ),
        proposes=("cordon", "targeted_audit"),
        kind="replayer",
        names=named_by(REPLAYER),
    ),
    Row(
        id="N1",
        alarm_says="A rank's own gradient is not finite, and the ring does not name that rank.",
        predicates=(check_is(COMPUTE), predicates.NONFINITE_ALONE),
        meaning=(
            "NaN or Inf arose in the backward pass without showing in the loss, or a gradient "
            "norm is too large for float32 (above about 1.8e19)."
        ),
        action=(
            "Ambiguous: aim an audit at the rank, or look at DCGM telemetry and run a deep health "
            "check."
        ),
        ambiguous=True,
        cautions=("Most NaN and Inf come from software.",),
        proposes=("targeted_audit", "deep_health_check"),
        kind="nonfinite",
        names=predicates.uncovered_nonfinite,
    ),
    Row(
        id="G1",
        alarm_says="The reduced gradient is not finite.",
        predicates=(check_is(REDUCED),),
        meaning=(
            "NaN or Inf appeared after the all-reduce, though every rank's own gradient was "
            "finite. Nobody is named: it involves every node of the job."
        ),
        action=(
            "Ambiguous: keep the job stopped, look at DCGM telemetry and run a deep health check "
            "on every node of the job, and resume from before the alarm's step."
        ),
        ambiguous=True,
        cautions=(),
        proposes=("deep_health_check",),
        kind="reduced",
        names=predicates.nobody,
    ),
    Row(
        id="U1",
        alarm_says="A confirmed pair has the verdict unattributable or unclear.",
        predicates=(check_is(COMPUTE), verdict_is(UNATTRIBUTABLE, UNCLEAR)),
        meaning="The GPUs that computed the same micro-batch do not agree on an answer.",
        action=(
            "Ambiguous: look at DCGM telemetry and run a deep health check on the nodes involved."
        ),
        ambiguous=True,
        cautions=("Unclear names the target; unattributable names nobody.",),
        proposes=("deep_health_check",),
        kind="ambiguous",
        names=named_by(UNCLEAR),
    ),
)

BY_ID: dict[str, Row] = {one.id: one for one in ROWS}
