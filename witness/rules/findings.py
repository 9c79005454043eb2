"""What does an alarm establish about each rank, and what takes force away from it?

One finding a row of the decision table and named rank. Pure: the same alarm and map always give
the same findings in the same order.
"""

from dataclasses import dataclass, replace

from witness.rules import guards, words
from witness.rules.alarm import (
    COMPUTE,
    PERSISTENT,
    REDUCED,
    REPLAYER,
    TRANSIENT,
    UNATTRIBUTABLE,
    UNCLEAR,
    VERDICT_KINDS,
    WEIGHTS,
    Alarm,
    Pair,
    Verdict,
)
from witness.rules.decision_table import BY_ID
from witness.rules.guards import Caution
from witness.rules.predicates import suspect_of, uncovered_nonfinite
from witness.rules.setting import Setting
from witness.rules.topology import Topology

__all__ = ["Caution", "Finding", "findings"]

NO_RECOMMENDATION = "No recommendation: a person must look."

_ROW_OF = {PERSISTENT: "R2", TRANSIENT: "R3", REPLAYER: "R4", UNATTRIBUTABLE: "U1", UNCLEAR: "U1"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table for one rank.

    `rule` is None where no row covers what was posted. `rank` is None where nobody is named;
    `involved` then lists the ranks concerned, and () means every rank of the job. `kind` keys
    the incident and the score: persistent, culprit, weights, transient, replayer, ambiguous,
    unclear, nonfinite, no_majority, reduced, incomplete or unknown.
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
    if alarm.check == COMPUTE:
        found = _compute(alarm, setting)
    elif alarm.check == WEIGHTS:
        found = _weights(alarm)
    elif alarm.check == REDUCED:
        found = [_by_row("G1", None)]
    else:
        text = f"The check “{words.cut(alarm.check)}” is not known here."
        found = [_no_row("unknown_check", text, "unknown")]
    job_wide = guards.half_job(setting)
    of_alarm = (*guards.window_cautions(alarm), *guards.digest_cautions(setting))
    return tuple(_guarded(one, setting, job_wide, of_alarm) for one in found)


def _by_row(row_id: str, rank: int | None, involved: tuple[int, ...] = ()) -> Finding:
    row = BY_ID[row_id]
    return Finding(
        rule=row.id,
        meaning=row.meaning,
        action=row.action,
        ambiguous=row.ambiguous,
        rank=rank,
        cautions=(),
        kind=row.kind,
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
        involved=involved,
    )


def _weights(alarm: Alarm) -> list[Finding]:
    if alarm.suspects_state == "named":
        return [_by_row("W1", rank) for rank in sorted(set(alarm.suspects or ()))]
    if alarm.suspects_state == "null":
        return [_by_row("W2", None)]
    if alarm.suspects_state == "empty":
        text = "The check says that weights differ but names nobody."
        return [_no_row("suspects_empty", text, "incomplete")]
    text = "The alarm is incomplete: a weights alarm that does not say whom it suspects."
    return [_no_row("suspects_missing", text, "incomplete")]


def _compute(alarm: Alarm, setting: Setting) -> list[Finding]:
    found = [_culprit(rank, setting) for rank in sorted(set(alarm.culprits))]
    found += [_verdict(one, setting) for one in sorted(set(alarm.verdicts), key=_order)]
    found += [_by_row("N1", rank) for rank in uncovered_nonfinite(alarm)]
    found += [_loose(pair, setting) for pair in setting.loose_pairs]
    if not found:
        text = "The alarm says that a computation was wrong but names no rank and no pair."
        found.append(_no_row("names_nothing", text, "incomplete"))
    return found


def _order(verdict: Verdict) -> tuple[Pair, str, int, int]:
    suspect, third = verdict.suspect, verdict.third
    return (
        verdict.pair,
        verdict.kind,
        -1 if suspect is None else suspect,
        -1 if third is None else third,
    )


def _culprit(rank: int, setting: Setting) -> Finding:
    finding = _by_row("R1", rank)
    doubts = guards.pair_doubts(setting, rank)
    return _doubted(replace(finding, involved=setting.peers(rank)), doubts) if doubts else finding


def _verdict(verdict: Verdict, setting: Setting) -> Finding:
    trio = (*verdict.pair, verdict.third, verdict.suspect)
    members = tuple(dict.fromkeys(rank for rank in trio if rank is not None))
    if verdict.kind not in VERDICT_KINDS:
        text = f"The verdict “{words.cut(verdict.kind)}” is not known here."
        return _no_row("unknown_verdict", text, "unknown", verdict.suspect, members)
    rank = None if verdict.kind == UNATTRIBUTABLE else suspect_of(verdict)
    finding = _by_row(_ROW_OF[verdict.kind], rank, members)
    if verdict.kind == UNCLEAR:
        finding = replace(finding, kind="unclear")
    doubts = guards.verdict_doubts(verdict, setting)
    return _doubted(finding, doubts) if doubts else finding


def _doubted(finding: Finding, doubts: tuple[Caution, ...]) -> Finding:
    """Turn a finding ambiguous: it counts as a member of a pair, not as a verdict."""
    return replace(
        finding, ambiguous=True, blocks_replacement=True, kind="ambiguous", cautions=doubts
    )


def _loose(pair: Pair, setting: Setting) -> Finding:
    text = (
        f"Rank {pair[1]} replayed rank {pair[0]} and differed, "
        "and neither culprit nor verdict covers the pair."
    )
    finding = _no_row("pair_not_confirmed", text, "ambiguous", None, pair)
    return replace(finding, cautions=(*finding.cautions, *guards.loose_caution(setting, pair)))


def _guarded(
    finding: Finding, setting: Setting, job_wide: tuple[Caution, ...], of_alarm: tuple[Caution, ...]
) -> Finding:
    """Attach what the layout, the ring and the size of the job say against a finding."""
    of_ring = finding.rule in {"R1", *_ROW_OF.values()} or finding.kind == "ambiguous"
    ring = guards.ring_cautions(setting, finding.involved) if of_ring else ()
    if finding.rule == "R1" and finding.rank is not None:
        ring += guards.culprit_cautions(setting, finding.rank)
    if finding.rule == "W1":
        ring += guards.replica_cautions(setting)
    place = guards.place_cautions(setting, finding.rank)
    cautions = (*finding.cautions, *ring, *job_wide, *of_alarm, *place)
    return replace(
        finding,
        cautions=cautions,
        blocks_replacement=finding.blocks_replacement
        or any(one.code in guards.BLOCKING for one in cautions),
        software_first=bool(job_wide),
    )
