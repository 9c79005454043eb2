"""Do the pages of an alarm, a case and a GPU show what was read, drawn and written down?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from app.store import ids, node_evidence
from app.store.node_records import Raw
from app.store.tables import proposals
from app.web.words import ident
from tests.actions.service import Person, Service
from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import words_of
from tests.prometheus import Prometheus
from tests.telemetry import nodes
from tests.telemetry.conftest import ALARM_AT, every, labels, post_job, rounds

Serve = Callable[..., Service]
GPU = "/gpus/" + ident(ids.derive("gpu", d.gpu(13)))
SBE, TEMP, XID = (
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"
)  # fmt: skip
GREEN = re.compile(r"\b(healthy|clean|innocent|cleared|good)\b", re.I)
GRAFANA = "https://g-1.grafana-workspace.us-west-2.amazonaws.com/?var-cluster_id=4k2xq9mlunp0"


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Pages read through queries that other tests run on both databases."""
    return migrated_sqlite_url


def fill(prometheus: Prometheus) -> None:
    """Store two hours of the culprit and its node: errors that rise, and two Xids."""
    prometheus.write(
        [
            (labels(field, rank), every(partial(_value, field, rank), step=30.0))
            for rank in (*range(8, 16), 5, 21, 29)
            for field in (TEMP, SBE, XID)
        ]
    )


