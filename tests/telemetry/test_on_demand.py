"""Can a person and a program ask for any time of a GPU, see what came, and ask again?"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from app.store import ids, tokens
from app.web.words import ident
from tests.actions.service import BEARER, Person, Service
from tests.pages_alarm import documents as d
from tests.prometheus import Prometheus
from tests.telemetry.conftest import ALARM_AT, every, labels, post_job, rounds

GREEN = re.compile(r"\b(healthy|clean|innocent)\b", re.I)
SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
TEMP = "DCGM_FI_DEV_GPU_TEMP"
DAY_BEFORE = ALARM_AT - 86_400
PAGE = "/gpus/" + ident(ids.derive("gpu", d.gpu(13)))


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


RANGE = {"from": at(DAY_BEFORE), "to": at(DAY_BEFORE + 3_600)}
QUERY = "?from={from}&to={to}".format(**RANGE)


def the_day_before(prometheus: Prometheus) -> None:
    """Store an hour of one node, a day before the alarm; rank 13 has a gap and counts errors."""
    prometheus.write(
        [
            (
                labels(field, rank),
                [
                    (DAY_BEFORE + 15 * n, 60.0 + rank if field == TEMP else float(n // 100))
                    for n in range(240)
                    if rank != 13 or not 100 < n < 120
                ],
            )
            for rank in range(8, 16)
            for field in (TEMP, SBE)
        ]
    )


def words(page: str) -> str:
    """Give the words of the telemetry section."""
    section = page.split('id="tele"')[1].split("</section>", maxsplit=1)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", section).split())


def press(person: Person, path: str = f"{PAGE}/telemetry", **fields: Any) -> str:
    return person.press(path, PAGE, **(fields or RANGE))


def test_a_person_asks_for_a_time_and_sees_what_came(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    the_day_before(prometheus)
    service = serve({"url": prometheus.url})
    post_job(service)
    rounds(service)
    person = service.person("operator", "ada")
    before = words(person.get(PAGE + QUERY))
    assert "No samples of this GPU are kept in this time. Nobody asked for them." in before
    assert "Asked for this GPU and 7 other GPUs of its node." in press(person)
    assert "8 windows wait" in words(person.get(PAGE + QUERY))
    entry = service.audit()["telemetry_asked"]
    assert entry.actor == "ada"
    assert entry.details["gpu"] == d.gpu(13)
    assert entry.details["gpus"] == 8
    assert rounds(service) == 8
    page = person.get(PAGE + QUERY)
    shown = words(page)
    assert "this GPU and 7 others: Done." in shown
    assert "this GPU against 7 other GPUs" in page
    assert "f-hatch" in page.split('id="tele"')[1]
    assert "rose by 2" in shown
    assert "73 °C" in shown
    assert not GREEN.search(shown)


def test_a_repeat_queues_nothing_and_writes_nothing(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve({"url": prometheus.url})
    post_job(service)
    person = service.person("operator")
    press(person)
    first = service.audit()["telemetry_asked"]
    assert "was asked for before; nothing was queued" in press(person)
    assert service.audit()["telemetry_asked"] == first


def test_the_page_tells_what_was_read_for_each_alarm(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    prometheus.write([(labels(SBE, rank), every(lambda _: 0.0)) for rank in range(8, 13)])
    prometheus.write([(labels(SBE, 13), every(lambda since: 9.0 if since > -20 else 0.0))])
    service = serve({"url": prometheus.url})
    alarm = post_job(service)
    person = service.person("viewer")
    assert "No telemetry was read of this GPU for any alarm." in words(person.get(PAGE))
    rounds(service)
    around = f"?from={at(ALARM_AT - 1_800)}&to={at(ALARM_AT + 300)}"
    page = person.get(PAGE + around)
    section = page.split('id="tele"')[1].split("</section>", maxsplit=1)[0]
    assert "DCGM risen" in words(page)
    assert section.count(f'href="/alarms/{alarm}"') == 2
    assert 'stroke-dasharray="2 2"' in section
    assert 'method="post"' not in section


def test_no_source_and_a_refusal_are_said_and_can_be_asked_again(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve()
    alarm = post_job(service)
    person = service.person("operator")
    press(person)
    rounds(service)
    page = person.get(PAGE + QUERY)
    assert "No source of metrics is configured for this cluster." in words(page)
    assert f"{PAGE}/telemetry/again" in page
    later = serve({"url": f"{prometheus.url}/wrong"})
    person = later.person("operator", "another")
    assert "8 windows queued once more" in press(person, f"{PAGE}/telemetry/again")
    assert later.audit()["telemetry_asked_again"].actor == "another"
    rounds(later)
    assert "The source refused" in words(person.get(PAGE + QUERY))
    again = f"/alarms/{alarm}/telemetry/again"
    assert again in person.get(f"/alarms/{alarm}")
    assert "11 windows queued once more" in person.press(again, f"/alarms/{alarm}")
    assert "no window here has come to nothing" in person.press(again, f"/alarms/{alarm}")
    assert again not in person.get(f"/alarms/{alarm}")


@pytest.mark.parametrize("path", [f"{PAGE}/telemetry", f"{PAGE}/telemetry/again", "alarm"])
def test_every_post_refuses_get_and_needs_its_token_and_role(
    serve: Callable[..., Service], path: str
) -> None:
    service = serve()
    alarm = post_job(service)
    path = f"/alarms/{alarm}/telemetry/again" if path == "alarm" else path
    operator, viewer = service.person("operator"), service.person("viewer")
    answer = operator.http.get(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert operator.http.post(path, data=RANGE).status_code == 403
    assert operator.http.post(path, data={"csrf": "0" * 64, **RANGE}).status_code == 403
    answer = viewer.send(path, "/search", **RANGE)
    assert answer.status_code == 403
    assert "role operator" in answer.text
    assert not {"telemetry_asked", "telemetry_asked_again"} & set(service.audit())


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?from=2026-11-01T00:00:00Z&to=2026-11-03T00:00:00Z", "longer than 24 hours"),
        ("?from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "earlier than to"),
        ("?from=2099-01-01T00:00:00Z", "not in the future"),
        ("?from=1980-01-01", "after the year 1999"),
        ("?to=yesterday", "must be a time"),
        ("?to=2026-11-02&to=2026-11-03", "more than once"),
    ],
)
def test_a_time_that_cannot_be_asked_for_is_refused(
    serve: Callable[..., Service], query: str, said: str
) -> None:
    service = serve()
    post_job(service)
    answer = service.person("viewer").http.get(PAGE + query)
    assert answer.status_code == 400
    assert said in answer.text
    api = httpx2.get(f"{service.url}/api/v1{PAGE}/telemetry{query}", headers=BEARER)
    assert api.status_code == 400
    assert said in api.json()["error"]["message"]


def test_a_gpu_of_which_no_source_can_be_asked(serve: Callable[..., Service]) -> None:
    service = serve()
    ranks = d.rank_map()
    ranks["ranks"][13]["gpu_uuid"] = "GPU-abcd1234"
    service.post({"kind": "rank_map", **ranks})
    page = "/gpus/" + service.read("/gpus/GPU-abcd1234")["id"]
    person = service.person("operator")
    answer = person.press(f"{page}/telemetry", page, **RANGE)
    assert "A source is asked by whole UUIDs" in answer
    refused = httpx2.post(f"{service.url}/api/v1{page}/telemetry", json=RANGE, headers=BEARER)
    assert refused.status_code == 409


def test_people_cannot_fill_the_queue(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.actions.telemetry.on_demand.MOST_WAITING", 10)
    service = serve()
    post_job(service)
    person = service.person("operator")
    press(person)
    more = {"from": at(DAY_BEFORE - 7_200), "to": RANGE["from"]}
    assert "are the most to wait" in press(person, **more)
    answer = httpx2.post(f"{service.url}/api/v1{PAGE}/telemetry", json=more, headers=BEARER)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")


def test_a_program_asks_and_reads_json_and_csv(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    the_day_before(prometheus)
    service = serve({"url": prometheus.url, "level": "basic", "interval_s": 15})
    post_job(service)
    address = f"{service.url}/api/v1/gpus/{d.gpu(13)}/telemetry"
    for fresh in (8, 0):
        answer = httpx2.post(address, json=RANGE, headers=BEARER)
        assert (answer.status_code, answer.json()["queued"]) == (202, fresh)
    rounds(service)
    found = service.read(f"/gpus/{d.gpu(13)}/telemetry", **RANGE)
    assert [one["state"] for one in found["windows"]] == ["done"]
    assert (found["windows"][0]["source"], found["windows"][0]["level"]) == ("alpine/1", "basic")
    _, sbe = sorted(found["series"], key=lambda one: int(one["field_id"]))
    assert sbe["field_id"] == 310
    assert len(sbe["times"]) == len(sbe["values"]) == 221
    assert sbe["times"][0] == DAY_BEFORE
    assert sbe["rise"] == 2.0
    assert [(one["kind"], one["count"]) for one in sbe["marks"]] == [("gap", 19)]
    text = httpx2.get(address, params={**RANGE, "fields": "150", "format": "csv"}, headers=BEARER)
    lines = text.text.splitlines()
    assert lines[0] == "time,gpu_uuid,field,field_id,part,unit,value,mark,raw"
    assert len(lines) == 222
    assert lines[1].startswith(f"{at(DAY_BEFORE)},{d.gpu(13)},")


def test_overlapping_windows_are_one_line(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    the_day_before(prometheus)
    service = serve({"url": prometheus.url})
    post_job(service)
    person = service.person("operator")
    for first, last in ((0, 3_600), (0, 7_200), (1_800, 9_000)):
        press(person, **{"from": at(DAY_BEFORE + first), "to": at(DAY_BEFORE + last)})
        rounds(service)
    found = service.read(
        f"/gpus/{d.gpu(13)}/telemetry", **{"from": RANGE["from"], "to": at(DAY_BEFORE + 9_000)}
    )
    assert len(found["windows"]) == 3
    assert [len(one["times"]) for one in found["series"]] == [221, 221]


def test_who_may_read_and_ask(serve: Callable[..., Service]) -> None:
    service = serve()
    post_job(service)
    now = service.context.now()

    def token(scope: str, cluster: str | None) -> dict[str, str]:
        about: dict[str, Any] = {"cluster": cluster, "namespace": None, "scope": scope}
        _, secret = service.context.store.write(
            lambda c: tokens.create(c, name=f"{scope} {cluster}", by="a test", at=now, **about)
        )
        return {"authorization": f"Bearer {secret}"}

    address = f"{service.url}/api/v1/gpus/{d.gpu(13)}/telemetry"
    assert httpx2.get(address).status_code == 401
    assert httpx2.get(address, headers=token("read", "alpine")).status_code == 200
    assert httpx2.get(address, headers=token("read", "elsewhere")).status_code == 404
    assert httpx2.get(address, headers=token("write", "alpine")).status_code == 403
    assert httpx2.post(address, json=RANGE, headers=token("read", None)).status_code == 403
    elsewhere = httpx2.post(address, json=RANGE, headers=token("decide", "elsewhere"))
    assert elsewhere.status_code == 404
    person = service.person("operator")
    assert person.http.get(f"/api/v1{PAGE}/telemetry").status_code == 200
    assert person.http.post(f"/api/v1{PAGE}/telemetry", json=RANGE).status_code == 401
    assert httpx2.get(f"{address}?fields=nope", headers=BEARER).status_code == 400
    assert httpx2.get(f"{address}?limit=3", headers=BEARER).status_code == 400


def test_a_window_of_an_alarm_can_be_asked_for_by_hand_as_well(
    serve: Callable[..., Service], prometheus: Prometheus
) -> None:
    service = serve({"url": prometheus.url})
    post_job(service)
    rounds(service)
    (known,) = service.read(
        f"/gpus/{d.gpu(13)}/telemetry", **{"from": at(ALARM_AT - 60), "to": at(ALARM_AT)}
    )["windows"]
    person = service.person("operator")
    span = {"from": known["from"], "to": known["to"]}
    assert "Asked for this GPU" in press(person, **span)
    assert rounds(service) == 0
    assert "the source has no samples of this GPU" in person.get(
        f"{PAGE}?from={span['from']}&to={span['to']}"
    )
