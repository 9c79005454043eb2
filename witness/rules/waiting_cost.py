"""What does it cost to wait for an hour, and how is that worked out?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECONDS = 3600


Standing = Literal["stopped", "with the suspect", "elsewhere"]
Kind = Literal["idle", "at risk", "elsewhere", "not known"]
_KINDS: dict[Standing, Kind] = {
    "stopped": "idle",
    "with the suspect": "at risk",
    "elsewhere": "elsewhere",
}


@dataclass(frozen=True, slots=True)
class HourOfWaiting:
    """An hour more without a decision; None where it cannot be worked out.

    `kind` "idle": the job stands still and its GPUs do nothing; "at risk": the job runs with the
    suspect in it, and what it computes may have to be computed again; "elsewhere": it runs without
    the suspect, so that waiting costs it nothing; "not known": nobody says whether it runs.
    """

    kind: Kind
    gpu_hours: float | None
    steps: float | None
    formula: str


def hour_of_waiting(
    gpus: int | None, step_time_s: float | None, standing: Standing | None
) -> HourOfWaiting:
    """Work out an hour for a job of so many GPUs; `standing` None: not known how the job stands."""
    kind: Kind = "not known" if standing is None else _KINDS[standing]
    if kind == "elsewhere":
        return HourOfWaiting(kind, 0.0, 0.0, "the job runs without the suspect")
    steps = None
    if step_time_s is not None and step_time_s > 0:
        steps = SECONDS / step_time_s
    hours = None if gpus is None else float(gpus)
    return HourOfWaiting(kind, hours, steps, _formula(gpus, step_time_s, steps))


def _formula(gpus: int | None, step_time_s: float | None, steps: float | None) -> str:
    said = []
    if gpus is None:
        said.append("how many GPUs the job has is not known")
    else:
        said.append(f"{gpus:,} GPUs × 1 h = {gpus:,} GPU-hours")
    if steps is None:
        said.append("the time of a step is not reported")
    else:
        said.append(f"3,600 s / {step_time_s:g} s a step = {steps:,.0f} steps")
    return "; ".join(said)
