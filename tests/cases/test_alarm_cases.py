"""Are odd, repeated, early and hostile alarms kept once, exactly and truthfully?"""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cases.conftest import Service, documents, raw

GPU_13 = "GPU-a0000002-1111-4222-8333-000000000005"


def big_map(ranks: int) -> bytes:
    """Write a rank map of many ranks, 8 a node."""
    rows = [
        {
            "rank": rank,
            "node": f"hyperpod-i-{rank // 8:017x}",
            "instance_id": f"i-{rank // 8:017x}",
            "gpu_uuid": f"GPU-{rank:08x}-0000-4000-8000-{rank:012x}",
        }
        for rank in range(ranks)
    ]
    document = {"cluster": "alpine", "namespace": "research", "job": "big-16k", "attempt": 1,
                "time": "2026-03-02T10:00:00Z", "world_size": ranks, "ranks": rows}  # fmt: skip
    return json.dumps(document).encode()


def test_rank_map_of_16384(service: Service) -> None:
    """Case 27: a large map is taken, plain and compressed; a larger one is refused in JSON."""
    body = big_map(16_384)
    posted = service.post_raw("rank-maps", body)
    assert posted.status_code == 201, posted.text
    again = service.post_raw("rank-maps", gzip.compress(body), **{"content-encoding": "gzip"})
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    alarm = service.alarm(service.post(documents("27", "alarm.json")[0]))
    assert alarm["findings"][0]["node"] == f"hyperpod-i-{2047:017x}"
    job = service.get(f"jobs/{posted.json()['id']}")
    assert job["rank_map"]["nodes"] == 2_048
    refused = service.post_raw("rank-maps", b" " * (41 << 20))
    assert refused.status_code == 413
    assert "32 MiB" in refused.json()["error"]["message"]
    bomb = service.post_raw(
        "rank-maps", gzip.compress(b" " * (41 << 20)), **{"content-encoding": "gzip"}
    )
    assert bomb.status_code == 413


def test_bare_nan_tokens(service: Service) -> None:
    """Case 29: NaN where a value may be one is kept, where an integer is due it is refused."""
    service.post(documents("29", "rankmap.json")[0])
    posted = service.post_raw("alarms", raw("29", "alarm_nan.json"))
    assert posted.status_code == 201
    read = service.alarm(posted.json())  # strict JSON, or the reader fails
    assert read["document"]["alarm"]["loss"] == "NaN"
    assert read["document"]["alarm"]["grad_norm"] == "Infinity"
    assert read["document"]["alarm"]["local_norms"] == [1.25, "-Infinity", "NaN"]
    refused = service.post_raw("alarms", raw("29", "alarm_nan_step.json"))
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == "alarm.step"
    assert len(service.alarms()) == 1


def test_integers_above_2_53(service: Service) -> None:
    """Case 30: every digit comes back, as text where a browser would round."""
    service.post(documents("30", "rankmap.json")[0])
    answer = service.http.get(
        f"/api/v1/alarms/{service.post(documents('30', 'alarm.json')[0])['id']}"
    )
    for number in ("9007199254740993", "-9223372036854775808", "9223372036854775807",
                   "18446744073709551615"):  # fmt: skip
        assert number in answer.text
    assert str(answer.json()["step"]) == "9007199254740993"
    assert "9007199254740992" not in answer.text


def test_suspects_null_empty_missing(service: Service) -> None:
    """Case 31: four shapes, four meanings."""
    service.post(documents("31", "rankmap.json")[0])
    null, empty, missing, two = (
        service.alarm(service.post(one)) for one in documents("31", "alarms.ndjson")
    )
    assert [(one["rule"], one["rank"], one["ambiguous"]) for one in null["findings"]] == [
        ("W2", None, True)
    ]
    assert [one["rule"] for one in empty["findings"]] == [None]
    assert "names nobody" in empty["summary"]
    assert [one["rule"] for one in missing["findings"]] == [None]
    assert "incomplete" in missing["summary"]
    assert empty["summary"] != missing["summary"]
    assert [(one["rule"], one["rank"]) for one in two["findings"]] == [("W1", 7), ("W1", 12)]
    assert len({one["node"] for one in two["findings"]}) == 2
    actions = {one["action"] for one in service.get("proposals?limit=1000")["items"]}
    assert "replace" not in actions
    assert "deep_health_check" in actions


