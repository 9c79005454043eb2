"""Are alarms listed as asked, completely and once, and only to whom they concern?"""

from __future__ import annotations

import csv
import io
from typing import Any

from app.store import tokens
from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import House


def _items(house: House, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = house.get(f"/api/v1/alarms?{query}").json()["items"]
    return items


def _some(house: House) -> dict[str, str]:
    """Post alarms of two jobs; give their ids by a short name."""
    house.post(d.rank_map())
    house.post(d.rank_map(job="other", shift=40))
    nan = {"check": "reduced gradient", "step": 31, "suspect_window": [31, 31]}
    return {
        "culprit": house.post(d.alarm(d.CULPRIT, clock="14:00:01")),
        "weights": house.post(d.alarm(d.weights(suspects=[7]), clock="14:00:02")),
        "reduced": house.post(d.alarm(nan, job="other", clock="14:00:03")),
    }


def test_newest_first(house: House) -> None:
    made = _some(house)
    answer = house.get("/api/v1/alarms").json()
    assert [one["id"] for one in answer["items"]] == [
        made["reduced"],
        made["weights"],
        made["culprit"],
    ]
    assert answer["order"].startswith("newest first")
    assert answer["next"] is None


FILTERED: tuple[tuple[str, set[str]], ...] = (
    ("job=train", {"culprit", "weights"}),
    ("check=ring", {"culprit"}),
    ("check=compute&check=weights", {"culprit", "weights"}),
    ("rule=W1", {"weights"}),
    ("status=ambiguous", {"reduced"}),
    ("status=open", {"culprit", "weights", "reduced"}),
    ("status=closed", set()),
    (f"node={d.node(13)}", {"culprit"}),
    (f"instance={d.node(7).removeprefix('hyperpod-')}", {"weights"}),
    (f"gpu={d.gpu(13).upper()}", {"culprit"}),
    ("from=2026-11-02T14:00:02Z", {"weights", "reduced"}),
    ("to=2026-11-02T14:00:02Z", {"culprit"}),
    ("q=oth", {"reduced"}),
    (f"q={d.gpu(7)}", {"weights"}),
    ("cluster=nowhere", set()),
    ("namespace=research&job=other", {"reduced"}),
)


def test_filters(house: House) -> None:
    made = _some(house)
    names = {alarm_id: name for name, alarm_id in made.items()}
    for query, found in FILTERED:
        assert {names[one["id"]] for one in _items(house, query)} == found, query
    for query, field in (
        ("status=healthy", "status"),
        ("limit=0", "limit"),
        ("colour=red", "colour"),
        ("cursor=x", "cursor"),
        ("from=now", "from"),
    ):
        answer = house.program.get(f"/api/v1/alarms?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"]["field"] == field


def test_pages_hold_every_alarm_once(house: House) -> None:
    house.post(d.rank_map())
    for step in range(100, 117):
        # Half of them at one and the same time: the id decides.
        clock = "14:00:01" if step % 2 else f"14:01:{step - 100:02}"
        house.post(d.alarm({**d.CULPRIT, "step": step, "suspect_window": [99, step]}, clock=clock))
    seen: list[str] = []
    query = "limit=5"
    while query:
        answer = house.get(f"/api/v1/alarms?{query}")
        seen += [one["id"] for one in answer.json()["items"]]
        following = answer.json()["next"]
        query = f"limit=5&cursor={following}" if following else ""
    assert len(seen) == len(set(seen)) == 17


def test_csv_runs_nothing(house: House) -> None:
    name = "=HYPERLINK(1)"
    house.post(d.rank_map(job=name))
    house.post(d.alarm(d.CULPRIT, job=name))
    answer = house.get("/api/v1/alarms?format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert row["job"] == "'=HYPERLINK(1)"
    assert row["ranks"] == "13"
    assert row["nodes"] == d.node(13)


def test_a_token_sees_its_own_namespace_only(house: House) -> None:
    made = _some(house)
    now = house.context.now()
    _, secret = house.context.store.write(
        lambda c: tokens.create(
            c, name="x", cluster="alpine", namespace="elsewhere", scope="read", by="t", at=now
        )
    )
    _, asking = house.context.store.write(
        lambda c: tokens.create(
            c, name="y", cluster="alpine", namespace="elsewhere", scope="write", by="t", at=now
        )
    )
    house.program.headers["Authorization"] = f"Bearer {secret}"
    assert _items(house) == []
    assert house.program.get(f"/api/v1/alarms/{made['culprit']}").status_code == 404
    house.program.headers["Authorization"] = f"Bearer {asking}"
    floor = "/api/v1/resume-floor?cluster=alpine&namespace=research&job=train"
    assert house.program.get(floor).status_code == 403
    assert house.program.get("/api/v1/alarms").status_code == 403
    del house.program.headers["Authorization"]
    assert house.program.get("/api/v1/alarms").status_code == 401


def test_one_alarm_reads_as_promised(house: House) -> None:
    read = house.read(_some(house)["culprit"])
    promised = {
        "id", "cluster", "namespace", "job", "attempt", "check", "step", "occurred_at",
        "received_at", "reports", "suspect_window", "findings", "explanations", "resume",
        "telemetry", "conflicts", "document",
    }  # fmt: skip
    assert promised <= read.keys()
    finding = read["findings"][0]
    for key in ("rule", "meaning", "action", "ambiguous", "rank", "node", "instance_id",
                "gpu_uuid", "resolved", "cautions"):  # fmt: skip
        assert key in finding
    assert (finding["rule"], finding["rank"], finding["resolved"]) == ("R1", 13, True)
    assert read["explanations"][0]["sets"] == [{"faulty": [13], "persistent": True}]
    assert read["telemetry"]["state"] == "not_collected"
    assert read["step"] == 30
