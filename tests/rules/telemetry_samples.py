"""Which samples do the tests of telemetry share, and how do they make their own?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from witness.rules.samples import Joined, Part, Series, from_prometheus, join
from witness.rules.telemetry import Observation, Reading, Window, read

DATA = Path(__file__).parent.parent / "data" / "telemetry"

ALARM = 1_772_446_500.0
"""2026-03-02 10:15:00 UTC, in all recorded answers."""

SUSPECT = "GPU-a0000002-1111-4222-8333-000000000005"


def gpu(index: int, node: int = 2) -> str:
    """Name a GPU of the invented fleet."""
    return f"GPU-a{node:07d}-1111-4222-8333-{index:012d}"


NODE = tuple(gpu(index) for index in range(8))


def recorded(name: str) -> Joined:
    """Read and join one recorded answer."""
    document = json.loads((DATA / f"{name}.json").read_text())
    return join(from_prometheus(one["metric"], one["values"]) for one in document["data"]["result"])


def series(
    field_id: int,
    values: Sequence[float],
    *,
    uuid: str = SUSPECT,
    start: float = ALARM - 3600,
    step: float = 15.0,
    part: Part = (),
) -> Series:
    """Make a series with a sample every `step` seconds."""
    times = tuple(start + step * place for place in range(len(values)))
    return Series(uuid, field_id, part, times, tuple(float(value) for value in values))


def over_time(
    field_id: int,
    value_at: Callable[[float], float],
    *,
    uuid: str = SUSPECT,
    start: float = ALARM - 3600,
    end: float = ALARM + 600,
    step: float = 15.0,
    part: Part = (),
) -> Series:
    """Make a series from a function of time."""
    count = int((end - start) // step) + 1
    values = [value_at(start + step * place) for place in range(count)]
    return series(field_id, values, uuid=uuid, start=start, step=step, part=part)


WINDOW = Window(ALARM - 3600, ALARM - 120, ALARM, ALARM + 600)
RECORDED = Window(ALARM - 600, ALARM - 120, ALARM, ALARM + 900)


def reading(found: Sequence[Series], window: Window = WINDOW, **more: object) -> Reading:
    """Read the suspect's telemetry."""
    return read(window, SUSPECT, found, **more)  # type: ignore[arg-type]


def only(got: Reading, code: str) -> Observation:
    """Give the one observation of this kind."""
    (one,) = (observation for observation in got.observations if observation.code == code)
    return one


def steps(field_id: int, *changes: tuple[float, float], uuid: str = SUSPECT) -> Series:
    """Make a series that takes each value from a time (against the alarm) on; 0 before."""

    def value(time: float) -> float:
        return next((v for at, v in reversed(changes) if time >= ALARM + at), 0.0)

    return over_time(field_id, value, uuid=uuid)