def test_retries_after_lost_replies(service: Service) -> None:
    """Case 32: six times one alarm is one alarm; another culprit at the same step is another."""
    service.post(documents("32", "rankmap.json")[0])
    first, second, other = documents("32", "alarms.ndjson")
    said = [service.post(first) for _ in range(5)]
    said.append(service.post(second))
    assert len({one["id"] for one in said}) == 1
    assert [one.get("reports") for one in said] == [None, 2, 3, 4, 5, 6]
    conflicting = service.post(other)
    alarm, against = service.alarm(said[0]), service.alarm(conflicting)
    assert alarm["reports"] == 6
    assert [one["id"] for one in alarm["conflicts"]] == [against["id"]]
    assert [one["id"] for one in against["conflicts"]] == [alarm["id"]]
    offenders = service.get("offenders?by=gpu&window=all")["items"]
    assert [one["incidents"] for one in offenders] == [1, 1]


@pytest.mark.parametrize("ranks", [32, 512])
def test_every_rank_posts_the_alarm(service: Service, ranks: int) -> None:
    """Case 35: all ranks at once, over as many connections as the senders have."""
    service.post(documents("35", "rankmap.json")[0])
    lines = documents("35", "alarms.ndjson")
    posts = [json.dumps({**lines[0], "reporter_rank": rank}) for rank in range(ranks)]
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda body: service.post_raw("alarms", body), posts))
    assert {one.status_code for one in answers} == {200, 201}
    assert sum(one.status_code == 201 for one in answers) == 1
    (alarm,) = service.alarms()
    assert (alarm["reporters"], alarm["reports"]) == (ranks, ranks)
    (offender,) = service.get("offenders?by=gpu&window=all")["items"]
    assert offender["incidents"] == 1
    assert offender["alarms"] == 1


def test_alarm_before_its_map(service: Service) -> None:
    """Case 36: an early alarm is kept and placed when its map comes, without a new post."""
    said = service.post(documents("36", "1_alarm.json")[0])
    early = service.alarm(said)
    assert early["findings"][0]["resolved"] is False
    assert early["findings"][0]["rank"] == 13
    assert early["map_state"] == "none"
    assert all(one["blocked"] for one in service.get("proposals?limit=1000")["items"])
    service.post(documents("36", "2_rankmap.json")[0])
    placed = service.alarm(said)
    assert placed["findings"][0]["gpu_uuid"] == GPU_13
    assert placed["resolved_at"] is not None
    (case,) = service.cases()
    assert case["alarms"] == 1
    mapless = service.alarm(service.post(documents("36", "3_alarm_no_map.json")[0]))
    assert mapless["findings"][0]["resolved"] is False
    assert len(service.alarms()) == 2


def test_hostile_and_odd_names(service: Service) -> None:
    """Case 37: every name is kept letter for letter or refused by field; nothing ends in 500."""
    names = documents("37", "names.json")[0]
    refused = 0
    for line in raw("37", "posts.ndjson").splitlines():
        path = "alarms" if b'"alarm"' in line else "rank-maps"
        answer = service.post_raw(path, line)
        if answer.status_code == 422:
            refused += 1
            assert answer.json()["error"]["field"] == "job"
        else:
            assert answer.status_code == 201, answer.text
    assert refused == 2  # the name with NUL: its map and its alarm
    kept = {one["job"] for one in service.alarms()}
    assert kept == {name for name in names if "\x00" not in name}
    template = documents("19", "alarms.ndjson")[0]
    for field in ("cluster", "namespace"):
        for name in names:
            answer = service.post_raw("alarms", json.dumps({**template, field: name}))
            assert answer.status_code in (200, 201, 422), answer.text
    place = {"rank": 0, "instance_id": None, "gpu_uuid": None}
    for number, name in enumerate(names):
        body = {**template, "job": f"odd-node-{number}", "ranks": [{**place, "node": name}]}
        answer = service.post_raw("rank-maps", json.dumps({**body, "world_size": 1}))
        assert answer.status_code in (201, 422), answer.text


