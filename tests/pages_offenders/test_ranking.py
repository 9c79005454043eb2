"""Does the ranking count incidents by device, and say what it does not know?"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.cases.conftest import documents
from tests.pages_alarm.documents import alarm, gpu, node, passes, rank_map
from tests.pages_offenders.house import House
from tests.web.conftest import Clock

RING = {
    "check": "compute",
    "nonfinite": [],
    "mismatched_pairs": [[13, 5], [21, 13]],
    "culprits": [13],
    "verdicts": [],
    "suspect_window": [21, 30],
    "last_audit_pass": 20,
    "last_weight_check_pass": 20,
}


def ring(step: int = 30, **about: Any) -> dict[str, Any]:
    """Alarm about rank 13."""
    return alarm({**RING, "step": step, "suspect_window": [step - 9, step]}, **about)


def march(document: dict[str, Any]) -> dict[str, Any]:
    """Move a document of November into the days before the tests' clock."""
    return {**document, "time": document["time"].replace("2026-11-02", "2026-03-18")}


def listed(house: House, query: str = "") -> list[dict[str, Any]]:
    """Read the ranking."""
    items: list[dict[str, Any]] = house.read(f"offenders?{query}")["items"]
    return items


def test_an_alarm_posted_by_every_rank_counts_once(house: House) -> None:
    house.post(*documents("35", "rankmap.json", "alarms.ndjson"))
    (one,) = listed(house)
    assert (one["incidents"], one["alarms"], one["jobs"]) == (1, 1, 1)
    (one,) = listed(house, "by=instance")
    assert (one["incidents"], one["alarms"]) == (1, 1)


def test_a_crash_loop_is_one_incident_of_many_alarms(house: House) -> None:
    house.post(march(rank_map()))
    house.post(*(march(ring(30 + 10 * turn)) for turn in range(6)))
    (one,) = listed(house)
    assert (one["incidents"], one["alarms"]) == (1, 6)
    assert one["p"] == pytest.approx(0.82, abs=0.01)
    assert one["recurrence"] is None


def test_nine_spellings_of_one_gpu_are_one_gpu(house: House) -> None:
    house.post(*documents("26", "maps.ndjson", "alarms.ndjson"))
    gpus = listed(house)
    assert [one["gpu_uuid"] for one in gpus] == ["GPU-a0000002-1111-4222-8333-000000000005"]
    assert gpus[0]["jobs"] == 7
    (machine,) = listed(house, "by=node")
    assert (machine["node"], machine["jobs"]) == ("hyperpod-i-0c0ffee0000000002", 9)


def test_transient_twice_recurs_whatever_job_and_rank_are_called(house: House) -> None:
    house.post(*documents("61", "events.ndjson"))
    rows = {one["gpu_uuid"][-1]: one for one in listed(house)}
    twice = rows["5"]
    assert (twice["incidents"], twice["jobs"]) == (2, 2)
    assert twice["recurrence"].startswith(
        "transient before on 2026-03-02 (job llama-953m, rank 13)"
    )
    assert twice["p"] > 0.9
    assert {key: rows[key]["incidents"] for key in ("4", "6")} == {"4": 1, "6": 1}
    (machine,) = listed(house, "by=node")
    assert (machine["incidents"], machine["gpus_with_incidents"]) == (4, 3)


def test_without_passes_hours_and_rates_are_unknown(house: House) -> None:
    house.post(march(rank_map()), march(ring()))
    answer = house.read("offenders")
    (one,) = answer["items"]
    assert (one["audited_gpu_hours"], one["rate_per_hour"], one["times_the_fleet"]) == (None,) * 3
    assert answer["fleet"] == {"incidents": 1, "audited_gpu_hours": None, "rate_per_hour": None}
    page = house.sign_in("viewer").get("/offenders").text
    assert "unknown: no audited hours" in page
    assert "so the fleet’s rate is unknown" in page
    assert "url(#hatch)" in page


def test_rates_are_over_the_audited_hours_of_the_device(house: House) -> None:
    house.post(march(rank_map()), march(passes("ring", 0, 14400, 1441, clock="15:00:00")))
    house.post(march(ring(14410, clock="15:00:10")))
    answer = house.read("offenders")
    (one,) = answer["items"]
    assert one["audited_gpu_hours"] == pytest.approx(1.0, rel=0.01)
    assert one["rate_per_hour"] == pytest.approx(1.0, rel=0.01)
    assert one["rate_low"] < 0.1
    assert one["rate_high"] > 5
    assert answer["fleet"]["audited_gpu_hours"] == pytest.approx(32.0, rel=0.01)
    assert one["times_the_fleet"] == pytest.approx(32.0, rel=0.02)
    (machine,) = listed(house, "by=node")
    assert machine["audited_gpu_hours"] == pytest.approx(8.0, rel=0.01)


