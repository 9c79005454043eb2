"""Do alarms keep their devices when ranks move, names are reused and ids are spelt oddly?"""

from __future__ import annotations

import json
from typing import Any

from tests.cases.conftest import Service, documents

NODE_2 = "hyperpod-i-0c0ffee0000000002"
NODE_3 = "hyperpod-i-0c0ffee0000000003"


def only(alarm: dict, rank: int) -> dict:
    """Give the one finding of a rank."""
    found = [one for one in alarm["findings"] if one["rank"] == rank]
    assert len(found) == 1
    return found[0]


def test_ranks_move_between_attempts(service: Service) -> None:
    """Case 19: an alarm is resolved by the map of its own attempt, however late it comes."""
    for rank_map in documents("19", "map_attempt1.json", "map_attempt2.json"):
        service.post(rank_map)
    said = [service.post(alarm) for alarm in documents("19", "alarms.ndjson")]
    first, second, third = (service.alarm(one) for one in said)
    assert len({one["id"] for one in said}) == 3
    assert (only(first, 13)["node"], first["map_state"]) == (NODE_2, "own")
    assert (only(second, 13)["node"], second["map_state"]) == (NODE_3, "own")
    assert (only(third, 13)["node"], third["map_state"]) == (NODE_2, "inferred")
    assert len({only(one, 13)["gpu_uuid"] for one in (first, second)}) == 2
    assert len(service.cases()) == 2


def test_attempts_out_of_order(service: Service) -> None:
    """The same with everything posted in the opposite order: nothing depends on arrival."""
    said = [service.post(alarm) for alarm in reversed(documents("19", "alarms.ndjson"))]
    for rank_map in reversed(documents("19", "map_attempt1.json", "map_attempt2.json")):
        service.post(rank_map)
    third, second, first = (service.alarm(one) for one in said)
    assert only(first, 13)["node"] == NODE_2
    assert only(second, 13)["node"] == NODE_3
    assert only(third, 13)["node"] == NODE_2
    assert third["map_state"] == "inferred"
    assert len(service.cases()) == 2


def test_same_job_name_run_again(service: Service) -> None:
    """Case 20: without attempt numbers each map posted at a start is a run of its own."""
    said = [service.post(one) for one in documents("20", "events.ndjson")]
    first, second = service.alarm(said[1]), service.alarm(said[3])
    assert (only(first, 13)["node"], only(first, 13)["rank"]) == (NODE_2, 13)
    assert (only(second, 5)["node"], only(second, 5)["rank"]) == (NODE_2, 5)
    assert "duplicate" not in said[2]
    job = service.get(f"jobs/{said[0]['id']}")
    assert len(job["attempts"]) == 2
    node = service.get(f"nodes/{only(first, 13)['node_id']}")
    assert node["alarms"] == 2
    there = service.get(f"alarms?node={node['id']}&limit=100")["items"]
    assert {one["id"] for one in there} == {said[1]["id"], said[3]["id"]}


def test_same_map_twice_is_one_start(service: Service) -> None:
    """A retried map, byte for byte, opens no second start and changes nothing."""
    events = documents("20", "events.ndjson")
    said = service.post(events[0])
    again = service.post(events[0])
    assert again["duplicate"] is True
    assert again["reports"] == 2
    assert len(service.get(f"jobs/{said['id']}")["attempts"]) == 1


def test_contradicting_maps_of_one_start(service: Service) -> None:
    """Two maps of one attempt and moment that differ: kept, and only agreeing ranks are placed."""
    first, second = documents("19", "map_attempt1.json", "map_attempt2.json")
    second = {**second, "attempt": 1, "time": first["time"]}
    # The first node's ranks are the same in both.
    second["ranks"] = [
        old if old["rank"] < 8 else new
        for old, new in zip(first["ranks"], second["ranks"], strict=True)
    ]
    alarm = documents("19", "alarms.ndjson")[0]
    named = {"step": 31, "check": "weights", "suspects": [3, 13]}
    both = {**alarm, "alarm": named}
    service.post(first)
    said = service.post(both)
    assert only(service.alarm(said), 13)["node"] == NODE_2
    service.post(second)
    read = service.alarm(said)
    assert read["map_state"] == "contradictory"
    assert only(read, 3)["node"] == "hyperpod-i-0c0ffee0000000001"
    assert only(read, 13)["node"] is None
    cordons = [
        one
        for one in service.get("proposals?limit=1000")["items"]
        if one["action"] == "cordon" and one["status"] == "proposed"
    ]
    assert cordons
    assert all("disagree" in (one["blocked"] or "") for one in cordons)


