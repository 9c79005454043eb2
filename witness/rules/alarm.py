"""What does an alarm document say, and is it well formed?

Source of the shapes: the alarm document of the training job's three checks. Keys that are not
known here are ignored; an unknown check or verdict kind is kept as posted, so that a newer job
is never refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

Pair = tuple[int, int]
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

RANK_LIMIT = 2**31
"""Ranks are stored as 32-bit signed integers."""
STEP_LIMIT = 2**63
"""Steps are stored as 64-bit signed integers."""


class AlarmError(ValueError):
    """An alarm document that cannot be read: which field, what was expected, what was there."""

    def __init__(self, field: str, expected: str, got: str) -> None:
        """Keep the three parts apart, so that an answer can name them."""
        super().__init__(f"{field}: expected {expected}, got {got}")
        self.field = field
        self.expected = expected
        self.got = got


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
        verdicts = {(v.pair, _or_minus(v.third), _or_minus(v.suspect), v.kind) for v in self.verdicts}
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
        raise AlarmError("alarm", "an object", _shown(document))
    get = document.get
    suspects, state = _suspects(document)
    return Alarm(
        _text(get("check"), "alarm.check"),
        _step(get("step"), "alarm.step"),
        _ranks(get("nonfinite"), "alarm.nonfinite"),
        _pairs(get("mismatched_pairs")),
        _ranks(get("culprits"), "alarm.culprits"),
        _verdicts(get("verdicts")),
        suspects,
        state,
        _window(get("suspect_window")),
        _optional_step(get("last_audit_pass"), "alarm.last_audit_pass"),
        _optional_step(get("last_weight_check_pass"), "alarm.last_weight_check_pass"),
        _optional_count(get("world_size"), "alarm.world_size"),
        _optional_count(get("peer_offset"), "alarm.peer_offset"),
        _optional_text(get("kernel_mode"), "alarm.kernel_mode"),
        _schedule(get("schedule")),
        _digests(get("digests")),
    )


def _or_minus(rank: int | None) -> int:
    return -1 if rank is None else rank


def _shown(value: object) -> str:
    """Write what was found the way JSON writes it, cut to a length that fits an answer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    if isinstance(value, str):
        return f'"{value[:60]}"' if len(value) <= 60 else f'"{value[:60]}…"'
    if isinstance(value, int):
        return f"{value}" if -(10**40) < value < 10**40 else "an integer of more than 40 digits"
    if isinstance(value, Mapping):
        return "an object"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else type(value).__name__


def _fail(field: str, expected: str, value: object) -> NoReturn:
    raise AlarmError(field, expected, _shown(value))


def _step(value: object, field: str) -> int:
    if type(value) is int and 0 <= value < STEP_LIMIT:
        return value
    _fail(field, "a step, an integer from 0 to 2^63 - 1", value)


def _optional_step(value: object, field: str) -> int | None:
    return None if value is None else _step(value, field)


def _rank(value: object, field: str) -> int:
    if type(value) is int and 0 <= value < RANK_LIMIT:
        return value
    _fail(field, "a rank, an integer from 0 to 2^31 - 1", value)


def _optional_rank(value: object, field: str) -> int | None:
    return None if value is None else _rank(value, field)


def _optional_count(value: object, field: str) -> int | None:
    if value is None or (type(value) is int and 0 < value < RANK_LIMIT):
        return value  # type: ignore[return-value]
    _fail(field, "a count, an integer from 1 to 2^31 - 1", value)


def _text(value: object, field: str) -> str:
    if isinstance(value, str) and value:
        return value
    _fail(field, "a text that is not empty", value)


def _optional_text(value: object, field: str) -> str | None:
    return None if value is None else _text(value, field)


def _list(value: object, field: str, expected: str) -> list[object] | tuple[object, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    _fail(field, expected, value)


def _ranks(value: object, field: str) -> tuple[int, ...]:
    if not value and (value is None or isinstance(value, list)):
        return ()
    items = _list(value, field, "a list of ranks")
    for position, item in enumerate(items):
        if type(item) is not int or not 0 <= item < RANK_LIMIT:
            _rank(item, f"{field}[{position}]")
    return tuple(items)  # type: ignore[arg-type]


def _pair(value: object, field: str) -> Pair:
    if isinstance(value, list | tuple) and len(value) == 2:
        return _rank(value[0], f"{field}[0]"), _rank(value[1], f"{field}[1]")
    _fail(field, "two ranks, [target, replayer]", value)


def _pairs(value: object) -> tuple[Pair, ...]:
    if not value and (value is None or isinstance(value, list)):
        return ()
    items = _list(value, "alarm.mismatched_pairs", "a list of [target, replayer]")
    return tuple(_pair(item, f"alarm.mismatched_pairs[{place}]") for place, item in enumerate(items))


def _verdict(value: object, field: str) -> Verdict:
    if not isinstance(value, Mapping):
        _fail(field, "an object with pair, third, suspect and kind", value)
    return Verdict(
        _pair(value.get("pair"), f"{field}.pair"),
        _optional_rank(value.get("third"), f"{field}.third"),
        _optional_rank(value.get("suspect"), f"{field}.suspect"),
        _text(value.get("kind"), f"{field}.kind"),
    )


def _verdicts(value: object) -> tuple[Verdict, ...]:
    if not value and (value is None or isinstance(value, list)):
        return ()
    items = _list(value, "alarm.verdicts", "a list of verdicts")
    return tuple(_verdict(item, f"alarm.verdicts[{place}]") for place, item in enumerate(items))


def _suspects(document: Mapping[str, object]) -> tuple[tuple[int, ...] | None, SuspectsState]:
    """Tell null, empty and missing apart: only null means "no strict majority"."""
    if "suspects" not in document:
        return None, "missing" if document.get("check") == WEIGHTS else "not_applicable"
    value = document["suspects"]
    if value is None:
        return None, "null" if document.get("check") == WEIGHTS else "not_applicable"
    named = _ranks(value, "alarm.suspects")
    return named, "named" if named else "empty"


def _window(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    field = "alarm.suspect_window"
    if not isinstance(value, list | tuple) or len(value) != 2:
        _fail(field, "two steps, [first, last]", value)
    first, last = _step(value[0], f"{field}[0]"), _step(value[1], f"{field}[1]")
    if first > last:
        raise AlarmError(field, "a first step that is not after the last", f"[{first}, {last}]")
    return first, last


def _schedule(value: object) -> Schedule | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        _fail("alarm.schedule", "an object of intervals in steps", value)
    return Schedule(
        _optional_step(value.get("audit_every"), "alarm.schedule.audit_every"),
        _optional_step(value.get("check_every"), "alarm.schedule.check_every"),
        _optional_step(value.get("ckpt_every"), "alarm.schedule.ckpt_every"),
        _optional_step(value.get("start_step"), "alarm.schedule.start_step"),
    )


def _digests(value: object) -> Mapping[str, object] | None:
    if value is None or isinstance(value, Mapping):
        return value
    _fail("alarm.digests", "an object with one entry a rank", value)
