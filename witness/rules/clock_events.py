"""Which clock events point at the hardware, and when was the suspect held back by one?

The value is a set of bits; that it is not 0 says nothing. Idle, a setting, the power cap and sync
boost are how a GPU works. Hardware slowdown, hardware thermal slowdown and the power brake are the
board protecting itself, software thermal slowdown the driver doing so. They count where they begin
in the suspect window or after it, unless they come and go all the time or on most GPUs alike. One
that was active before and still is counts only against enough GPUs that compare and have it not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from witness.rules import words
from witness.rules.around import Around
from witness.rules.bursts import burst
from witness.rules.cleaning import Clean
from witness.rules.levels import FEWEST_PEERS
from witness.rules.moments import at
from witness.rules.observations import Observation, When


@dataclass(frozen=True, slots=True)
class ClockEvent:
    """One bit: the exporter's name for it, ours, and whether it points at the hardware."""

    bit: int
    name: str
    title: str
    hardware: bool


CLOCK_EVENTS: tuple[ClockEvent, ...] = (
    ClockEvent(0x1, "gpu_idle", "idle", False),
    ClockEvent(0x2, "clocks_setting", "limited by a clock setting", False),
    ClockEvent(0x4, "power_cap", "software power cap", False),
    ClockEvent(0x8, "hw_slowdown", "hardware slowdown", True),
    ClockEvent(0x10, "sync_boost", "sync boost", False),
    ClockEvent(0x20, "sw_thermal", "software thermal slowdown", True),
    ClockEvent(0x40, "hw_thermal", "hardware thermal slowdown", True),
    ClockEvent(0x80, "hw_power_brake", "hardware power brake", True),
    ClockEvent(0x100, "display_clocks", "limited by display clocks", False),
)

BY_NAME: Mapping[str, ClockEvent] = MappingProxyType({one.name: one for one in CLOCK_EVENTS})

MASK_FIELD = 112


def events_in(value: float) -> tuple[ClockEvent, ...]:
    """List the clock events in one value of the bit mask; bits without a name are left away."""
    mask = int(value)
    return tuple(one for one in CLOCK_EVENTS if mask & one.bit)


def describe(value: float) -> str:
    """Put one value of the bit mask into words."""
    return words.listed([one.title for one in events_in(value)]) if value else "none"


def clock_events(around: Around) -> tuple[Observation, ...]:
    """Read the bit mask of the suspect; one observation for each event that was active."""
    cleans = around.own.get(MASK_FIELD, ())
    return tuple(
        seen
        for event in CLOCK_EVENTS
        for one in cleans
        if (seen := _observed(around, one, event)) is not None
    )


def _observed(around: Around, clean: Clean, event: ClockEvent) -> Observation | None:
    window = around.window
    runs = _runs(clean, event)
    if not runs:
        return None
    before = [run for run in runs if run.first <= window.suspect_from]
    inside = runs[len(before) :]
    standing = bool(before) and before[-1].last > window.suspect_from
    shown = inside or before
    when: When = "standing" if standing else "before"
    if inside:
        when = "window" if inside[0].first <= window.until else "after"
    asked = event.hardware and (bool(inside) or standing)
    peers = around.of_peers(MASK_FIELD) if asked else ()
    alike, neighbours = _neighbours(around, peers, event)
    lengths = {run.first: float(run.samples) for run in runs}
    habit = burst(clean, lengths, window).habit
    samples = sum(run.samples for run in shown)
    sentences = (
        f"Clock event “{event.title}” in {words.counted(samples, 'sample')}, "
        f"first at {at(shown[0].first)}.",
        _before(before) if inside else "",
        "It is still active in the suspect window." if standing and not inside else "",
        neighbours,
        "" if event.hardware else "Normal at work; it says nothing about faults.",
    )
    return Observation(
        code="clock_event",
        field_id=MASK_FIELD,
        evidence="hint" if event.hardware else "context",
        risen=asked and not alike and (not habit if inside else len(peers) >= FEWEST_PEERS),
        when=when,
        text=" ".join(one for one in sentences if one),
        part=(*clean.series.part, ("event", event.name)),
        first=max((time for time in clean.times if time < shown[0].first), default=None),
        last=shown[0].first,
        amount=float(samples),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """Samples in a row in which an event was active."""

    first: float
    last: float
    samples: int


def _runs(clean: Clean, event: ClockEvent) -> list[_Run]:
    """Find when the event began, and for how many samples it lasted each time."""
    found = []
    samples = zip(clean.times, clean.values, strict=True)
    for active, group in groupby(samples, key=lambda sample: bool(int(sample[1]) & event.bit)):
        if active:
            times = [time for time, _ in group]
            found.append(_Run(times[0], times[-1], len(times)))
    return found


def _before(runs: list[_Run]) -> str:
    if not runs:
        return ""
    samples = sum(run.samples for run in runs)
    times = words.counted(len(runs), "time")
    return f"It began {times} before as well, {words.counted(samples, 'sample')} in all."


def _neighbours(
    around: Around, peers: tuple[tuple[Clean, ...], ...], event: ClockEvent
) -> tuple[bool, str]:
    """Tell whether most GPUs that compare were held back alike, and say how many were."""
    held = sum(
        any(
            time > around.window.suspect_from and int(value) & event.bit
            for one in parts
            for time, value in zip(one.times, one.values, strict=True)
        )
        for parts in peers
    )
    if not peers:
        return False, ""
    if not held:
        return False, f"None of the {words.counted(len(peers), 'GPU')} that compare had it."
    alike = len(peers) >= FEWEST_PEERS and 2 * held >= len(peers)
    text = f"{held} of {len(peers)} GPUs that compare had it as well"
    return alike, f"{text}, so it is not particular to this one." if alike else f"{text}."