def test_node_and_provider_id_shapes(service: Service) -> None:
    """Case 21: an instance id has one form; one odd node never spoils the others."""
    shapes = json.loads(json.dumps(documents("21", "shapes.json")[0]))
    service.post(documents("21", "rankmap.json")[0])
    alarm = service.alarm(service.post(documents("21", "alarm.json")[0]))
    for rank, shape in enumerate(shapes):
        found = only(alarm, rank)
        assert found["instance_id"] == shape["expected_instance_id"], shape
        assert found["node"] == (shape["node"] or None)


def test_replacement_needs_a_true_instance_id(service: Service) -> None:
    """Case 21, one rank at a time: cordon by node name, replacement only by a true id."""
    shapes: Any = documents("21", "shapes.json")[0]
    service.post(documents("21", "rankmap.json")[0])
    alarm = documents("21", "alarm.json")[0]
    for rank, shape in enumerate(shapes):
        for step in (100, 200):  # twice, so that replacement is proposed
            named = {**alarm["alarm"], "suspects": [rank], "step": step + rank}
            service.post({**alarm, "alarm": named, "code_digest": f"digest-{step}-{rank}"})
        gpu = f"GPU-{0xA0000032 + rank:08x}-1111-4222-8333-000000000000"
        asked = [one for one in service.get("proposals?limit=1000")["items"] if
                 one["target"]["gpu_uuid"] == gpu]  # fmt: skip
        by_action = {one["action"]: one for one in asked if one["status"] == "proposed"}
        if shape["node"]:
            assert by_action["cordon"]["blocked"] is None, shape
            assert by_action["cordon"]["target"]["node"] == shape["node"]
        else:
            assert "node is not known" in by_action["cordon"]["blocked"].lower()
        replace = by_action["replace"]
        assert replace["target"]["instance_id"] == shape["expected_instance_id"]
        unknown = "instance id" in (replace["blocked"] or "")
        assert unknown == (shape["expected_instance_id"] is None), replace["blocked"]


def test_node_name_missing(service: Service) -> None:
    """Case 24: a map without node names is accepted; an unknown node stays unknown."""
    said = service.post(documents("24", "rankmap.json")[0])
    alarm = service.alarm(service.post(documents("24", "alarm.json")[0]))
    found = only(alarm, 13)
    assert found["node"] is None
    assert found["gpu_uuid"] == "GPU-a0000002-1111-4222-8333-000000000005"
    for proposal in service.get("proposals?limit=1000")["items"]:
        assert proposal["blocked"], proposal
    job = service.get(f"jobs/{said['id']}")
    rank_map = job["rank_map"]
    assert (rank_map["unplaced"], rank_map["ranks"], rank_map["nodes"]) == (24, 32, 2)
    names = {one["name"] for one in service.get("nodes?limit=1000")["items"]}
    assert names & {"", "None", "null", "worker-2"} == set()


def test_gpu_uuid_forms(service: Service) -> None:
    """Case 26: seven spellings are one GPU; an index is none."""
    for rank_map in documents("26", "maps.ndjson"):
        service.post(rank_map)
    alarms = [service.alarm(service.post(one)) for one in documents("26", "alarms.ndjson")]
    gpus = [only(alarm, 13)["gpu_uuid"] for alarm in alarms]
    assert gpus[:7] == ["GPU-a0000002-1111-4222-8333-000000000005"] * 7
    assert gpus[7:] == [None, None]
    assert {only(alarm, 13)["node"] for alarm in alarms} == {NODE_2}
    offenders = service.get("offenders?by=gpu&window=all")["items"]
    assert len(offenders) == 1
