"""Which flags does the hardware hold up, and was a temperature at its limit?"""

from collections.abc import Iterator

from witness.rules.amounts import amount
from witness.rules.around import Around
from witness.rules.cleaning import Clean
from witness.rules.dcgm_fields import BY_ID, Field
from witness.rules.moments import at, span
from witness.rules.observations import Observation, When
from witness.rules.xid import RECOVERY_ACTIONS

MARGIN = 153
LIMITS = ((150, 158), (150, 152), (140, 151))
"""A temperature and the field with its limit."""

_RECOVERY, _HEALTH = 1523, 9003
_HEALTH_WORDS = {10.0: "warning", 20.0: "failure"}


def flags(around: Around) -> tuple[Observation, ...]:
    """Read every state of the suspect that is not 0.

    A flag of the hardware counts even where it stood in the first sample: it is true now. That is
    said, and no time is given.
    """
    return tuple(
        seen
        for field, cleans in around.fields("state")
        for one in cleans
        for seen in _set(around, field, one)
    )


def _set(around: Around, field: Field, clean: Clean) -> Iterator[Observation]:
    """Make an observation of the first sample, and of each rise after it."""
    last = 0.0
    for place, (time, value) in enumerate(zip(clean.times, clean.values, strict=True)):
        if value > last:
            before = clean.times[place - 1] if place else None
            yield _observed(around, field, clean, before, time, value)
        last = value


def _observed(
    around: Around, field: Field, clean: Clean, before: float | None, time: float, value: float
) -> Observation:
    when: When = "standing" if before is None else around.window.when(before, time)
    since = f"since the first sample, {at(time)}" if before is None else span(before, time)
    hardware = field.evidence == "hardware"
    watch = dict(clean.series.part).get("watch")
    title = f"{field.title}, {watch}" if watch else field.title
    return Observation(
        code="flag",
        field_id=field.id,
        evidence=field.evidence,
        risen=hardware or when in {"window", "after"},
        when=when,
        text=f"{title}: {_value(field, value)}, {since}."
        + (" When it began is not known." if before is None else ""),
        part=clean.series.part,
        first=before,
        last=time,
        amount=value,
    )


def _value(field: Field, value: float) -> str:
    if field.id == _RECOVERY:
        return RECOVERY_ACTIONS.get(int(value), f"action {value:g}")
    if field.id == _HEALTH:
        return _HEALTH_WORDS.get(value, f"status {value:g}")
    return "yes" if field.high == 1 else amount(field, value)


def at_the_limit(around: Around) -> tuple[Observation, ...]:
    """Say where the hardware's own limit was reached in the suspect window or after it."""
    found = [_reached(around, MARGIN, -1.0, 0.0, "the slowdown temperature")]
    for hot, limit_field in LIMITS:
        limit = _limit(around, limit_field)
        if limit is not None:
            title = f"the {BY_ID[limit_field].title_inside} of {limit:g} °C"
            found.append(_reached(around, hot, 1.0, limit, title))
    return tuple(one for one in found if one is not None)


def _limit(around: Around, field_id: int) -> float | None:
    """Read a limit; one of 0 or less is a margin of a newer part and no temperature."""
    values = [one.values[-1] for one in around.own.get(field_id, ()) if one.values]
    return min((value for value in values if value > 0), default=None)


def _reached(
    around: Around, field_id: int, sign: float, limit: float, title: str
) -> Observation | None:
    """Find the first reading at or beyond a limit after the suspect window began."""
    window = around.window
    beyond = [
        (time, value)
        for one in around.own.get(field_id, ())
        for time, value in zip(one.times, one.values, strict=True)
        if sign * value >= sign * limit
    ]
    inside = sorted(sample for sample in beyond if sample[0] > window.suspect_from)
    if not inside:
        return None
    first, _ = inside[0]
    worst = max(inside, key=lambda sample: sign * sample[1])[1]
    field = BY_ID[field_id]
    return Observation(
        code="limit",
        field_id=field_id,
        evidence="hint",
        risen=True,
        when="window" if first <= window.until else "after",
        text=f"{field.title} reached {title}: {amount(field, worst)}, first at {at(first)}.",
        last=first,
        amount=worst,
    )
