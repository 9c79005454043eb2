"""How sure is it that a GPU is faulty, and how sure at the least that this fleet's passes allow?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.actions.scoring import gpu_history
from app.store import fleet_reading, scored_gpus
from app.store.connection import Connection
from app.store.exposure_reading import DeviceIncident, Stretch
from app.store.gpu_tests import Passed, passed_of
from witness.rules.coverage import bound
from witness.rules.score import STARTING, Event, Parameters, Score, score


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """What the fleet's own passes say about false accusations."""

    audited_gpu_hours: float
    upper: Mapping[str, float]  # by kind, at least the assumed rate; empty: nothing was audited


@dataclass(frozen=True, slots=True)
class Certainty:
    """A GPU's score with the history that made it."""

    score: Score
    history: tuple[Event, ...]


def false_alarms(connection: Connection, by: Parameters = STARTING) -> FalseAlarms:
    """Bound the rate of false accusations of each kind from audited hours and adjudications."""
    hours = fleet_reading.audited_gpu_hours(connection)
    if hours < 1:
        return FalseAlarms(hours, {})
    refuted = fleet_reading.refuted_incidents(connection)
    upper = {}
    for kind, assumed in by.f.items():
        proven = bound(int(hours), refuted.get(kind, 0)).exact
        upper[kind] = max(assumed, proven or assumed)
    return FalseAlarms(hours, upper)


def of_gpus(
    connection: Connection, gpu_ids: Iterable[int], now: datetime, fleet: FalseAlarms
) -> dict[int, Certainty | None]:
    """Score GPUs as of now; None where nothing scored is held against one."""
    wanted = set(gpu_ids)
    if not wanted:
        return {}
    found = scored_gpus.incidents_of(connection, wanted)
    work = scored_gpus.audited_work_of(connection, found.keys()) if found else {}
    tests = passed_of(connection, found.keys())
    return {
        one: _certainty(found.get(one, []), work.get(one, []), tests.get(one, []), now, fleet)
        for one in wanted
    }


def of_gpu(
    connection: Connection, gpu_id: int, now: datetime, fleet: FalseAlarms
) -> Certainty | None:
    """Score one GPU."""
    return of_gpus(connection, [gpu_id], now, fleet)[gpu_id]


def _certainty(
    found: Sequence[DeviceIncident],
    work: Sequence[Stretch],
    passed: Sequence[Passed],
    now: datetime,
    fleet: FalseAlarms,
) -> Certainty | None:
    history = tuple(gpu_history(found, work, now, passed))
    scored = score(history, f_upper=fleet.upper or None)
    return None if scored is None else Certainty(scored, history)
