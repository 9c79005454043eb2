"""What does the telemetry of one GPU say around one alarm?

Four answers: risen, nothing found, not collected, refused. None of them clears a GPU: the counters
see memory, links, power and heat, and none sees a wrong product. A reading can add weight to an
alarm and never takes any.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from witness.rules import words
from witness.rules.amounts import amount, percent
from witness.rules.around import Around, around
from witness.rules.cleaning import MarkKind, marked
from witness.rules.clock_events import clock_events
from witness.rules.counter_rises import counter_rises
from witness.rules.dcgm_fields import BY_ID, FIELDS, Field
from witness.rules.flags import at_the_limit, flags
from witness.rules.levels import NotJudged, Shift, shift
from witness.rules.moments import span
from witness.rules.observations import (
    FALSE_ALARMS,
    Missing,
    MissingWhy,
    Observation,
    Reading,
    Refusal,
    Source,
    Status,
    Window,
)
from witness.rules.presence import notes_on_presence, presence
from witness.rules.samples import Series
from witness.rules.xid_events import xid_events

__all__ = [
    "Missing",
    "Observation",
    "Reading",
    "Refusal",
    "Source",
    "Status",
    "Window",
    "missing_in_words",
    "read",
]

_WHY: Mapping[MissingWhy, str] = MappingProxyType(
    {
        "refused": "the source did not answer for it",
        "disabled": "the add-on is set to collect nothing from GPUs",
        "basic_level": "collected at the advanced level only",
        "not_in_add_on": "in neither level of the add-on, an operator must add it",
        "absent": "no reading in the suspect window or after it",
        "no_value": "every sample says “no value”",
    }
)

_EVIDENCE = ("hardware", "hint", "context")
_WHEN = ("window", "after", "standing", "before", "unknown")


def read(
    window: Window,
    suspect: str,
    series: Iterable[Series],
    *,
    node: Sequence[str] = (),
    ring: Sequence[str] = (),
    source: Source | None = None,
    further: Sequence[Observation] = (),
) -> Reading:
    """Read one GPU's telemetry around one alarm.

    `suspect`, `node` and `ring` are canonical UUIDs from the rank map of the alarm's attempt: the
    GPU, the GPUs of its node, the GPUs of the same index on other nodes. `series` may hold more
    GPUs; only these are read. `further` are observations from elsewhere (log lines, the node's
    labels) that stand and count beside them. The order of the series changes nothing.
    """
    known = around(window, suspect, series, node, ring, source)
    levels, not_judged = _levels(known)
    observations = (
        *presence(known),
        *counter_rises(known),
        *flags(known),
        *xid_events(known),
        *clock_events(known),
        *at_the_limit(known),
        *levels,
        *further,
    )
    looked_at = _looked_at(known)
    missing = _missing(known, looked_at)
    ordered = tuple(sorted(observations, key=_order))
    status = _status(known, ordered, looked_at)
    return Reading(
        gpu_uuid=suspect,
        status=status,
        headline=_headline(known, status, ordered, looked_at, missing),
        observations=ordered,
        looked_at=looked_at,
        missing=missing,
        notes=(*notes_on_presence(known), *_notes(known, not_judged)),
        dropped=sum(one.dropped for parts in known.own.values() for one in parts),
    )


def missing_in_words(missing: Sequence[Missing]) -> tuple[str, ...]:
    """Say which fields were missing, one sentence a reason."""
    return tuple(
        f"Missing, {_WHY[why]}: {words.listed(titles, 40)}."
        for why in _WHY
        if (titles := [BY_ID[one.field_id].title_inside for one in missing if one.why == why])
    )


def _levels(known: Around) -> tuple[tuple[Observation, ...], tuple[NotJudged, ...]]:
    """Compare each level of the GPU as a whole; instances of a split GPU have no like."""
    found: list[Shift] = []
    not_judged: list[NotJudged] = []
    for field, cleans in known.fields("gauge"):
        whole = [one for one in cleans if not one.series.part and one.times]
        peers = [one for parts in known.of_peers(field.id) for one in parts if not one.series.part]
        for one in whole:
            result = shift(one, peers, known.window)
            if isinstance(result, Shift):
                found.append(result)
            else:
                not_judged.append(result)
    return tuple(_shifted(one, len(found)) for one in found if one.chance < 1), tuple(not_judged)


def _shifted(one: Shift, tested: int) -> Observation:
    field = BY_ID[one.field_id]
    chance = min(1.0, one.chance * tested)
    word = "above" if field.direction > 0 else "below"
    return Observation(
        code="level",
        field_id=field.id,
        evidence="hint",
        risen=chance <= FALSE_ALARMS,
        when="window",
        text=(
            f"{field.title} {amount(field, one.during)} after {amount(field, one.before)}: "
            f"{amount(field, one.residual)} {word} what its past and {one.peers} other GPUs "
            f"explain, {span(one.first, one.last)}. The largest such difference elsewhere is "
            f"{amount(field, one.others)}; by chance as much in at most {percent(chance)} of "
            "readings."
        ),
        first=one.first,
        last=one.last,
        amount=one.residual,
        chance=chance,
    )


def _order(one: Observation) -> tuple[bool, int, int, int, tuple[tuple[str, str], ...], float]:
    return (
        not one.risen,
        _EVIDENCE.index(one.evidence),
        _WHEN.index(one.when),
        -1 if one.field_id is None else one.field_id,
        one.part,
        0.0 if one.last is None else one.last,
    )


def _looked_at(known: Around) -> tuple[int, ...]:
    """List the fields that could show something and have a reading from the window on."""
    return tuple(
        sorted(
            number
            for number, parts in known.own.items()
            if BY_ID[number].is_evidence
            and any(one.times and one.times[-1] > known.window.suspect_from for one in parts)
        )
    )


def _missing(known: Around, looked_at: tuple[int, ...]) -> tuple[Missing, ...]:
    advanced = any(
        BY_ID[number].level == "advanced" for fields in known.by_gpu.values() for number in fields
    )
    found = []
    for field in FIELDS:
        if field.is_evidence and not field.detail and field.id not in looked_at:
            why = _why(known, field, advanced)
            found.append(Missing(field.id, why, f"{field.title}: {_WHY[why]}."))
    return tuple(found)


def _why(known: Around, field: Field, advanced_seen: bool) -> MissingWhy:
    parts = known.own.get(field.id, ())
    if any(one.dropped for one in parts) and not any(one.times for one in parts):
        return "no_value"
    if known.source.refusal(field.id) is not None:
        return "refused"
    if not parts and known.source.level == "disabled":
        return "disabled"
    if parts or field.level == "basic":
        return "absent"
    if field.level == "extra":
        return "not_in_add_on"
    level = known.source.level or ("advanced" if advanced_seen else "basic")
    return "absent" if level == "advanced" else "basic_level"


def _status(
    known: Around, observations: tuple[Observation, ...], looked_at: tuple[int, ...]
) -> Status:
    if any(one.risen for one in observations):
        return "risen"
    if looked_at:
        return "nothing_found"
    return "refused" if known.source.refusals else "not_collected"


def _headline(
    known: Around,
    status: Status,
    observations: tuple[Observation, ...],
    looked_at: tuple[int, ...],
    missing: tuple[Missing, ...],
) -> str:
    fields = words.counted(len(looked_at), "field")
    if status == "risen":
        risen = [one for one in observations if one.risen]
        more = f" And {len(risen) - 1} more." if len(risen) > 1 else ""
        return f"{risen[0].text}{more}"
    if status == "nothing_found":
        verb = "was" if len(looked_at) == 1 else "were"
        expected = sum(one.why != "not_in_add_on" for one in missing)
        return (
            f"Nothing found in the {fields} that {verb} looked at; {expected} that the add-on can "
            "collect were missing. That clears nothing."
        )
    if status == "refused":
        return f"The source refused: {known.source.refusals[0].why}"
    return (
        "Not collected: no field of this GPU that can show something has a reading in the suspect "
        "window or after it. Nothing is known."
    )


def _notes(known: Around, not_judged: tuple[NotJudged, ...]) -> tuple[str, ...]:
    found = [f"The source said: {words.cut(text, 200)}" for text in known.source.warnings]
    found += [
        f"Not answered: {words.cut(one.why, 200)}"
        for one in known.source.refusals
        if one.field_ids is not None
    ]
    marks: dict[MarkKind, int] = {}
    for parts in known.own.values():
        for one in parts:
            for mark in one.marks:
                marks[mark.kind] = marks.get(mark.kind, 0) + mark.count
    found += [f"{marked(kind, count)}." for kind, count in sorted(marks.items())]
    reasons: dict[str, list[str]] = {}
    for level in not_judged:
        reasons.setdefault(level.why, []).append(BY_ID[level.field_id].title_inside)
    found += [f"Not compared, {why}: {words.listed(who)}." for why, who in sorted(reasons.items())]
    instances = {
        dict(one.series.part)["mig"]
        for parts in known.own.values()
        for one in parts
        if "mig" in dict(one.series.part)
    }
    if instances:
        found.append(
            f"The GPU is split (MIG) into {words.counted(len(instances), 'instance')} that report; "
            "each is read by itself, and levels are not compared."
        )
    return tuple(found)
