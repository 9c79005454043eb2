"""What becomes of evidence where a cluster, a log or a worker is away, or says no?"""

from __future__ import annotations

import pytest

from app.actions.telemetry import collecting, on_demand, pulling
from app.actions.telemetry.collector import Collector
from app.store import ids, node_evidence
from tests.actions.service import until
from tests.pages_alarm import documents as d
from tests.telemetry import nodes
from tests.telemetry.conftest import post_job
from tests.telemetry.house import GROUP, HOUR, STREAM, House, in_ms, post_named, reading_of, states

START = Collector.start
"""The fixture lets no thread begin by itself."""


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Give one kind of database: the statements are those of the other tests, which have both."""
    return migrated_sqlite_url


def test_nothing_configured_is_not_collected_and_said(house: House) -> None:
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service)
    found = states(service, alarm)
    assert found["node"][0] == found["log"][0] == "no_way"
    assert "No cluster of this name is configured" in (found["node"][1] or "")
    assert "WITNESS_NODE_LOGS" in (found["log"][1] or "")
    assert reading_of(service, alarm).status == "not_collected"
    assert house.collect(service, HOUR) == 0


def test_a_cluster_that_is_configured_later_is_read_after_a_new_start(house: House) -> None:
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service)
    house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    again = house.serve()
    assert again.app.state.collector.take_up_again() == 1
    house.collect(again, HOUR)
    assert states(again, alarm)["node"] == ("done", None)
    assert reading_of(again, alarm).status == "risen"


def test_a_node_that_is_gone_is_said(house: House) -> None:
    house.has_cluster()
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service)
    assert states(service, alarm)["node"][0] == "queued"
    house.collect(service, HOUR)
    state, said = states(service, alarm)["node"]
    assert state == "gone"
    assert f"knew no node {d.node(13)}" in (said or "")
    assert any("knew no node" in note for note in reading_of(service, alarm).reading["notes"])


def test_a_cluster_that_is_away_for_hours_is_asked_again(house: House) -> None:
    cluster = house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    cluster.set_fault("GET *", status=503)
    for _ in range(6):
        house.collect(service, HOUR)
    assert states(service, alarm)["node"][0] == "queued"
    cluster.clear_faults()
    house.collect(service, HOUR)
    assert states(service, alarm)["node"] == ("done", None)
    assert reading_of(service, alarm).status == "risen"


def test_a_log_that_refuses_says_so_and_is_asked_again_for_a_day(house: House) -> None:
    log = house.has_log()
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    denied = (400, "AccessDeniedException", "User: nobody")
    log.failures = [denied]
    house.collect(service)
    state, said = states(service, alarm)["log"]
    assert (state, said) == (
        "refused", "CloudWatch Logs does not allow logs:FilterLogEvents: User: nobody"
    )  # fmt: skip
    assert any("FilterLogEvents" in note for note in reading_of(service, alarm).reading["notes"])
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line(key="details: ")))
    house.collect(service, HOUR)
    assert states(service, alarm)["log"] == ("done", None)
    assert reading_of(service, alarm).status == "risen"


def test_after_a_day_nobody_is_asked_any_more(house: House) -> None:
    log = house.has_log()
    cluster = house.has_cluster(nodes.node())
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    cluster.set_fault("GET *", reset=True)
    log.failures = [(400, "AccessDeniedException", "no")] * 100
    for _ in range(26):
        house.collect(service, HOUR)
    found = states(service, alarm)
    assert (found["node"][0], found["log"][0]) == ("given_up", "refused")
    assert (found["node"][1] or "").startswith("No answer for a day.")
    asked = len(log.asked)
    assert house.collect(service, 24 * HOUR) == 0
    assert len(log.asked) == asked
    cluster.clear_faults()
    log.failures = []
    assert on_demand.ask_alarm_again(service.context, ids.read(alarm), "ann") == 2
    assert house.collect(service) == 2
    assert states(service, alarm) == {"node": ("done", None), "log": ("done", None)}
    assert on_demand.ask_alarm_again(service.context, ids.read(alarm), "ann") == 0


def test_a_name_that_no_node_can_have_is_asked_for_once(house: House) -> None:
    cluster = house.has_cluster()
    service = house.serve()
    alarm = post_named(service, "../../secrets/x", "i-0aaaaaaaaaaaaaaa0")
    nodes.want(service, alarm)
    house.collect(service)
    state, said = states(service, alarm)["node"]
    assert (state, said) == ("refused", "../../secrets/x cannot be the name of a Kubernetes node.")
    assert house.collect(service, 30 * HOUR) == 0
    assert cluster.requests == []


def test_a_machine_without_a_name_is_found_by_its_instance(house: House) -> None:
    known = nodes.node(conditions=[nodes.fault()])
    house.has_cluster(known)
    service = house.serve()
    alarm = post_named(service, None, d.node(13).removeprefix("hyperpod-"))
    nodes.want(service, alarm)
    house.collect(service, HOUR)
    assert states(service, alarm)["node"] == ("done", None)
    assert reading_of(service, alarm).status == "risen"


def test_an_idle_collector_writes_nothing(house: House) -> None:
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    assert house.collect(service) == 2
    before = service.context.store.writer.commits
    assert house.collect(service, HOUR) == 0
    assert service.context.store.writer.commits == before


def test_a_time_that_has_not_begun_is_asked_for_at_its_end(house: House) -> None:
    log = house.has_log()
    service = house.serve()
    alarm = post_job(service)
    house.now = nodes.moment(-86_400)
    nodes.want(service, alarm)
    house.collect(service)
    state, said = states(service, alarm)["log"]
    assert (state, said) == ("queued", "It has not begun by the clock of this service.")
    assert log.asked == []
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    house.collect(service, 25 * HOUR)
    assert states(service, alarm)["log"] == ("done", None)
    assert reading_of(service, alarm).status == "risen"


def test_a_worker_that_ends_leaves_its_work_to_another(house: House) -> None:
    house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.now += HOUR
    with_store = service.context.store
    taken = with_store.write(
        lambda c: node_evidence.claim(c, "one that ends", house.now, collecting.LEASE, 10)
    )
    assert len(taken) == 2
    assert house.collect(service) == 0
    assert house.collect(service, HOUR) == 2
    late = {"state": "gone", "said": "too late"}
    assert not with_store.write(
        lambda c: node_evidence.settle(c, taken[0].id, "one that ends", late)
    )
    assert states(service, alarm)["node"] == ("done", None)


def test_what_is_kept_is_read_also_where_the_process_ended_before_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "_read", lambda context, alarms: None)
        house.collect(service, HOUR)
    assert reading_of(service, alarm).status == "not_collected"
    assert pulling.pull_due(service.context, "puller") == 8 + 3
    assert reading_of(service, alarm).status == "risen"
    house.now += HOUR
    service.context.store.write(lambda c: node_evidence.let_be_read(c, [ids.read(alarm)]))
    assert pulling.read_unread(service.context) == 1
    assert pulling.read_unread(service.context) == 0


def test_the_threads_collect_by_themselves_and_end(house: House) -> None:
    house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    log = house.has_log()
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    house.now += HOUR
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    collector = service.app.state.collector
    START(collector)
    until(lambda: reading_of(service, alarm).status == "risen", "the evidence is read", 30)
    until(lambda: states(service, alarm)["log"][0] == "done", "the log is read", 30)
    collector.stop()
    assert not any(one.is_alive() for one in collector._threads)
    for one in service.context.node_logs.values():
        one.close()
