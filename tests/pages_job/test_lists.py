"""Do the lists of jobs and of coverage hold every row once, in the stated order?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.pages_alarm.documents import passes, rank_map
from tests.pages_offenders.house import House


def through(house: House, path: str, limit: int) -> list[dict[str, Any]]:
    """Follow a list to its end."""
    items: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(40):
        answer = house.read(f"{path}limit={limit}{cursor}")
        items += answer["items"]
        if answer["next"] is None:
            return items
        cursor = f"&cursor={answer['next']}"
    raise AssertionError("the list does not end")


def test_jobs_come_newest_first_and_once_even_at_one_moment(house: House) -> None:
    for number in range(7):
        clock = "14:00:00" if number < 5 else f"15:00:0{number}"
        house.post(rank_map(world=8, job=f"job-{number}", clock=clock))
    found = through(house, "jobs?", 3)
    assert [one["job"] for one in found[:2]] == ["job-6", "job-5"]
    assert sorted(one["job"] for one in found) == [f"job-{number}" for number in range(7)]
    assert [one["last_seen_at"] for one in found] == sorted(
        (one["last_seen_at"] for one in found), reverse=True
    )


def test_jobs_are_filtered(house: House) -> None:
    house.post(rank_map(world=8, job="Alpha"), rank_map(world=8, job="beta", clock="16:00:00"))
    assert [one["job"] for one in house.read("jobs?q=alp")["items"]] == ["Alpha"]
    assert [one["job"] for one in house.read("jobs?job=beta")["items"]] == ["beta"]
    job = house.job_id("beta")
    assert [one["job"] for one in house.read(f"jobs?job={job}")["items"]] == ["beta"]
    assert house.read("jobs?namespace=other")["items"] == []
    later = house.read("jobs?from=2026-11-02T15:00:00Z")["items"]
    assert [one["job"] for one in later] == ["beta"]
    assert house.read("jobs?status=alarmed")["items"] == []
    assert house.ask("jobs?status=odd").status_code == 400
    assert house.ask("jobs?node=x").status_code == 400
    assert house.ask("jobs?format=csv").text.splitlines()[0].startswith("id,cluster,namespace,job")


def test_the_page_pages_with_its_filters(one_house: House) -> None:
    for number in range(53):
        one_house.post(rank_map(world=1, job=f"job-{number:02}"))
    browser = one_house.sign_in("viewer")
    page = browser.get("/jobs?namespace=research").text
    first = set(re.findall(r">(job-\d\d)<", page))
    assert len(first) == 50
    older = re.search(r'href="(/jobs\?namespace=research&amp;cursor=[^"]*)" rel="next"', page)
    assert older
    page = browser.get(older.group(1).replace("&amp;", "&")).text
    assert (
        set(re.findall(r">(job-\d\d)<", page))
        == {f"job-{number:02}" for number in range(53)} - first
    )
    assert 'rel="prev"' in page
    for cursor in ("x", "1.2", "99999999999999999999.0000000000000", "1.0000000000000%00"):
        assert browser.get(f"/jobs?cursor={cursor}").status_code == 400


def test_coverage_is_listed_by_attempt_and_check(house: House) -> None:
    for number in range(3):
        house.post(rank_map(job=f"job-{number}"))
        for check in ("ring", "weights", "nonfinite"):
            house.post(passes(check, 0, 9, 10, job=f"job-{number}", clock="14:10:00"))
    found = through(house, "coverage?", 2)
    assert len(found) == 9
    assert [(one["attempt_id"], one["check"]) for one in found] == sorted(
        (one["attempt_id"], one["check"]) for one in found
    )
    assert {one["gpu_audits"] for one in found} == {320}
    assert found[0]["false_alarm_bound"] == pytest.approx(3 / 320)
    only = house.read("coverage?job=job-1&check=ring")["items"]
    assert [(one["job"], one["check"]) for one in only] == [("job-1", "ring")]
    assert house.read("coverage?from=2026-11-02T14:10:01Z")["items"] == []
    csv = house.ask("coverage?format=csv&limit=4")
    assert len(csv.text.splitlines()) == 5
    assert 'rel="next"' in csv.headers["link"]
