"""Do programs read what was written down about an alarm's machines, and each record raw?"""

from __future__ import annotations

import httpx2
import pytest

from app.store import ids, tokens
from tests.actions.service import BEARER, Service
from tests.telemetry import nodes
from tests.telemetry.conftest import post_job
from tests.telemetry.house import GROUP, HOUR, STREAM, House, in_ms


@pytest.fixture
def service(house: House) -> Service:
    """Serve with a line and a node of the culprit's machine collected."""
    house.has_cluster(nodes.node(conditions=[nodes.fault()]))
    house.has_log().put(GROUP, STREAM, (in_ms(-30), nodes.agent_line()))
    return house.serve()


def collected(service: Service, house: House) -> str:
    alarm = post_job(service)
    nodes.want(service, alarm)
    house.collect(service, HOUR)
    return alarm


def test_an_alarm_holds_the_log_of_its_machines(service: Service, house: House) -> None:
    alarm = collected(service, house)
    told = service.read(f"/alarms/{alarm}")["telemetry"]
    assert told["state"] == "risen"
    log = told["node_log"]
    assert [(one["kind"], one["state"], one["whole"]) for one in log["asked"]] == [
        ("node", "done", True), ("log", "done", True)
    ]  # fmt: skip
    line, condition, label = log["entries"]
    assert (line["source"], line["xid"], line["xid_class"]) == ("agent log", 79, "hardware")
    assert (condition["source"], condition["counts"]) == ("node condition", True)
    assert (label["source"], label["counts"], label["at"]) == ("node label", False, None)
    raw = httpx2.get(f"{service.url}{line['record_url']}", headers=BEARER).json()
    assert (raw["text"], raw["stream"]) == (nodes.agent_line(), STREAM)
    assert (raw["kind"], raw["other_machine"]) == ("log", None)


def test_a_node_has_its_log_of_any_time(service: Service, house: House) -> None:
    alarm = collected(service, house)
    node_id = nodes.questions(service, alarm)[0].node_id
    path = f"/nodes/{ids.show(node_id)}/log"
    span = {"from": nodes.zulu(-3600), "to": nodes.zulu(600)}
    told = service.read(path, **span)
    assert [one["source"] for one in told["entries"]] == [
        "agent log", "node condition", "node label"
    ]  # fmt: skip
    assert {one["counts"] for one in told["entries"][:2]} == {None}
    early = service.read(path, **{"from": nodes.zulu(-7000), "to": nodes.zulu(-3600)})
    assert [one["at"] for one in early["entries"]] == [None]
    address = f"{service.url}/api/v1{path}"
    assert httpx2.get(f"{address}?since=1", headers=BEARER).status_code == 400
    assert httpx2.get(f"{address}?from=yesterday", headers=BEARER).status_code == 400


def test_who_may_not_read_the_cluster_reads_no_record(service: Service, house: House) -> None:
    alarm = collected(service, house)
    line = service.read(f"/alarms/{alarm}")["telemetry"]["node_log"]["entries"][0]
    _, secret = service.context.store.write(
        lambda c: tokens.create(
            c, name="other", cluster="birch", namespace=None, scope="read", by="me", at=house.now
        )
    )
    header = {"authorization": f"Bearer {secret}"}
    for path in (line["record_url"], f"/api/v1/nodes/{line['node_id']}/log"):
        assert httpx2.get(f"{service.url}{path}", headers=header).status_code == 404
        assert httpx2.get(f"{service.url}{path}").status_code == 401
    for odd in ("0000000000000", "x", "uuuuuuuuuuuuu"):
        answer = httpx2.get(f"{service.url}/api/v1/node-records/{odd}", headers=BEARER)
        assert answer.status_code == 404