def test_two_node_job(service: Service) -> None:
    """Case 39: two nodes cannot settle who is wrong."""
    service.post(documents("39", "rankmap.json")[0])
    alarms = [service.alarm(service.post(one)) for one in documents("39", "alarms.ndjson")]
    for found in alarms[0]["findings"]:
        assert found["ambiguous"] is True
        assert any("Only 2 nodes" in one["text"] for one in found["cautions"])
    for found in alarms[1]["findings"]:
        assert found["ambiguous"] is True
    proposals = service.get("proposals?limit=1000")["items"]
    replacing = [one for one in proposals if one["action"] == "replace"]
    assert not [one for one in replacing if one["blocked"] is None]
    cordons = {one["target"]["node"] for one in proposals if one["action"] == "cordon"}
    assert len(cordons) == 2


def test_transient_twice_under_other_names(service: Service) -> None:
    """Case 61: recurrence follows the GPU, and other alarms neither restart nor break it."""
    for one in documents("61", "events.ndjson"):
        service.post(one)
    case = next(one for one in service.cases() if one["gpu_uuid"] == GPU_13)
    words = "transient before on 2026-03-02 (job llama-953m, rank 13), same GPU"
    assert words in case["recurrence"]
    assert case["headline"].startswith("Replace")
    actions = {one["action"] for one in service.case(case["id"])["proposals"]}
    assert "replace" in actions
    assert "quarantined" not in case["headline"]
    assert len(service.alarms()) == 4
    gpu = service.get(f"gpus/{GPU_13}")
    assert [one["kind"] for one in gpu["incidents_by_kind"]] == ["transient", "transient"]
    node = service.get(f"nodes/{case['node_id']}")
    kinds = sorted(one["kind"] for one in node["incidents_by_kind"])
    assert kinds == ["nonfinite", "nonfinite", "transient", "transient"], "listed, not counted"


def test_which_checkpoint_is_safe(service: Service) -> None:
    """Case 63: the newest committed one strictly before the window, and what its tags say."""
    rank_map, alarm, saved = documents("63", "rankmap.json", "alarm.json", "checkpoints.json")
    service.post(rank_map)
    said = service.post(alarm)
    service.post(saved)
    chosen = service.alarm(said)["resume"][0]
    assert (chosen["choice"], chosen["step"]) == ("before_window", 220)
    assert "not a proof" in chosen["tags"]
    floor = service.get("resume-floor?cluster=alpine&namespace=research&job=llama-953m")
    assert floor["highest_step"] == 220


@pytest.mark.parametrize(
    ("steps", "expected", "words"),
    [
        ((0, 200, 221, 300), 200, "never"),
        ((0, 221, 300), 0, "o tags"),
    ],
)
def test_older_checkpoints(
    service: Service, steps: tuple[int, ...], expected: int, words: str
) -> None:
    """Case 63 with the newest ones gone."""
    rank_map, alarm, saved = documents("63", "rankmap.json", "alarm.json", "checkpoints.json")
    left = [one for one in saved["checkpoints"] if one["step"] in steps]
    service.post(rank_map)
    said = service.post(alarm)
    service.post({**saved, "checkpoints": left})
    (chosen, *_) = service.alarm(said)["resume"]
    assert chosen["step"] == expected
    assert words in chosen["tags"]
    assert "clean" not in json.dumps(chosen).lower()


def test_visible_to_the_next_reader(service: Service) -> None:
    """What was acknowledged is there for whoever reads next; how soon is measured by the bench."""
    service.post(documents("32", "rankmap.json")[0])
    service.post(documents("32", "alarms.ndjson")[0])
    assert len(service.cases()) == 1
    assert len(service.alarms()) == 1
