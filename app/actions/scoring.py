"""How probable is it that a GPU is defective, from what is stored of it?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.store.connection import Connection
from app.store.exposure_reading import DeviceIncident, audited_stretches, device_incidents
from app.store.gpu_tests import Passed, passed_of
from witness.rules.score import CleanHours, Event, Incident, Score, TestPassed, score

# Kinds that say nothing against a device.
UNSCORED = frozenset({"unknown", "incomplete", "reduced", "no_majority"})


class Worked(Protocol):
    """Audited work: of one attempt, or of all attempts of a device."""

    def hours_between(self, since: datetime, until: datetime) -> float:
        """Give the audited hours that fall between two moments."""
        ...


def gpu_history(
    found: Sequence[DeviceIncident],
    stretches: Sequence[Worked],
    until: datetime,
    passed: Sequence[Passed] = (),
) -> list[Event]:
    """Lay incidents, the clean audited hours between them and passed tests into one history."""
    scored = [one for one in found if one.kind not in UNSCORED]
    history: list[Event] = []
    for place, incident in enumerate(scored):
        history.append(Incident(incident.kind))
        later = scored[place + 1].first_at if place + 1 < len(scored) else None
        end = until if later is None else later
        hours = sum(one.hours_between(incident.first_at, end) for one in stretches)
        if hours > 0:
            history.append(CleanHours(hours))
        # How tests and hours of one stretch follow each other makes no difference to the odds.
        history += [
            TestPassed(one.kind.replace("_", " "), one.recall)
            for one in passed
            if incident.first_at <= one.at and (later is None or one.at < later)
        ]
    return history


def score_gpu(connection: Connection, gpu_id: int, until: datetime) -> Score | None:
    """Score a GPU by its incidents and audited hours; None where nothing is held against it."""
    found = [one for one in device_incidents(connection, gpu_id, None) if one.gpu_id == gpu_id]
    if not found:
        return None
    passed = passed_of(connection, [gpu_id]).get(gpu_id, ())
    return score(gpu_history(found, audited_stretches(connection, gpu_id), until, passed))
