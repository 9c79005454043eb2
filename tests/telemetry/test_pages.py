"""Do the pages of an alarm and a case show what was read, drawn and written down?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from app.store import node_evidence
from app.store.node_records import Raw
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import words_of
from tests.prometheus import Prometheus
from tests.telemetry import nodes
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.pages import AROUND, GRAFANA, GREEN, case_of, fill, section

Serve = Callable[..., Service]


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """Pages read through queries that other tests run on both databases."""
    return migrated_sqlite_url


@pytest.fixture
def read(serve: Serve, prometheus: Prometheus) -> tuple[Service, str]:
    """Serve one alarm whose telemetry was read."""
    fill(prometheus)
    service = serve({"url": prometheus.url, "level": "basic", "grafana": GRAFANA})
    alarm = post_job(service)
    assert rounds(service) == 11
    return service, alarm


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


def test_a_source_that_is_away_is_named_while_it_is_waited_for(serve: Serve) -> None:
    service = serve({"url": "http" + "://127.0.0.1:9", "timeout_s": 1})
    alarm, person = post_job(service), service.person("viewer")
    rounds(service)
    for path in (f"/alarms/{alarm}", case_of(service)):
        said = words_of(section(person.get(path), "dcgm"))
        assert "Asked again later: The source did not give an answer" in said
        assert "More is being collected" in said


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