def _value(field: str, rank: int, since: float) -> float:
    if field == TEMP:
        return 60.0 + (rank + int(since // 15)) % 3
    if field == SBE:
        return 12.0 if rank == 13 and since > -20 else 3.0
    return {13: 79.0 if since > -45 else 63.0, 10: 31.0 if since > -600 else 0.0}.get(rank, 0.0)


@pytest.fixture
def read(serve: Serve, prometheus: Prometheus) -> tuple[Service, str]:
    """Serve one alarm whose telemetry was read."""
    fill(prometheus)
    service = serve({"url": prometheus.url, "level": "basic", "grafana": GRAFANA})
    alarm = post_job(service)
    assert rounds(service) == 11
    return service, alarm


def section(page: str, key: str) -> str:
    """Give one section of a page."""
    return page.split(f'aria-labelledby="{key}"')[1].split("</section>", maxsplit=1)[0]


def case_of(service: Service) -> str:
    (case,) = service.read("/cases")["items"]
    return f"/cases/{case['id']}"


def node_of(person: Person, rank: int) -> str:
    """Find the page of a rank's node."""
    page = person.get("/gpus/" + ident(ids.derive("gpu", d.gpu(rank))))
    return re.findall(r'href="(/nodes/\w+)"', page)[0]


def at(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


AROUND = f"{GPU}?from={at(ALARM_AT - 3600)}&to={at(ALARM_AT + 600)}"


def test_a_case_shows_the_reading_of_each_alarm_and_draws_the_newest(
    read: tuple[Service, str],
) -> None:
    service, alarm = read
    page = service.person("viewer").get(case_of(service))
    shown = section(page, "dcgm")
    said = words_of(shown)
    assert f'href="/alarms/{alarm}#dcgm"' in shown
    assert re.search(r"2 Nov 14:00:12 ?, step 30 risen", said)
    assert "New Xid 79" in said
    assert "this GPU against 10 other GPUs" in shown
    assert "Drawn from" in said
    assert "the suspect window from" in said
    assert 'class="f-band"' in shown
    assert "Missing, collected at the advanced level only:" in said
    assert "The same as a table" in said
    assert not GREEN.search(said)


def test_an_alarm_says_what_the_machine_wrote_down_and_what_counts(
    read: tuple[Service, str],
) -> None:
    service, alarm = read
    asked = nodes.want(service, alarm)
    agent = next(one for one in asked if one.kind == "log")
    machine = next(one for one in asked if one.kind == "node")
    nodes.keep(service, agent, nodes.line(nodes.agent_line(nodes.LINK, at=-50), at=-50))
    labelled = nodes.node(labels={f"{nodes.PREFIX}fault-types": "NvidiaErrorReboot"})
    nodes.keep(service, machine, Raw(json.dumps(labelled), nodes.moment(60)))
    person = service.person("viewer")
    said = words_of(section(person.get(f"/alarms/{alarm}"), "xids"))
    assert re.search(r"\d entries, 1 counts", said)
    assert re.search(r"13:59:\d\d GPU 00000001…0005 .{0,40}79 hardware New Xid 79", said)
    assert "DCGM metric yes : the hardware’s own statement" in said
    assert "health agent’s log no : It is of a GPU that is not in doubt here." in said
    assert "31 application first" in said
    assert "no time known GPU 00000001…0005" in said
    assert "no : No time is given: it may be much older." in said
    assert "label of the node" in said
    in_time = words_of(section(person.get(AROUND), "xids"))
    assert "DCGM metric the hardware’s own statement" in in_time
    assert "another GPU" in in_time
    assert words_of(section(person.get(case_of(service)), "xids")) == said
    assert not GREEN.search(said)


def test_a_log_that_is_still_read_or_not_connected_says_so(read: tuple[Service, str]) -> None:
    service, alarm = read
    nodes.want(service, alarm)
    person = service.person("viewer")
    page = person.get(f"/alarms/{alarm}")
    assert "The health agent’s log of hyperpod-i-00000000000000001 : waits to be read" in words_of(
        section(page, "xids")
    )
    assert "data-live" in page
    table = node_evidence._TABLE
    service.context.store.write(
        lambda c: c.execute(table.update().values(state="no_way", said="Nothing is configured."))
    )
    page = person.get(f"/alarms/{alarm}")
    assert "not connected. Nothing is configured." in words_of(section(page, "xids"))
    assert "data-live" not in page


def test_grafana_is_linked_with_node_and_time_and_only_where_it_is_configured(
    read: tuple[Service, str], serve: Serve, prometheus: Prometheus
) -> None:
    service, alarm = read
    person = service.person("viewer")
    for path in (f"/alarms/{alarm}", case_of(service), AROUND):
        (link,) = re.findall(r'<a href="(https://g-1[^"]+)"([^>]*)>', person.get(path))
        address = link[0].replace("&amp;", "&")
        assert "/d/aws-sm-hp-observability-cluster-v1_0?from=17" in address
        assert f"var-cluster_id=4k2xq9mlunp0&var-Hostname={d.node(13)}" in address
        assert link[1] == ' target="_blank" rel="noopener noreferrer"'
    bare = serve({"url": prometheus.url}).person("viewer", "bare")
    for path in (f"/alarms/{alarm}", case_of(service), AROUND):
        assert "Grafana" not in bare.get(path)


def test_a_page_waits_without_inventing_and_renews_itself(
    serve: Serve, prometheus: Prometheus
) -> None:
    fill(prometheus)
    service = serve({"url": prometheus.url})
    alarm, person = post_job(service), service.person("operator")
    case = case_of(service)
    assert "It was not pulled yet." in words_of(section(person.get(case), "dcgm"))
    person.press(f"{GPU}/telemetry", GPU, **{"from": at(ALARM_AT - 3600), "to": at(ALARM_AT)})
    fragments = {}
    page = person.get(f"{GPU}?from={at(ALARM_AT - 3600)}&to={at(ALARM_AT)}")
    assert "<progress" in page
    address, stamp = re.findall(r'data-live="([^"]+)" data-stamp="(\w+)"', page)[0]
    fragments[address.replace("&amp;", "&")] = stamp
    for path in (f"/fragment/alarms/{alarm}/telemetry", f"/fragment{case}/telemetry"):
        fragments[path] = person.http.get(path).headers["x-stamp"]
    for path, stamp in fragments.items():
        assert person.http.get(_stamped(path, stamp)).status_code == 204
    rounds(service)
    for path, stamp in fragments.items():
        answer = person.http.get(_stamped(path, stamp))
        assert (answer.status_code, answer.headers["x-stamp"] == stamp) == (200, False)
        assert "<html" not in answer.text
    assert person.http.get("/fragment/alarms/0000000000000/telemetry").status_code == 404


def _stamped(path: str, stamp: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}stamp={stamp}"


def test_what_was_done_on_the_node_is_marked_and_stands_in_the_table(
    read: tuple[Service, str],
) -> None:
    service, alarm = read

    def taken_up(seconds: float, outcome: str) -> None:
        values = {
            "claimed_at": datetime.fromtimestamp(ALARM_AT + seconds, UTC),
            "decided_by": "T. Reyes", "details": json.dumps({"outcome": outcome}),
            "outcome": "No cluster is configured.",
        }  # fmt: skip
        service.context.store.write(lambda c: c.execute(proposals.update().values(values)))

    person = service.person("viewer")
    taken_up(240, "changed")
    shown = section(person.get(f"/alarms/{alarm}"), "dcgm")
    assert "action of ours on its node" in shown
    assert "Cordon, approved by T. Reyes" in shown
    assert 'stroke-dasharray="1 2"' in shown
    assert "Job train, attempt 1" in words_of(shown)
    taken_up(240, "dry_run")
    shown = section(person.get(AROUND), "tele")
    assert "No cluster is configured." in shown
    assert "action that changed nothing" in shown
    taken_up(86_400, "changed")
    assert "Cordon" not in section(person.get(AROUND), "tele")


def test_what_moved_over_months_stands_on_the_page_of_the_gpu(read: tuple[Service, str]) -> None:
    service, _ = read
    said = words_of(section(service.person("viewer").get(GPU), "moved"))
    assert "in 1 window that were kept" in said
    assert "Corrected memory errors since driver load a hint 1 of 1 window 9" in said
    other = "/gpus/" + ident(ids.derive("gpu", d.gpu(0)))
    said = words_of(section(service.person("viewer").get(other), "moved"))
    assert "no window of this GPU holds any samples" in said
    assert "that clears nothing" in said


def test_a_time_that_cannot_be_shown_is_said_beside_the_form(serve: Serve) -> None:
    service = serve()
    post_job(service)
    answer = service.person("viewer").http.get(f"{GPU}?from=2026-11-01&to=2026-11-03")
    assert answer.status_code == 400
    said = words_of(section(answer.text, "tele"))
    assert "This is longer than 24 hours; ask for it in parts. Shown instead" in said
    assert 'name="from" value="2026-11-01"' in answer.text


def test_other_times_are_one_click_away(read: tuple[Service, str]) -> None:
    service, _ = read
    person = service.person("viewer")
    page = person.get(AROUND)
    links = dict(
        reversed(pair) for pair in re.findall(r'class="pill" href="([^"]+)">([^<]+)<', page)
    )
    assert set(links) == {"earlier", "later", "last 2 hours", "last 24 hours"}
    for query in links.values():
        assert person.get(GPU + query.replace("&amp;", "&"))
    around = re.search(r'href="(\?[^"]+)">Show that time', page)
    assert around
    assert "f-band" not in section(person.get(GPU + around[1].replace("&amp;", "&")), "tele")


def test_a_case_that_names_nobody_counts_the_gpus_that_were_read(
    serve: Serve, prometheus: Prometheus
) -> None:
    fill(prometheus)
    service = serve({"url": prometheus.url})
    post_job(service, {"check": "reduced gradient", "step": 31, "suspect_window": [31, 31]})
    rounds(service)
    said = words_of(section(service.person("viewer").get(case_of(service)), "dcgm"))
    assert "risen" in said
    assert "32 GPUs read." in said
    assert "The newest alarm" not in said


def test_an_example_asks_nobody_on_its_case_too(serve: Serve) -> None:
    service = serve()
    marked = {"labels": {"example": "true"}}
    service.post(
        {"kind": "rank_map", **d.rank_map(), **marked},
        {"kind": "alarm", **d.alarm(d.CULPRIT), **marked},
    )
    rounds(service)
    said = words_of(section(service.person("viewer").get(case_of(service)), "dcgm"))
    assert "A recorded example: its GPUs are invented" in said


def test_offenders_and_nodes_say_how_often_something_moved(read: tuple[Service, str]) -> None:
    service, _ = read
    person = service.person("viewer")
    said = words_of(person.get("/offenders?window=all"))
    assert "DCGM moved in 1 of 1 window" in said
    page = person.get(node_of(person, 13))
    assert "DCGM moved in 1 of 1 window" in words_of(section(page, "gpu-h"))
    assert "nothing found in 1 window" in words_of(section(page, "gpu-h"))
    assert "nothing was written down that is known here" in words_of(section(page, "xids"))
    assert "DCGM not collected" in words_of(person.get(node_of(person, 0)))