def test_windows_end_today_and_reach_back_whole_days(house: House, clock: Clock) -> None:
    house.post(march(rank_map()), march(ring()))
    assert len(listed(house, "window=7")) == 1
    clock.forward(days=6)
    assert listed(house, "window=7") == []
    assert len(listed(house, "window=28")) == 1
    clock.forward(days=400)
    assert listed(house, "window=365") == []
    assert len(listed(house, "window=all")) == 1
    assert len(listed(house, "from=2026-03-18&to=2026-03-18")) == 1
    assert listed(house, "from=2026-03-19") == []


def test_filters_narrow_by_check_verdict_minimum_cluster_and_name(house: House) -> None:
    house.post(march(rank_map()), march(ring()), march(ring(clock="16:00:00", job="other")))
    house.post(march(rank_map(job="other")))
    weights = {"check": "weights", "step": 40, "suspects": [3], "suspect_window": [31, 40]}
    house.post(march(alarm(weights, clock="17:00:00")))
    by_ring = listed(house, "check=ring")
    assert [one["gpu_uuid"] for one in by_ring] == [gpu(13)]
    assert by_ring[0]["incidents"] == 2
    assert [one["gpu_uuid"] for one in listed(house, "kind=weights")] == [gpu(3)]
    assert [one["gpu_uuid"] for one in listed(house, "incidents=2")] == [gpu(13)]
    assert [one["gpu_uuid"] for one in listed(house, "jobs=2")] == [gpu(13)]
    assert listed(house, "jobs=3") == []
    assert [one["gpu_uuid"] for one in listed(house, f"q={gpu(3)[:20]}")] == [
        one for one in (gpu(3),) if one.startswith(gpu(3)[:20])
    ]
    assert len(listed(house, "by=node&q=hyperpod-i-")) == 2
    assert listed(house, "cluster=elsewhere") == []
    assert len(listed(house, "cluster=alpine&cluster=elsewhere")) == 2


def test_p_ranks_a_persistent_fault_above_two_nan_incidents(house: House) -> None:
    house.post(march(rank_map()), march(rank_map(job="other")))
    for job, clock in (("train", "15:00:00"), ("other", "16:00:00")):
        nan = {**RING, "step": 30, "nonfinite": [2], "mismatched_pairs": [], "culprits": []}
        house.post(march(alarm(nan, job=job, clock=clock)))
    house.post(march(ring(50, clock="17:00:00")))
    assert [one["gpu_uuid"] for one in listed(house)] == [gpu(13), gpu(2)]
    assert [one["gpu_uuid"] for one in listed(house, "rank=incidents")] == [gpu(2), gpu(13)]


def test_the_pages_of_incidents_hold_every_device_once(house: House) -> None:
    house.post(march(rank_map()))
    for rank in range(9):
        said = {"check": "weights", "step": 40 + rank, "suspects": [rank]}
        house.post(march(alarm(said, clock=f"15:0{rank}:00")))
    found: list[str] = []
    cursor, turns = "", 0
    while turns < 9:
        answer = house.read(f"offenders?rank=incidents&limit=4{cursor}")
        found += [one["gpu_uuid"] for one in answer["items"]]
        turns += 1
        if answer["next"] is None:
            break
        cursor = f"&cursor={answer['next']}"
    assert sorted(found) == sorted(gpu(rank) for rank in range(9))
    assert turns == 3


def test_csv_says_the_same_as_json(house: House) -> None:
    house.post(*documents("61", "events.ndjson"))
    answer = house.ask("offenders?by=node&rank=incidents&format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    items = listed(house, "by=node&rank=incidents")
    assert [(row["node"], row["incidents"]) for row in rows] == [
        (one["node"], str(one["incidents"])) for one in items
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("by=rack", "by"),
        ("window=13", "window"),
        ("check=smell", "check"),
        ("kind=odd", "kind"),
        ("incidents=0", "incidents"),
        ("incidents=many", "incidents"),
        ("rank=luck", "rank"),
        ("from=2026-03-09&to=2026-03-02", "to"),
        ("from=yesterday", "from"),
        ("unheard=1", "unheard"),
        ("limit=0", "limit"),
        ("format=xml", "format"),
        ("cursor=abc", "cursor"),
        ("q=%00", "q"),
    ],
)
def test_a_wrong_parameter_is_named(one_house: House, query: str, field: str) -> None:
    answer = one_house.ask(f"offenders?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field


def test_a_machine_is_named_by_node_and_instance(house: House) -> None:
    house.post(march(rank_map()), march(ring()))
    (machine,) = listed(house, "by=node")
    assert machine["node"] == node(13)
    (instance,) = listed(house, "by=instance")
    assert instance["instance_id"] == node(13).removeprefix("hyperpod-")
