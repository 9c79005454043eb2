"""Whose telemetry does an alarm ask for where little is known, or too much is said?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.actions.alarm_dossier import read_dossier
from app.actions.telemetry.planning import GPUS_OF_NOBODY, Plan, plan
from app.store import ids
from tests.actions.service import Service
from tests.pages_alarm import documents as d

REDUCTION = {"check": "reduced gradient", "step": 31, "suspect_window": [31, 31]}


def planned(service: Service, layout: dict[str, Any], said: dict[str, Any]) -> Plan:
    *_, last = service.post({"kind": "rank_map", **layout}, {"kind": "alarm", **d.alarm(said)})
    with service.context.store.reading() as connection:
        alarm = ids.read(str(last["id"]))
        dossier = read_dossier(connection, alarm, service.context.now())
    assert dossier is not None
    return plan(dossier)


def test_gpus_that_a_culprit_was_compared_with_are_not_in_doubt(
    serve: Callable[..., Service],
) -> None:
    layout = d.rank_map()
    layout["ranks"][13]["gpu_uuid"] = None
    assert planned(serve(), layout, d.CULPRIT).suspects == ()


def test_no_alarm_asks_for_more_than_a_fixed_number_of_gpus(
    serve: Callable[..., Service],
) -> None:
    layout = {**d.rank_map(160), "gpus_per_node": 100_000}
    made = planned(serve(), layout, REDUCTION)
    assert (len(made.suspects), made.left_out) == (GPUS_OF_NOBODY, 160 - GPUS_OF_NOBODY)
