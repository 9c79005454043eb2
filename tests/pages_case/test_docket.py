"""Does the docket say whom a case waits for, what is next and how the fleet stands?"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.store.docket_details import HOURS, AlarmCell, Details, Work, first_hour
from app.store.docket_reading import DocketCase
from app.web.docket_view import cells_of
from app.web.drawings.hour_cells import described
from app.web.drawings.p_bar import in_digits, in_words
from tests.actions.fleet import SUSPECT, alarm, envelope, rank_map
from tests.actions.service import Service
from tests.doubles.kubernetes.double import KubernetesDouble

REDUCED = {"check": "reduced gradient", "step": 90, "suspect_window": [90, 90]}


def test_an_empty_service_says_how_to_post_and_not_that_all_is_well(
    make_service: Callable[..., Service],
) -> None:
    page = make_service().person("viewer").get("/")
    assert "Nothing has been posted yet" in page
    assert "/api/v1/events" in page
    assert "That is not a finding" in page
    for word in ("healthy", "All good", ">OK<", "safe"):
        assert word not in page


def test_a_row_says_verdict_device_evidence_and_what_is_next(service: Service) -> None:
    page = service.person("viewer").get("/")
    assert "Cordon, replace after review: wrong on its own work and on a peer’s" in page
    assert SUSPECT in page
    assert re.search(r"<span>ring</span> <b>2/2</b>", page)
    assert re.search(r"<span>DCGM</span> <b>not collected</b>", page)
    assert "0.82" in page
    assert "Preview cordon" in page
    assert "Waits for a person" in page
    assert page.count('class="btn do"') == 1


def test_a_case_moves_between_the_groups_as_it_is_decided(
    service: Service, cluster: KubernetesDouble
) -> None:
    assert _group(service) == "person"
    service.decide(service.proposal())
    assert _group(service) == "nobody"
    page = service.person("viewer").get("/")
    assert "Waits for someone else, or is watched" in page
    assert "Cordon approved by administrator" in page
    assert re.search(r"<dt>Nodes cordoned from here</dt><dd>1</dd>", page)


def _group(service: Service) -> str:
    (case,) = service.read("/cases")["items"]
    waits_for: str = case["waits_for"]
    return waits_for


def test_filters_and_pills_narrow_the_docket(service: Service) -> None:
    service.post(alarm("moe-16b", "2026-03-02T11:00:00Z", **REDUCED))
    person = service.person("viewer")
    both = person.get("/")
    assert "llama-953m" in both
    assert "moe-16b" in both
    assert 'All open <span class="count">2</span>' in both
    ambiguous = person.get("/?show=ambiguous")
    assert "moe-16b" in ambiguous
    assert "llama-953m" not in ambiguous.split("<h2")[1]
    named = person.get("/?job=llama-953m&cluster=alpine")
    assert "moe-16b" not in named
    assert "No case is left by these filters" in person.get("/?namespace=nowhere")
    assert person.http.get("/?show=everything").status_code == 400
    assert person.http.get("/?cursor=zzz").status_code == 400


def test_the_fragment_answers_204_until_something_changes(service: Service) -> None:
    person = service.person("viewer")
    stamp = re.search(r'data-stamp="([^"]+)"', person.get("/"))
    assert stamp
    same = person.http.get("/fragment/docket", params={"stamp": stamp[1]})
    assert (same.status_code, same.text) in ((204, ""), (200, same.text))
    now = person.http.get("/fragment/docket")
    newest = now.headers["x-stamp"]
    assert person.http.get("/fragment/docket", params={"stamp": newest}).status_code == 204
    service.post(alarm("other-job", "2026-03-02T11:00:00Z", **REDUCED))
    changed = person.http.get("/fragment/docket", params={"stamp": newest})
    assert changed.status_code == 200
    assert "other-job" in changed.text
    assert "<html" not in changed.text


def test_fifty_cases_a_page_and_each_of_them_once(
    make_service: Callable[..., Service],
) -> None:
    service = make_service()
    documents = [
        alarm(f"job-{number:03}", f"2026-03-02T11:{number % 60:02}:00Z", **REDUCED)
        for number in range(120)
    ]
    service.post(*documents)
    person = service.person("viewer")
    seen: list[str] = []
    address: str | None = "/"
    pages = 0
    while address:
        page = person.get(address)
        seen += re.findall(r'<a class="verdict" href="/cases/(\w+)"', page)
        older = re.search(r'<a class="btn" href="([^"]+)" rel="next">', page)
        address = older[1].replace("&amp;", "&") if older else None
        pages += 1
    assert pages == 3
    assert len(seen) == len(set(seen)) == 120
    assert len(service.read("/cases", limit="30")["items"]) == 30


def test_idle_and_silent_jobs_stand_in_the_strip(make_service: Callable[..., Service]) -> None:
    service = make_service()
    now = datetime.now(UTC)
    start, quiet = _text(now - timedelta(minutes=90)), _text(now - timedelta(minutes=60))
    service.post(
        rank_map("stopped", start),
        alarm("stopped", _text(now - timedelta(minutes=30))),
        rank_map("silent", start),
        envelope("passes", "silent", quiet, check="ring", first_step=1, last_step=100, count=10,
                 gpus=32),
        rank_map("audited", start),
        envelope("passes", "audited", _text(now), check="ring", first_step=1, last_step=100,
                 count=10, gpus=32),
    )  # fmt: skip
    page = service.person("viewer").get("/")
    assert "<dd>32 GPUs</dd>" in page
    assert re.search(r"1[67](\.\d)? GPU-hours so far", page)
    silent = re.search(r"Silent jobs.*?<dd>(\d+)</dd><dd>(.*?)</dd>", page, re.S)
    assert silent
    assert silent[1] == "1"
    assert "silent" in silent[2]
    assert "no pass for 1 h" in silent[2]


def _text(moment: datetime) -> str:
    return moment.isoformat()


NOW = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)


def _case(**more: Any) -> DocketCase:
    values: dict[str, Any] = dict.fromkeys(DocketCase.__slots__)
    return DocketCase(**{**values, "id": 1, "job_id": 7, **more})


def test_each_hour_has_one_of_five_states() -> None:
    hour = first_hour(NOW)
    details = Details(
        alarms={1: [AlarmCell(hour + 23, "ring", False), AlarmCell(hour + 22, "ring", True)]},
        passes={7: {hour + 21}},
        work={7: [Work(7, NOW - timedelta(hours=4), NOW, True, 32)]},
    )
    cells = cells_of(_case(), details, NOW)
    assert len(cells) == HOURS
    assert cells[-5:] == ("unreported", "unreported", "pass", "nobody", "ring")
    assert set(cells[:-5]) == {"none"}
    assert described(cells).startswith("By hours, oldest first: 19 h no work, 2 h work without")


@pytest.mark.parametrize(
    ("p", "digits", "said"),
    [
        (0.82, "0.82", "likely"),
        (0.9997, "0.9997", "very likely"),
        (0.99999, "> 0.9999", "very likely"),
        (1.0, "> 0.9999", "very likely"),
        (0.4, "0.40", ""),
        (0.002, "0.01", ""),
        (0.0001, "below 0.001", ""),
    ],
)
def test_p_is_never_written_as_certain(p: float, digits: str, said: str) -> None:
    assert (in_digits(p), in_words(p)) == (digits, said)
