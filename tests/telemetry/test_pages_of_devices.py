"""Do GPUs, nodes and offenders show times, actions and what moved, and renew themselves?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from app.store import ids
from app.store.tables import proposals
from app.web.words import ident
from tests.actions.service import Service
from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import words_of
from tests.prometheus import Prometheus
from tests.telemetry.conftest import ALARM_AT, post_job, rounds
from tests.telemetry.pages import AROUND, GPU, GRAFANA, at, case_of, fill, node_of, section

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
