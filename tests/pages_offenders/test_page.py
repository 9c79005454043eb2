"""Does the page of repeat offenders carry its query in the address and keep saved queries?"""

from __future__ import annotations

import html
import json
import re

import pytest

from app.store import tokens
from tests.cases.conftest import DATA, documents
from tests.pages_offenders.house import House
from tests.web.conftest import Browser


def selected(page: str, name: str) -> str:
    """Give the chosen value of a select."""
    box = re.search(rf'<select[^>]* name="{name}">(.*?)</select>', page, re.DOTALL)
    assert box
    chosen = re.search(r'value="([^"]*)" selected', box.group(1))
    assert chosen
    return chosen.group(1)


def test_the_form_shows_the_query_of_the_address(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    address = "/offenders?by=node&window=28&check=ring&incidents=2&jobs=3&rank=rate&kind=transient"
    page = browser.get(address).text
    assert selected(page, "by") == "node"
    assert selected(page, "window") == "28"
    assert selected(page, "rank") == "rate"
    assert re.search(r'name="incidents" type="number" value="2"', page)
    assert re.search(r'name="jobs" type="number" value="3"', page)
    ticked = re.findall(r'name="(?:check|kind)" value="([^"]*)" checked', page)
    assert ticked == ["ring", "transient"]
    found = re.search(r'href="(/api/v1/offenders\?[^"]*)">CSV', page)
    assert found
    for part in ("by=node", "window=28", "check=ring", "incidents=2", "rank=rate", "format=csv"):
        assert part in html.unescape(found.group(1))


def test_a_wrong_address_says_what_is_wrong(one_house: House) -> None:
    answer = one_house.sign_in("viewer").get("/offenders?window=13")
    assert answer.status_code == 400
    assert "window must be one of" in answer.text


def test_nobody_reads_it_without_signing_in(one_house: House) -> None:
    answer = Browser(one_house.app).get("/offenders")
    assert (answer.status_code, answer.headers["location"][:8]) == (303, "/sign-in")


def test_a_query_is_saved_listed_replaced_and_removed(house: House) -> None:
    browser = house.sign_in("viewer", "Kim")
    fields = {"name": "Lemons", "query": "window=28&incidents=2"}
    answer = browser.post("/offenders/queries", fields)
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/offenders?window=28&incidents=2",
    )
    page = browser.get(answer.headers["location"]).text
    assert "Query “Lemons” saved by Kim" in page
    assert '<a class="pill" href="/offenders?window=28&amp;incidents=2"' in page
    browser.post("/offenders/queries", {"name": "Lemons", "query": "window=7"})
    page = browser.get("/offenders").text
    assert "/offenders?window=7" in page
    assert "window=28" not in page
    number = re.search(r"/offenders/queries/(\d+)/remove", page)
    assert number
    other = house.sign_in("operator", "Lee")
    assert other.post(f"/offenders/queries/{number.group(1)}/remove").status_code == 403
    gone = browser.post(f"/offenders/queries/{number.group(1)}/remove")
    assert gone.status_code == 303
    assert 'class="pill"' not in browser.get("/offenders").text
    assert browser.post(f"/offenders/queries/{number.group(1)}/remove").status_code == 404


def test_saving_needs_a_form_of_ours_and_a_query_that_can_be_read(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    assert browser.http.post("/offenders/queries", data={"name": "x"}).status_code == 403
    assert browser.get("/offenders/queries").status_code == 405
    assert browser.post("/offenders/queries", {"name": " "}).status_code == 422
    bad = browser.post("/offenders/queries", {"name": "x", "query": "window=13"})
    assert bad.status_code == 400
    assert browser.post("/offenders/queries/99999999999999999999/remove").status_code in (404, 422)


def test_hostile_names_stay_text(one_house: House) -> None:
    names = json.loads((DATA / "37-hostile-and-odd-names" / "names.json").read_text("utf-8"))
    for document in documents("37", "posts.ndjson"):
        if "\x00" not in document["job"]:
            one_house.post(document)
    browser = one_house.sign_in("viewer")
    for address in ("/offenders", "/offenders?by=node&window=all", "/jobs", "/triage?q=%3C"):
        page = browser.get(address).text
        assert "<img src=x" not in page
        assert "<script>alert" not in page
        assert "\u202e" not in page
    page = browser.get("/jobs").text
    assert "{{7*7}}" in page
    assert "U+202E" in page
    for name in names:
        if "\x00" in name or not name.isascii():
            continue
        job = browser.get(f"/jobs/{one_house.job_id(name)}")
        assert job.status_code == 200
        assert html.escape(name[:40]) in job.text.replace("&#34;", "&quot;").replace(
            "&#39;", "&#x27;"
        )


@pytest.mark.parametrize("scope", [("alpine", None), ("boreal", None), ("alpine", "research")])
def test_a_token_sees_its_own_cluster_only(one_house: House, scope: tuple[str, str | None]) -> None:
    one_house.post(*documents("61", "events.ndjson"))
    now = one_house.context.now()
    cluster, namespace = scope
    _, secret = one_house.context.store.write(
        lambda c: tokens.create(
            c, name="t", cluster=cluster, namespace=namespace, scope="read", by="admin", at=now
        )
    )
    header = {"Authorization": f"Bearer {secret}"}
    answer = one_house.program.get("/api/v1/offenders", headers=header)
    if scope[1]:
        assert answer.status_code == 403
    else:
        assert len(answer.json()["items"]) == (3 if scope[0] == "alpine" else 0)
    jobs = one_house.program.get("/api/v1/jobs", headers=header).json()["items"]
    assert len(jobs) == (2 if scope[0] == "alpine" else 0)
