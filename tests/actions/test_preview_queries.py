"""Do the queries behind a preview give the same on both databases?"""

from __future__ import annotations

from collections.abc import Callable

from app.store import fleet_reading, ids, machine_gpus, node_checkpoints, proposals
from tests.actions.fleet import LAST_GPU_OF_SUSPECT, SUSPECT, alarm, envelope, rank_map
from tests.actions.service import Service


def test_what_is_known_of_a_node(make_service: Callable[..., Service]) -> None:
    service = make_service()
    saved = [
        {"step": step, "uri": f"file:/local/{step}", "committed": True} for step in (10, 20)
    ]  # fmt: skip
    states = envelope("checkpoints", time="2026-03-02T10:14:00Z", checkpoints=saved)
    elsewhere = rank_map("other-job", order=(1, 3, 4, 1))
    service.post(rank_map(), states, elsewhere, alarm())
    instance = SUSPECT.removeprefix("hyperpod-")
    with service.context.store.reading() as connection:
        row = proposals.get(connection, ids.read(service.proposal()["id"]))
        assert row is not None
        assert row.node_id is not None
        (job,) = node_checkpoints.jobs_on_node(connection, row.node_id)
        assert (job.job, [one.step for one in job.saved]) == ("llama-953m", [20, 10])
        assert node_checkpoints.newest_start_uses(connection, job.job_id, row.node_id) is True
        assert node_checkpoints.newest_start_uses(connection, job.job_id, -1) is False
        assert node_checkpoints.newest_start_uses(connection, -1, row.node_id) is None
        alarm_id = ids.read(service.read("/alarms")["items"][0]["id"])
        left = node_checkpoints.telemetry_left(connection, alarm_id)
        assert left.whole == 0
        assert node_checkpoints.telemetry_left(connection, -1).asked == 0
        gpus = machine_gpus.of_instance(connection, "alpine", instance)
        assert len(gpus) == 8
        assert LAST_GPU_OF_SUSPECT in {one.uuid for one in gpus}
        assert {one.confirmed for one in gpus} == {0}
        assert machine_gpus.node_of_instance(connection, "alpine", instance) == row.node_id
        assert machine_gpus.node_of_instance(connection, "alpine", "i-0") is None
        now = service.context.now()
        strip = fleet_reading.read(connection, now, fleet_reading.RECENT)
        assert (strip.under_way, strip.under_way_since) == (0, None)
