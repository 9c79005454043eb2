"""What does an alarm establish about each rank, and what takes force away from it?

One finding a row of the decision table and named rank. Pure: the same alarm and map always give
the same findings in the same order.
"""

from dataclasses import dataclass, replace

from witness.rules import guards
from witness.rules.alarm import (
    PERSISTENT,
    REPLAYER,
    TRANSIENT,
    UNATTRIBUTABLE,
    UNCLEAR,
    VERDICT_KINDS,
    Alarm,
    Verdict,
)
from witness.rules.decision_table import BY_ID, Row, suspect_of, uncovered_nonfinite
from witness.rules.guards import Caution, Setting
from witness.rules.topology import Topology

__all__ = ["Caution", "Finding", "findings"]

NO_RECOMMENDATION = "No recommendation: a person must look."

_ROW_OF = {PERSISTENT: "R2", TRANSIENT: "R3", REPLAYER: "R4", UNATTRIBUTABLE: "U1", UNCLEAR: "U1"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table for one rank.

    `rule` is None where no row covers what was posted. `rank` is None where nobody is named;
    `involved` then lists the ranks concerned, and () means every rank of the job. `kind` keys
    the incident and the score.
    """

    rule: str | None
    meaning: str
    action: str
    ambiguous: bool
    rank: int | None
    cautions: tuple[Caution, ...]
    kind: str
    blocks_replacement: bool = False
    software_first: bool = False
    involved: tuple[int, ...] = ()

    def has(self, code: str) -> bool:
        """Tell whether a caution of this code is attached."""
        return any(caution.code == code for caution in self.cautions)


def findings(alarm: Alarm, topology: Topology | None = None) -> tuple[Finding, ...]:
    """Read an alarm by the table and the guards above it; always at least one finding."""
    setting = Setting.of(alarm, topology)
    if alarm.check == "weights":
        found = _weights(alarm)
    elif alarm.check == "reduced gradient":
        found = [_by_row("G1", None)]
    elif alarm.check == "compute":
        found = _compute(alarm, setting)
    else:
        found = [_no_row("unknown_check", f"The check “{alarm.check}” is not known here.", "unknown")]
    return tuple(_guarded(one, setting) for one in found)


def _by_row(
    row_id: str,
    rank: int | None,
    involved: tuple[int, ...] = (),
    cautions: tuple[Caution, ...] = (),
    kind: str | None = None,
) -> Finding:
    row: Row = BY_ID[row_id]
    return Finding(
        rule=row.id,
        meaning=row.meaning,
        action=row.action,
        ambiguous=row.ambiguous,
        rank=rank,
        cautions=cautions,
        kind=kind or row.kind,
        blocks_replacement=row.ambiguous,
        involved=involved if involved or rank is None else (rank,),
    )


def _no_row(
    code: str, meaning: str, kind: str, rank: int | None = None, involved: tuple[int, ...] = ()
) -> Finding:
    return Finding(
        rule=None,
        meaning=meaning,
        action=NO_RECOMMENDATION,
        ambiguous=True,
        rank=rank,
        cautions=(Caution(code, meaning),),
        kind=kind,
        blocks_replacement=True,
        involved=involved if involved or rank is None else (rank,),
    )


def _weights(alarm: Alarm) -> list[Finding]:
    state = alarm.suspects_state
    if state == "named":
        return [_by_row("W1", rank) for rank in sorted(set(alarm.suspects or ()))]
    if state == "null":
        return [_by_row("W2", None)]
    if state == "empty":
        text = "The check says that weights differ but names nobody."
        return [_no_row("suspects_empty", text, "incomplete")]
    text = "The alarm is incomplete: a weights alarm without its suspects."
    return [_no_row("suspects_missing", text, "incomplete")]


def _compute(alarm: Alarm, setting: Setting) -> list[Finding]:
    found = [_culprit(rank, setting) for rank in sorted(set(alarm.culprits))]
    found += [_verdict(one, setting) for one in sorted(set(alarm.verdicts), key=_order)]
    found += [_by_row("N1", rank) for rank in uncovered_nonfinite(alarm)]
    found += [_loose(pair) for pair in setting.loose_pairs]
    if not found:
        text = "The alarm says that a computation was wrong but names no rank and no pair."
        found.append(_no_row("names_nothing", text, "incomplete"))
    return found


def _order(verdict: Verdict) -> tuple[object, ...]:
    return verdict.pair, verdict.kind, -1 if verdict.suspect is None else verdict.suspect


def _culprit(rank: int, setting: Setting) -> Finding:
    finding = _by_row("R1", rank)
    two = guards.two_nodes(setting, rank)
    if two is None:
        return finding
    return replace(finding, ambiguous=True, kind="ambiguous", cautions=(two,), involved=setting.peers(rank))


def _verdict(verdict: Verdict, setting: Setting) -> Finding:
    members = _members(verdict)
    if verdict.kind not in VERDICT_KINDS:
        text = f"The verdict “{verdict.kind}” is not known here."
        return _no_row("unknown_verdict", text, "unknown", verdict.suspect, members)
    rank = None if verdict.kind == UNATTRIBUTABLE else suspect_of(verdict)
    kind = "unclear" if verdict.kind == UNCLEAR else None
    finding = _by_row(_ROW_OF[verdict.kind], rank, members, kind=kind)
    doubts = guards.verdict_doubts(verdict, setting)
    if not doubts:
        return finding
    return replace(finding, ambiguous=True, blocks_replacement=True, cautions=doubts)


def _members(verdict: Verdict) -> tuple[int, ...]:
    trio = (*verdict.pair, verdict.third, verdict.suspect)
    return tuple(dict.fromkeys(rank for rank in trio if rank is not None))


def _loose(pair: tuple[int, int]) -> Finding:
    text = f"Rank {pair[1]} replayed rank {pair[0]} and differed, and no culprit or verdict covers the pair."
    return _no_row("pair_not_confirmed", text, "ambiguous", None, pair)


def _guarded(finding: Finding, setting: Setting) -> Finding:
    """Attach what the layout, the ring and the size of the job say against a finding."""
    ring = guards.ring_cautions(setting, finding.involved) if _of_ring(finding) else ()
    if finding.rule == "R1" and finding.rank is not None:
        ring += guards.culprit_cautions(setting, finding.rank)
    share = guards.half_job(setting)
    place = guards.place_cautions(setting, finding.rank)
    cautions = (*finding.cautions, *ring, *share, *place)
    blocks = any(one.code in guards.BLOCKING for one in cautions)
    return replace(
        finding,
        cautions=cautions,
        blocks_replacement=finding.blocks_replacement or blocks,
        software_first=bool(share),
    )


def _of_ring(finding: Finding) -> bool:
    return finding.rule in {"R1", "R2", "R3", "R4", "U1"} or finding.kind == "ambiguous"
