"""Is evidence about an alarm's machines collected once, kept raw, and read for the alarm?"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import pytest

from app.sources import logs
from app.store import node_records
from tests.pages_alarm import documents as d
from tests.telemetry import nodes
from tests.telemetry.conftest import post_job
from tests.telemetry.house import (
    GROUP,
    HOUR,
    STREAM,
    House,
    in_ms,
    log_of,
    post_named,
    reading_of,
    states,
)


def test_a_node_and_its_log_are_read_soon_and_once_more_at_the_end(house: House) -> None:
    cluster = house.has_cluster(nodes.node())
    log = house.has_log()
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    assert reading_of(service, alarm).status == "not_collected"
    assert house.collect(service) == 2
    first = reading_of(service, alarm)
    assert first.status == "risen"
    assert "Xid 79" in first.headline
    assert log.asked[0]["logStreamNamePrefix"] == STREAM  # the node's label told the group
    assert house.collect(service) == 0
    changed = nodes.node(conditions=[nodes.fault(at=100)])
    cluster.change(d.node(13), lambda node: node.update(status=changed["status"]))
    log.put(GROUP, STREAM, (in_ms(200), nodes.agent_line(nodes.LINK, at=200)))
    assert house.collect(service, timedelta(minutes=20)) == 2
    assert states(service, alarm) == {"node": ("done", None), "log": ("done", None)}
    found = log_of(service, alarm)
    assert [(one.source, one.xid) for one in found.entries if one.counts] == [
        ("agent log", 79), ("node condition", None), ("agent log", 74),
    ]  # fmt: skip
    assert len(reading_of(service, alarm).reading["observations"]) == 3
    assert house.collect(service, 10 * HOUR) == 0


def test_two_alarms_of_one_moment_share_what_is_collected(house: House) -> None:
    log = house.has_log()
    log.put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    service = house.serve()
    one = post_job(service)
    *_, last = service.post(
        {"kind": "rank_map", **d.rank_map(job="other")},
        {"kind": "passes", **d.passes("ring", 0, 20, 3, job="other", clock="13:58:01")},
        {"kind": "alarm", **d.alarm(d.CULPRIT, job="other", clock="14:00:14")},
    )
    other = str(last["id"])
    assert {question.id for question in nodes.want(service, one)} == {
        question.id for question in nodes.want(service, other)
    }
    assert house.collect(service, HOUR) == 2
    assert len(log.asked) == 1
    assert reading_of(service, one).status == reading_of(service, other).status == "risen"


def test_another_machine_under_the_name_is_no_evidence(house: House) -> None:
    made = nodes.node(conditions=[nodes.fault()])
    made["metadata"]["name"] = "gpu-7"
    made["spec"] = {"providerID": "aws:///usw2-az1/i-0fffffffffffffff0"}
    house.has_cluster(made)
    service = house.serve()
    alarm = post_named(service, "gpu-7", "i-0aaaaaaaaaaaaaaa0")
    nodes.want(service, alarm)
    house.collect(service, HOUR)
    assert reading_of(service, alarm).status == "not_collected"
    (entry,) = log_of(service, alarm).entries
    assert "gpu-7 belongs to another machine now, i-0fffffffffffffff0" in entry.text
    with service.context.store.reading() as connection:
        raw = node_records.by_id(connection, entry.raw_id or 0)
    assert raw is not None
    assert "NvidiaErrorReboot" in raw.record.text


@pytest.mark.parametrize(
    ("made", "is_other"), [("2026-11-02T18:00:00Z", True), ("2026-11-02T13:00:00Z", False)]
)
def test_without_instances_the_age_of_the_node_decides(
    house: House, made: str, is_other: bool
) -> None:
    node = nodes.node(conditions=[nodes.fault()], creationTimestamp=made, name="gpu-7")
    node["spec"] = {}
    house.has_cluster(node)
    service = house.serve()
    alarm = post_named(service, "gpu-7", None)
    nodes.want(service, alarm)
    house.collect(service, 6 * HOUR)
    assert (reading_of(service, alarm).status == "not_collected") is is_other
    (first, *_) = log_of(service, alarm).entries
    assert (first.source == "node") is is_other


def test_a_node_that_is_made_anew_between_two_readings_is_another(house: House) -> None:
    node = nodes.node(name="gpu-7")
    node["spec"] = {}
    cluster = house.has_cluster(node)
    service = house.serve()
    alarm = post_named(service, "gpu-7", None)
    nodes.want(service, alarm)
    house.collect(service)
    cluster.remove("gpu-7")
    node["metadata"]["uid"] = "00000000-0000-4000-8000-00000000ffff"
    node["status"]["conditions"].append(nodes.fault(at=60))
    cluster.put("nodes", node)
    house.collect(service, HOUR)
    assert reading_of(service, alarm).status == "not_collected"
    assert any(one.source == "node" for one in log_of(service, alarm).entries)


def test_a_storm_is_kept_raw_and_read_as_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    log = house.has_log()
    monkeypatch.setattr(logs, "LINES_LIMIT", 1_000)
    log.looked_at = 500
    lines = ((in_ms(-90) + 30 * one, nodes.agent_line(at=-60)) for one in range(2_500))
    log.put(GROUP, STREAM, *lines)
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service, HOUR)
    (question,) = [one for one in nodes.questions(service, alarm) if one.kind == "log"]
    assert question.cut
    assert "The log holds more; the 1,000 lines taken are from" in (question.said or "")
    (entry,) = log_of(service, alarm).entries
    assert (entry.times, entry.counts) == (1_000, True)
    (observation,) = reading_of(service, alarm).reading["observations"]
    assert "Written 1,000 times" in observation["text"]


def test_a_label_that_orders_a_replacement_is_no_evidence(house: House) -> None:
    ordered = nodes.node(
        labels={
            f"{nodes.PREFIX}node-health-status": "UnschedulablePendingReplacement",
            f"{nodes.PREFIX}deep-health-check-status": "Passed",
        },
        managedFields=[
            {
                "manager": "silent-witness",
                "operation": "Update",
                "apiVersion": "v1",
                "time": nodes.zulu(30),
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {f"f:{nodes.PREFIX}node-health-status": {}}}
                },
            }
        ],
    )
    house.has_cluster(ordered)
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service, HOUR)
    assert reading_of(service, alarm).status == "not_collected"
    ordered_by, passed = log_of(service, alarm).entries
    assert (ordered_by.counts, passed.counts) == (False, False)
    assert "written last by this service" in ordered_by.text
    assert "A check that passed clears nothing" in passed.text


def test_what_is_kept_of_a_node_is_as_it_came_without_its_images(house: House) -> None:
    house.has_cluster(nodes.node())
    service = house.serve()
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service)
    (entry,) = log_of(service, alarm).entries
    with service.context.store.reading() as connection:
        kept = node_records.by_id(connection, entry.raw_id or 0)
    assert kept is not None
    said = json.loads(kept.record.text)
    assert "images" not in said["status"]
    assert said["status"]["conditions"] == nodes.node()["status"]["conditions"]
    assert kept.sha256 == hashlib.sha256(kept.record.text.encode()).hexdigest()
