"""Do two hours of a node's exporter, with a fault in them, come to what an operator must see?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from app.store import ids, telemetry_kept
from tests.actions.service import Service
from tests.doubles.dcgm_exporter import faults
from tests.doubles.dcgm_exporter.node import Node, Style
from tests.doubles.dcgm_exporter.over_http import history
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus
from tests.telemetry.conftest import ALARM_AT, post_job, rounds

SUSPECT = 5  # rank 13, the culprit of the alarm, on the second node
BEFORE_S = 2 * 3600.0
FIRST = ALARM_AT - BEFORE_S
FAULT = BEFORE_S - 45.0  # seconds after the first sample, in the suspect window


def stored(
    prometheus: Prometheus, script: Iterable[faults.Event], style: Style | None = None
) -> None:
    """Store what a scrape every 30 s would have stored until ten minutes after the alarm."""
    node = Node([d.gpu(rank) for rank in range(8, 16)], d.node(8), style or Style(), script)
    prometheus.write(history(node, [FIRST + 30.0 * place for place in range(260)]))


def reading(service: Service) -> telemetry_kept.Kept:
    alarm = post_job(service)
    rounds(service)
    with service.context.store.reading() as connection:
        (found,) = telemetry_kept.readings_of_alarms(connection, [ids.read(alarm)])
    return found


def risen(found: telemetry_kept.Kept) -> dict[tuple[str, int | None], dict[str, Any]]:
    seen = found.reading["observations"]
    return {(one["code"], one["field_id"]): one for one in seen if one["risen"]}


CASES: list[tuple[Iterable[faults.Event], set[tuple[str, int | None]]]] = [
    (faults.lost(SUSPECT, FAULT), {("silent", None)}),
    (faults.overheating(SUSPECT, FAULT - 60, FAULT + 600),
     {("increase", 241), ("clock_event", 112), ("level", 150), ("level", 100)}),
    ([*faults.driver_reload(FAULT), *faults.exporter_restart(FAULT + 60, 120.0),
      *faults.pod_moves(range(8), "train-worker-7", FAULT + 200)], set()),
    # As it is everywhere: what happens to all alike is not particular to this one.
    ([*faults.idle(range(8), FAULT),
      *(one for gpu in range(8) for one in faults.pcie_replays(gpu, FAULT, apart=30.0))], set()),
]  # fmt: skip
NAMES = ["lost", "hot", "reload, restart, pod", "idle and all alike"]


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("script", "expected"), CASES, ids=NAMES)
def test_a_fault_gives_the_reading_that_it_must(
    serve: Callable[..., Service],
    prometheus: Prometheus,
    script: Iterable[faults.Event],
    expected: set[tuple[str, int | None]],
) -> None:
    stored(prometheus, script)
    found = reading(serve({"url": prometheus.url, "level": "advanced", "interval_s": 30}))
    assert (found.status, found.whole) == ("risen" if expected else "nothing_found", True)
    assert expected <= set(risen(found))
    if not expected:
        assert found.headline.endswith("That clears nothing.")
