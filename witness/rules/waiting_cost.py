"""What does it cost to wait for an hour, and how is that worked out?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECONDS = 3600


@dataclass(frozen=True, slots=True)
class HourOfWaiting:
    """An hour more without a decision; None where it cannot be worked out.

    `kind` "idle": the job stands still and its GPUs do nothing; "at risk": the job runs with the
    suspect in it, and what it computes may have to be computed again; "not known": nobody says
    whether it runs.
    """

    kind: Literal["idle", "at risk", "not known"]
    gpu_hours: float | None
    steps: float | None
    formula: str


def hour_of_waiting(
    gpus: int | None, step_time_s: float | None, running: bool | None
) -> HourOfWaiting:
    """Work out an hour for a job of so many GPUs; `running` None: not known."""
    kind: Literal["idle", "at risk", "not known"] = "not known"
    if running is not None:
        kind = "at risk" if running else "idle"
    hours = None if gpus is None else float(gpus)
    steps = None
    if step_time_s is not None and step_time_s > 0:
        steps = SECONDS / step_time_s
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
