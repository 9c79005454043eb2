"""What does one line of the table of DCGM fields hold?"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "last_value", "bit_mask", "window_count", "state"]
"""A counter only grows until it is reset; a gauge is a measurement; a last value is an event's
number that stays; a bit mask is a set; a window count counts over the last minutes; a state is a
flag or a code that stands."""

Level = Literal["basic", "advanced", "extra"]
"""`basic` and `advanced` are what the observability add-on of HyperPod collects; `extra` has to be
added by the operator."""

Group = Literal[
    "temperature",
    "power",
    "clocks",
    "throttling",
    "utilization",
    "memory",
    "ecc",
    "remap",
    "pcie",
    "nvlink",
    "traffic",
    "xid",
    "health",
]
"""Fields that share a chart or stand side by side."""

Evidence = Literal["hardware", "hint", "context"]
"""`hardware`: one rise is a statement of the hardware about itself. `hint`: a rise makes a fault
likelier and has other causes. `context`: never evidence, shown so that the rest can be read."""

Resets = Literal["driver", "kept", "exporter", "none"]
"""What sets a counter back: a driver reload or GPU reset; nothing (the board keeps it); a start of
the exporter; or it does not count."""

EXACT_COUNT = 2.0**53
"""Above, a float64 no longer counts in ones; no real error counter gets near."""
TEN_YEARS_NS = 3.2e17
"""A counter of nanoseconds or of millijoules at 10 W cannot have got further."""


@dataclass(frozen=True, slots=True)
class Family:
    """What several fields have in common.

    `meaning` is a key of the meanings. `direction` is 1 where a change upward is the bad one, -1
    downward, 0 where neither is looked for. `step` is the smallest change a sensor can show.
    `detail` marks parts of another field's total.
    """

    kind: Kind
    group: Group
    meaning: str
    unit: str = ""
    low: float = 0.0
    high: float = EXACT_COUNT
    evidence: Evidence = "context"
    resets: Resets = "none"
    direction: int = 0
    step: float = 1.0
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One field: its number, its names with the present one first, what it is, where it comes in.

    Names stand without their prefix `DCGM_FI_`, apart from those of the exporter's own metrics.
    """

    id: int
    names: str
    title: str
    level: Level
    family: Family
