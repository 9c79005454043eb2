"""Are names that jobs choose plain text everywhere on the page of an alarm?"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import House, words_of

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "'); DROP TABLE alarms; --",
    "../../etc/passwd",
    "left\u202eright",
    "x" * 300,
    "line\nbreak\ttab",
)


class _Elements(HTMLParser):
    """Collects what a browser would build."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.styles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.styles += sum(name == "style" for name, _ in attrs)


def _built(markup: str) -> _Elements:
    parser = _Elements()
    parser.feed(markup)
    return parser


def _post(house: House, name: str, number: int) -> str:
    placed = d.rank_map(32, job=name)
    for row in placed["ranks"]:
        row["node"] = f"{name[:60]}-{row['rank'] // 8}-{number}"
        row["pod"] = name
    house.post(placed)
    said = d.compute(
        mismatched_pairs=[[13, 5]],
        verdicts=[{"pair": [13, 5], "third": 21, "suspect": 13, "kind": name[:80]}],
    )
    return house.post({**d.alarm(said, job=name), "code_digest": name, name[:40]: name})


def test_names_are_text_and_nothing_else(quick: House) -> None:
    plain = _built(quick.page(_post(quick, "plain", 99)))
    for number, name in enumerate(NAMES):
        alarm_id = _post(quick, name, number)
        page = quick.page(alarm_id)
        built = _built(page)
        assert built.tags.count("script") == plain.tags.count("script"), name
        assert "img" not in built.tags
        assert built.handlers == []
        assert built.styles == 0
        assert "\u202e" not in page
        text = words_of(page)
        if "\u202e" in name or "\n" in name:
            assert "U+" in text
        else:
            assert name[:30] in text
        if "{{" in name:
            assert " 49 " not in text
        title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
        assert title
        assert "<" not in title.group(1)


def test_links_lead_to_the_job_by_id(quick: House) -> None:
    alarm_id = _post(quick, "../../etc/passwd", 1)
    links = re.findall(r'href="([^"]*)"', quick.page(alarm_id))
    assert not any("etc" in link for link in links)
    job = quick.read(alarm_id)["job_id"]
    assert f"/jobs/{job}" in links


def test_lists_hold_them_as_they_came(quick: House) -> None:
    for number, name in enumerate(NAMES):
        alarm_id = _post(quick, name, number)
        read = quick.read(alarm_id)
        assert read["job"] == name
        assert json.dumps(read)
    listed = {one["job"] for one in quick.get("/api/v1/alarms?limit=1000").json()["items"]}
    assert listed == set(NAMES)


@pytest.mark.parametrize("ranks", [[10**9], [2**31 - 1, 0]])
def test_ranks_outside_the_job_are_shown(quick: House, ranks: list[int]) -> None:
    quick.post(d.rank_map())
    said = d.compute(culprits=ranks, mismatched_pairs=[[ranks[0], 5], [13, ranks[0]]])
    text = quick.text(quick.post(d.alarm(said)))
    assert str(ranks[0]) in text
    assert "lies outside" in text or "is not one of" in text or "software" in text
