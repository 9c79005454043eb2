"""Does the log of an alarm's machines say what was written down, of which GPU and when?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from app.actions.telemetry.node_entries import Entry
from app.actions.telemetry.node_log import NodeLog, read_node_log, read_node_log_of
from app.store import ids, node_records
from app.store.device_reading import node_by_id
from app.store.node_records import Raw
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus
from tests.telemetry import nodes
from tests.telemetry.conftest import every, labels, post_job, rounds

Serve = Callable[..., Service]


def log_of(service: Service, alarm_id: str) -> NodeLog:
    with service.context.store.reading() as connection:
        return read_node_log(connection, ids.read(alarm_id))


def by_source(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for one in entries:
        found.setdefault(one.source, []).append(one)
    return found


def test_lines_labels_conditions_and_xids_stand_in_one_order(
    serve: Serve, prometheus: Prometheus
) -> None:
    def last_xid(since: float) -> float:
        return 79.0 if since > -45 else 0.0

    prometheus.write([(labels("DCGM_FI_DEV_XID_ERRORS", 13), every(last_xid))])
    prometheus.write([(labels("DCGM_FI_DEV_GPU_TEMP", 10), every(lambda _: 60.0))])
    service = serve({"url": prometheus.url})
    alarm = post_job(service)
    rounds(service)
    machine, agent = nodes.want(service, alarm)
    assert (machine.kind, agent.kind, machine.label) == ("node", "log", d.node(13))
    details = [{"timestamp": nodes.zulu(-25), "type": "NvidiaErrorReboot",
                "reason": "XidHardwareFailure", "message": nodes.OFF_THE_BUS}]  # fmt: skip
    kept = nodes.node(
        labels={
            f"{nodes.PREFIX}fault-types": "NvidiaErrorReboot",
            f"{nodes.PREFIX}node-health-status": "UnschedulablePendingReplacement",
        },
        annotations={f"{nodes.PREFIX}fault-details": json.dumps(details)},
        conditions=[nodes.fault(at=-20)],
    )
    nodes.keep(service, machine, Raw(json.dumps(kept), nodes.moment(60)))
    other = nodes.line(nodes.agent_line(nodes.LINK, at=-50), at=-50)
    nodes.keep(service, agent, nodes.line(nodes.agent_line()), other)
    found = log_of(service, alarm)
    dated = [one.at for one in found.entries if one.at is not None]
    assert dated == sorted(dated)
    log = by_source(found.entries)
    link, mine = log["agent log"]
    assert (link.xid, link.gpu_uuid, link.counts, link.xid_class) == (
        74, d.gpu(10), False, "hardware"
    )  # fmt: skip
    assert (mine.xid, mine.gpu_uuid, mine.counts, mine.pci) == (79, d.gpu(13), True, "0000:58:00")
    assert [one.counts for one in log["node annotation"]] == [True]
    (condition,) = log["node condition"]
    assert (condition.counts, condition.gpu_uuid, condition.at) == (True, None, nodes.moment(-20))
    (metric,) = log["Xid metric"]
    assert (metric.xid, metric.gpu_uuid, metric.counts) == (79, d.gpu(13), True)
    assert [(one.counts, one.at) for one in log["node label"]] == [(False, None)] * 2
    assert "How a node is treated is no evidence." in log["node label"][1].text
    assert found.counting == 4


def test_a_machine_of_another_alarm_has_its_own_log(serve: Serve) -> None:
    service = serve()
    alarm = post_job(service)
    _, agent = nodes.want(service, alarm)
    nodes.keep(service, agent, nodes.line(nodes.agent_line()))
    with service.context.store.reading() as connection:
        machine = node_by_id(connection, agent.node_id)
        assert machine is not None
        span = (nodes.moment(-3600), nodes.moment(3600))
        here = read_node_log_of(connection, machine, *span)
        before = read_node_log_of(connection, machine, nodes.moment(-7000), nodes.moment(-3600))
    (entry,) = here.entries
    assert (entry.counts, entry.xid, entry.gpu_uuid) == (None, 79, None)
    assert before.entries == ()
    assert {one.kind for one in here.asked} == {"log", "node"}


def test_a_storm_is_one_entry_and_garbage_is_shown(serve: Serve) -> None:
    service = serve()
    alarm = post_job(service)
    _, agent = nodes.want(service, alarm)
    storm = [
        nodes.line(nodes.agent_line(at=-60 + place / 20), at=-60 + place / 20, event=f"e{place}")
        for place in range(1_000)
    ]
    assert nodes.keep(service, agent, *storm) == 1_000
    assert nodes.keep(service, agent, *storm) == 0
    nodes.keep(
        service, agent, nodes.line("\x00\ud800 HealthMonitoringAgentDetectionEvent {", at=-1)
    )
    one, odd = log_of(service, alarm).entries
    assert (one.times, one.counts, one.xid) == (1_000, True, 79)
    assert (one.at, one.until) == (nodes.moment(-60), nodes.moment(-11))
    assert (odd.counts, odd.times) == (False, 1)
    assert "cannot be read" in odd.text
    assert odd.detail.startswith("   Health")
    with service.context.store.reading() as connection:
        raw = node_records.by_id(connection, odd.raw_id or 0)
    assert raw is not None
    assert raw.record.text.startswith("\x00\ud800 Health")
    told = service.read(f"/node-records/{ids.show(odd.raw_id or 0)}")
    assert (told["text"], told["sha256"]) == (raw.record.text, raw.sha256)


def test_what_the_agent_says_is_over_or_the_applications_does_not_count(serve: Serve) -> None:
    service = serve()
    alarm = post_job(service)
    _, agent = nodes.want(service, alarm)
    nodes.keep(
        service,
        agent,
        nodes.line(nodes.agent_line("NVRM: Xid (PCI:0000:58:00): 31", reason="XidUserAppError")),
        nodes.line(nodes.agent_line("none", reason="NoXid", now="False", at=-10), at=-10),
    )
    blamed, over = log_of(service, alarm).entries
    assert (blamed.counts, over.counts) == (False, False)
    assert "blames the application" in blamed.text
    assert over.text.startswith("The node's log says NvidiaErrorReboot NoXid is over.")


def test_another_machine_under_the_same_name_is_said_and_not_read(serve: Serve) -> None:
    service = serve()
    alarm = post_job(service)
    machine, _ = nodes.want(service, alarm)
    stranger = nodes.node(conditions=[nodes.fault()])
    why = "Another machine carries the name."
    nodes.keep(service, machine, Raw(json.dumps(stranger), nodes.moment(60), other=why))
    (entry,) = log_of(service, alarm).entries
    assert (entry.source, entry.text, entry.counts) == ("node", why, False)
