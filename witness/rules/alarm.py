"""What does an alarm document say, and is it well formed?

Source of the shapes: the alarm document of the training job's three checks. Keys that are not
known here are ignored; an unknown check or verdict kind is kept as posted, so that a newer job
is never refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from witness.rules import fields
from witness.rules.fields import AlarmError, Pair
from witness.rules.ring import Audit

__all__ = ["Alarm", "AlarmError", "Pair", "Schedule", "Verdict", "read_alarm"]

Family = Literal["nonfinite", "ring", "weights", "reduced gradient", "unknown"]
SuspectsState = Literal["named", "null", "empty", "missing", "not_applicable"]

COMPUTE = "compute"
WEIGHTS = "weights"
REDUCED = "reduced gradient"

PERSISTENT = "persistent"
TRANSIENT = "transient"
UNCLEAR = "unclear"
REPLAYER = "replayer computed wrong"
UNATTRIBUTABLE = "unattributable"
VERDICT_KINDS = frozenset({PERSISTENT, TRANSIENT, UNCLEAR, REPLAYER, UNATTRIBUTABLE})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of confirming one ambiguous pair `(target, replayer)` in place.

    `third` is None when the document names no third rank, `suspect` when nobody is named.
    """

    pair: Pair
    third: int | None
    suspect: int | None
    kind: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """Intervals of the job's checks in steps; None where the job did not say."""

    audit_every: int | None = None
    check_every: int | None = None
    ckpt_every: int | None = None
    start_step: int | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """One stopped step, as the job described it.

    `mismatched_pairs` are `(target, replayer)`. `last_*_pass` is None when the check never
    passed since the start, or when the document does not say.
    """

    check: str
    step: int
    nonfinite: tuple[int, ...] = ()
    mismatched_pairs: tuple[Pair, ...] = ()
    culprits: tuple[int, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    suspects: tuple[int, ...] | None = None
    suspects_state: SuspectsState = "not_applicable"
    suspect_window: tuple[int, int] | None = None
    last_audit_pass: int | None = None
    last_weight_check_pass: int | None = None
    world_size: int | None = None
    peer_offset: int | None = None
    kernel_mode: str | None = None
    schedule: Schedule | None = None
    digests: Mapping[str, object] | None = None
    further_audits: tuple[Audit, ...] = ()

    def audits(self, offset: int | None) -> tuple[Audit, ...]:
        """List what was compared at the alarm's step: at `offset`, then at others."""
        return (Audit(offset, self.mismatched_pairs), *self.further_audits)

    @property
    def check_family(self) -> Family:
        """Say which check's mark the alarm carries on a chart.

        A ring mismatch outweighs the non-finite gradient that asked for the comparison.
        """
        if self.check == COMPUTE:
            if self.mismatched_pairs or self.culprits or self.verdicts:
                return "ring"
            return "nonfinite" if self.nonfinite else "unknown"
        if self.check == WEIGHTS:
            return "weights"
        return "reduced gradient" if self.check == REDUCED else "unknown"

    def names(self) -> tuple[object, ...]:
        """Give what the alarm names in one spelling, whatever the order it was listed in."""
        verdicts = {
            (v.pair, _or_minus(v.third), _or_minus(v.suspect), v.kind) for v in self.verdicts
        }
        return (
            tuple(sorted(set(self.nonfinite))),
            tuple(sorted(set(self.mismatched_pairs))),
            tuple(sorted(set(self.culprits))),
            tuple(sorted(verdicts)),
            self.suspects_state,
            tuple(sorted(set(self.suspects or ()))),
        )

    def named_ranks(self) -> tuple[int, ...]:
        """List every rank that the alarm holds suspect, sorted, each once."""
        named = {*self.nonfinite, *self.culprits, *(self.suspects or ())}
        named.update(v.suspect for v in self.verdicts if v.suspect is not None)
        return tuple(sorted(named))


def read_alarm(document: Mapping[str, object]) -> Alarm:
    """Read the inner alarm document; raise `AlarmError` naming the first bad field."""
    if not isinstance(document, Mapping):
        fields.fail("alarm", "an object", document)
    get = document.get
    suspects, state = _suspects(document)
    return Alarm(
        fields.text(get("check"), "alarm.check"),
        fields.step(get("step"), "alarm.step"),
        fields.ranks(get("nonfinite"), "alarm.nonfinite"),
        fields.pairs(get("mismatched_pairs"), "alarm.mismatched_pairs"),
        fields.ranks(get("culprits"), "alarm.culprits"),
        _verdicts(get("verdicts")),
        suspects,
        state,
        fields.window(get("suspect_window"), "alarm.suspect_window"),
        fields.optional_step(get("last_audit_pass"), "alarm.last_audit_pass"),
        fields.optional_step(get("last_weight_check_pass"), "alarm.last_weight_check_pass"),
        fields.optional_count(get("world_size"), "alarm.world_size"),
        fields.optional_count(get("peer_offset"), "alarm.peer_offset"),
        fields.optional_text(get("kernel_mode"), "alarm.kernel_mode"),
        _schedule(get("schedule")),
        _digests(get("digests")),
        _further_audits(get("further_audits")),
    )


def _or_minus(rank: int | None) -> int:
    return -1 if rank is None else rank


def _verdict(value: object, field: str) -> Verdict:
    if not isinstance(value, Mapping):
        fields.fail(field, "an object with pair, third, suspect and kind", value)
    return Verdict(
        fields.pair(value.get("pair"), f"{field}.pair"),
        fields.optional_rank(value.get("third"), f"{field}.third"),
        fields.optional_rank(value.get("suspect"), f"{field}.suspect"),
        fields.text(value.get("kind"), f"{field}.kind"),
    )


def _verdicts(value: object) -> tuple[Verdict, ...]:
    listed = fields.items(value, "alarm.verdicts", "a list of verdicts")
    return tuple([_verdict(one, f"alarm.verdicts[{place}]") for place, one in enumerate(listed)])


def _suspects(document: Mapping[str, object]) -> tuple[tuple[int, ...] | None, SuspectsState]:
    """Tell null, empty and missing apart: only null means "no strict majority"."""
    value = document.get("suspects")
    if value is not None:
        named = fields.ranks(value, "alarm.suspects")
        return named, "named" if named else "empty"
    if document.get("check") != WEIGHTS:
        return None, "not_applicable"
    return None, "null" if "suspects" in document else "missing"


def _schedule(value: object) -> Schedule | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        fields.fail("alarm.schedule", "an object of intervals in steps", value)
    return Schedule(
        fields.optional_step(value.get("audit_every"), "alarm.schedule.audit_every"),
        fields.optional_step(value.get("check_every"), "alarm.schedule.check_every"),
        fields.optional_step(value.get("ckpt_every"), "alarm.schedule.ckpt_every"),
        fields.optional_step(value.get("start_step"), "alarm.schedule.start_step"),
    )


def _further_audits(value: object) -> tuple[Audit, ...]:
    field = "alarm.further_audits"
    audits = []
    for place, one in enumerate(fields.items(value, field, "a list of audits")):
        at = f"{field}[{place}]"
        if not isinstance(one, Mapping):
            fields.fail(at, "an object with peer_offset and mismatched_pairs", one)
        offset = fields.optional_count(one.get("peer_offset"), f"{at}.peer_offset")
        pairs = fields.pairs(one.get("mismatched_pairs"), f"{at}.mismatched_pairs")
        audits.append(Audit(offset, pairs))
    return tuple(audits)


def _digests(value: object) -> Mapping[str, object] | None:
    if value is not None and not isinstance(value, Mapping):
        fields.fail("alarm.digests", "an object with one entry a rank", value)
    return value
