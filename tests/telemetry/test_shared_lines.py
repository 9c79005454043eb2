"""Is a line that was kept for one alarm read for the others whose time it lies in?"""

from __future__ import annotations

import pytest

from tests.pages_alarm import documents as d
from tests.telemetry import nodes
from tests.telemetry.conftest import post_job
from tests.telemetry.house import GROUP, HOUR, STREAM, House, in_ms, reading_of


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """One database is enough."""
    return migrated_sqlite_url


def test_alarms_of_one_machine_and_other_times_are_all_read_anew(house: House) -> None:
    log = house.has_log()
    service = house.serve()
    one = post_job(service)
    *_, last = service.post(
        {"kind": "rank_map", **d.rank_map(job="other")},
        {"kind": "passes", **d.passes("ring", 0, 20, 3, job="other", clock="13:50:00")},
        {"kind": "alarm", **d.alarm(d.CULPRIT, job="other", clock="13:52:14")},
    )
    other = str(last["id"])
    asked = [nodes.want(service, alarm) for alarm in (one, other)]
    assert not {row.id for row in asked[0]} & {row.id for row in asked[1]}
    assert house.collect(service) == 4
    assert {reading_of(service, alarm).status for alarm in (one, other)} == {"not_collected"}
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    assert house.collect(service, HOUR) == 2
    assert {reading_of(service, alarm).status for alarm in (one, other)} == {"risen"}
