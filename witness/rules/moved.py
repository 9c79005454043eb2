"""Which fields of a device moved over the months, from the windows that were kept?

Only windows around alarms are kept, so this counts within windows that overlap or lie weeks apart:
what two of them show is counted once, and how many windows looked at a field stands beside how
often it moved. Counters that the board keeps also tell what happened between two windows, though
not when. More alarms mean more windows: compare devices by share and not by sum.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from witness.rules import words
from witness.rules.amounts import amount
from witness.rules.cleaning import clean
from witness.rules.dcgm_fields import BY_ID
from witness.rules.moments import at
from witness.rules.observations import Observation
from witness.rules.samples import Part, Series


@dataclass(frozen=True, slots=True)
class BoardCounter:
    """First and last reading of one counter that the board keeps, in one window."""

    field_id: int
    part: Part
    first: float
    first_value: float
    last: float
    last_value: float


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of one window of one device: its reading, and the board's own counters."""

    gpu_uuid: str
    start: float
    end: float
    looked_at: tuple[int, ...]
    observations: tuple[Observation, ...]
    board: tuple[BoardCounter, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldMoved:
    """How one field of a device moved.

    `windows` looked at it, in `moved` of them it counted as risen. `times` are when. Observations
    whose times overlap are one, and the largest counts: `amount` is the least that rose inside
    windows, None where nothing is summed; `between` what the board's counter gained between them.
    `field_id` None is the device's silence.
    """

    field_id: int | None
    windows: int
    moved: int
    times: tuple[float, ...]
    amount: float | None
    between: float
    text: str


@dataclass(frozen=True, slots=True)
class DeviceMoved:
    """All that moved on one device, the hardware's own statements first.

    `hours` is the time that its windows cover, overlaps once: outside of it nothing is known.
    """

    gpu_uuid: str
    windows: int
    hours: float
    first: float
    last: float
    fields: tuple[FieldMoved, ...]


def board_counters(series: Iterable[Series]) -> tuple[BoardCounter, ...]:
    """Read first and last value of every counter of a window that the board keeps."""
    found = []
    for one in series:
        if BY_ID[one.field_id].resets == "kept":
            known = clean(one)
            if known.times:
                found.append(
                    BoardCounter(
                        one.field_id,
                        one.part,
                        known.times[0],
                        known.values[0],
                        known.times[-1],
                        known.values[-1],
                    )
                )
    return tuple(found)


def moved(kept: Iterable[Kept]) -> tuple[DeviceMoved, ...]:
    """Sum up each device's windows; devices in the order of their UUIDs."""
    by_device: dict[str, list[Kept]] = {}
    for one in kept:
        by_device.setdefault(one.gpu_uuid, []).append(one)
    return tuple(_device(uuid, by_device[uuid]) for uuid in sorted(by_device))


def _device(uuid: str, windows: list[Kept]) -> DeviceMoved:
    ordered = sorted(windows, key=lambda one: (one.start, one.end))
    between = _between(ordered)
    numbers = {seen.field_id for one in ordered for seen in one.observations if seen.risen} | set(
        between
    )
    fields = [
        _field(number, ordered, 0.0 if number is None else between.get(number, 0.0))
        for number in numbers
    ]
    return DeviceMoved(
        gpu_uuid=uuid,
        windows=len(ordered),
        hours=_covered(ordered) / 3600,
        first=ordered[0].start,
        last=max(one.end for one in ordered),
        fields=tuple(sorted(fields, key=_weight)),
    )


def _weight(one: FieldMoved) -> tuple[bool, int, int]:
    hardware = one.field_id is None or BY_ID[one.field_id].evidence == "hardware"
    return not hardware, -one.moved, -1 if one.field_id is None else one.field_id


def _field(number: int | None, windows: list[Kept], between: float) -> FieldMoved:
    looked = [
        one
        for one in windows
        if number is None
        or number in one.looked_at
        or any(seen.field_id == number for seen in one.observations)
    ]
    risen = [
        seen
        for one in looked
        for seen in one.observations
        if seen.risen and seen.field_id == number
    ]
    once = _once(risen)
    counts = [one.amount for one in once if one.code == "increase" and one.amount is not None]
    summed = sum(counts) if counts else None
    in_windows = sum(
        any(seen.risen and seen.field_id == number for seen in one.observations) for one in looked
    )
    times = tuple(sorted({one.last for one in once if one.last is not None}))
    return FieldMoved(
        field_id=number,
        windows=len(looked),
        moved=in_windows,
        times=times,
        amount=summed,
        between=between,
        text=_text(number, len(looked), in_windows, times, summed, between),
    )


def _once(risen: list[Observation]) -> list[Observation]:
    """Keep one of those that overlap in time: the one with the largest amount."""
    found: list[Observation] = []
    ends = float("-inf")
    for one in sorted(risen, key=lambda seen: (seen.code, seen.part, seen.first or 0.0)):
        start = one.first if one.first is not None else one.last or 0.0
        same = found and (found[-1].code, found[-1].part) == (one.code, one.part)
        if same and start < ends:
            if (one.amount or 0.0) > (found[-1].amount or 0.0):
                found[-1] = one
            ends = max(ends, one.last or start)
        else:
            found.append(one)
            ends = one.last or start
    return found


def _text(
    number: int | None,
    windows: int,
    in_windows: int,
    times: Sequence[float],
    summed: float | None,
    between: float,
) -> str:
    title = "Silence" if number is None else BY_ID[number].title
    text = f"{title}: in {in_windows} of {words.counted(windows, 'window')}"
    if number is not None and summed is not None:
        text += f", by {amount(BY_ID[number], summed)} at least"
    if times:
        text += f", last at {at(times[-1])}"
    if number is not None and between:
        text += f"; {amount(BY_ID[number], between)} more between windows, at unknown times"
    return f"{text}."


def _between(windows: list[Kept]) -> dict[int, float]:
    """Sum what the board's counters gained from the end of one window to the next one's start."""
    by_part: dict[tuple[int, Part], list[BoardCounter]] = {}
    for window in windows:
        for one in window.board:
            by_part.setdefault((one.field_id, one.part), []).append(one)
    gained: dict[int, float] = {}
    for (number, _), counters in by_part.items():
        reached = counters[0].last
        level = counters[0].last_value
        for _, one in pairwise(counters):
            if one.first > reached and one.first_value > level:
                gained[number] = gained.get(number, 0.0) + one.first_value - level
            if one.last > reached:
                reached, level = one.last, one.last_value
    return gained


def _covered(windows: list[Kept]) -> float:
    """Add up the seconds that windows cover, overlaps once."""
    total, reached = 0.0, windows[0].start
    for one in windows:
        total += max(0.0, one.end - max(one.start, reached))
        reached = max(reached, one.end)
    return total
