"""Does a device's history survive renaming, repair and moving, and is nothing called clean?"""

from __future__ import annotations

import html
import json
import re
from urllib.parse import quote, urlencode

import pytest

from app.store.intake.rank_map_rows import gpu_id, node_id
from app.web.words import ident
from tests.pages_timeline.fleet import CASES, Fleet, at, culprit, passes, rank_map

NAME = "hyperpod-i-0c0ffee0000000002"
INSTANCE = "i-0c0ffee0000000002"
UUID = "GPU-a0000002-1111-4222-8333-000000000005"
GREEN = re.compile(r"\b(OK|healthy|clean|safe|innocent)\b", re.I)


def node_path(name: str | None = NAME, instance: str | None = INSTANCE) -> str:
    found = node_id("alpine", name, instance)
    assert found is not None
    return "/nodes/" + ident(found)


def gpu_path(uuid: str = UUID) -> str:
    found = gpu_id(uuid)
    assert found is not None
    return "/gpus/" + ident(found)


def words(page: str, heading: str) -> str:
    """Give the words of one section."""
    section = page.split(f">{heading}</h2>")[1].split("</section>", maxsplit=1)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", section)).split())


@pytest.fixture
def accused(fleet: Fleet) -> Fleet:
    """One job of four nodes; rank 13 is named."""
    fleet.post_all([rank_map(), passes(), culprit()])
    return fleet


def test_a_node_shows_one_alarm_from_each_run_under_its_rank(fleet: Fleet) -> None:
    fleet.post_case("20-same-job-name-run-again")
    page = fleet.page(node_path())
    assert "2 alarms, " in page
    rows = re.findall(
        r'data-l="Rank">(\d+)</td>\s*<td[^>]*data-l="GPU"', page.split('id="al-h"')[1]
    )
    assert sorted(rows) == ["13", "5"]
    assert "2 starts, the newest first" in page


def test_nothing_found_is_said_with_the_hours_and_clears_nothing(accused: Fleet) -> None:
    page = accused.page(node_path("hyperpod-i-0c0ffee0000000003", "i-0c0ffee0000000003"))
    assert "Nothing found" in page
    assert "audited hours. That clears nothing." in page
    assert "No alarm names it." in page
    text = re.sub(r"<[^>]+>", " ", page.split("<main")[1])
    assert not GREEN.findall(text.replace("clears", ""))


def test_a_node_shows_its_case_incident_gpu_and_job(accused: Fleet) -> None:
    page = accused.page(node_path())
    assert "1 alarm, 1 incident" in page
    assert "culprit" in words(page, "Incidents by kind")
    gpus = words(page, "GPUs seen in this node")
    assert UUID in gpus
    assert gpus.count("not scored") == 7
    assert "llama-953m" in words(page, "Jobs that ran here")
    assert "8 of 32" in words(page, "Jobs that ran here")
    assert "Cordon" in words(page, "Actions")
    assert "never read" in page


def test_the_same_instance_under_another_name_and_the_reverse(accused: Fleet) -> None:
    # A name of the scheduler stays when the machine behind it is replaced.
    for minutes, instance in ((50, "i-0c0ffee00000000fe"), (90, "i-0c0ffee00000000ff")):
        renamed = rank_map(f"at {minutes}", time=at(minutes))
        for rank in renamed["ranks"]:
            if rank["instance_id"] == INSTANCE:
                rank["node"] = "renamed-node"
            elif rank["instance_id"] == "i-0c0ffee0000000003":
                rank["node"], rank["instance_id"] = "ip-10-1-57-141", instance
        accused.post(renamed)
    lineage = words(accused.page(node_path()), "Lineage")
    assert "the same instance under another name, later renamed-node" in lineage
    newer = node_path("ip-10-1-57-141", "i-0c0ffee00000000ff")
    assert "another machine under this name, before" in words(accused.page(newer), "Lineage")
    assert "same instance under another name, before" in words(
        accused.page(node_path("renamed-node")), "Lineage"
    )


def test_a_gpu_that_moved_keeps_its_history_and_says_so(accused: Fleet) -> None:
    swapped = rank_map("later", first=21, time=at(90))
    swapped["ranks"][0]["gpu_uuid"] = UUID
    accused.post(swapped)
    page = accused.page(gpu_path())
    assert "Moved between nodes: seen before in" in page
    assert "1 alarm, 1 incident" in page
    places = words(page, "Nodes it was seen in")
    assert places.index("i-0c0ffee0000000015") < places.index(INSTANCE)
    old = accused.page(node_path())
    assert "moved" in words(old, "GPUs seen in this node")
    assert "hyperpod-i-0c0ffee0000000015" in words(old, "GPUs seen in this node")


def test_a_gpu_shows_its_score_case_and_watch(accused: Fleet) -> None:
    page = accused.page(gpu_path())
    assert "0.82" in page
    assert "the terms that made it" in page
    # Ninety days after the second of March.
    assert re.search(r"until <time[^>]*>31 May 10:15</time>", page)
    other = accused.page(gpu_path("GPU-a0000002-1111-4222-8333-000000000004"))
    assert "not scored" in other
    assert "begins with the first incident" in other


@pytest.mark.parametrize(
    "spelling",
    [
        UUID,
        UUID.upper(),
        UUID.removeprefix("GPU-"),
        UUID.replace("-", "")[3:],
        f" {UUID} ",
    ],
)
def test_another_spelling_leads_to_the_gpu(accused: Fleet, spelling: str) -> None:
    answer = accused.get("/gpus/" + quote(spelling))
    assert answer.status_code == 303
    assert answer.headers["location"] == gpu_path()
    assert accused.api("gpus/" + quote(spelling))["uuid"] == UUID


def test_a_beginning_that_fits_several_names_none(accused: Fleet) -> None:
    page = accused.page("/gpus/GPU-a0000002", status=404)
    assert "more than one GPU" in page
    assert accused.get("/gpus/no-such-gpu").status_code == 404
    assert accused.get("/gpus/0000000000000").status_code == 404
    assert accused.get("/nodes/0000000000000").status_code == 404


def test_long_lists_have_pages_without_loss(fleet: Fleet) -> None:
    fleet.post_all([rank_map(f"job-{n}", time=at(n % 7)) for n in range(40)])
    fleet.post_all([culprit(f"job-{n}", time=at(20 + n % 3)) for n in range(40)])
    for name, pattern in (
        ("starts", r'<th scope="row"[^>]*><a href="/jobs/(\w+)"'),
        ("alarms", r'<a href="/alarms/(\w+)"'),
    ):
        path: str | None = node_path()
        seen: list[str] = []
        while path is not None:
            page = fleet.page(path)
            seen += re.findall(pattern, page)
            found = re.search(rf'href="(\?{name}=[^"#]+)', page)
            path = node_path() + html.unescape(found[1]) if found else None
        assert len(seen) == len(set(seen)) == 40, name


def test_a_place_that_is_none_of_ours_is_refused(accused: Fleet) -> None:
    for query in ("?alarms=1", "?alarms=x.0000000000000", "?starts=9.9"):
        accused.page(node_path() + query, status=400)
    accused.page("/nodes?after=zzz", status=400)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ([], 4),
        ([("q", "0000002")], 1),
        ([("q", "HYPERPOD")], 4),
        ([("node", NAME)], 1),
        ([("instance", INSTANCE)], 1),
        ([("gpu", UUID)], 1),
        ([("job", "llama-953m")], 4),
        ([("job", "another")], 0),
        ([("cluster", "elsewhere")], 0),
        ([("status", "unknown")], 4),
        ([("status", "ours")], 0),
        ([("q", "%")], 0),
    ],
)
def test_the_list_of_nodes_is_searched(
    accused: Fleet, query: list[tuple[str, str]], count: int
) -> None:
    page = accused.page("/nodes?" + urlencode(query))
    assert page.count('<tr role="row" data-row>') == count
    assert len(accused.api("nodes?" + urlencode(query))["items"]) == count


def test_the_list_of_nodes_has_pages_in_the_order_of_names(fleet: Fleet) -> None:
    fleet.post(rank_map(nodes=110))
    first = fleet.page("/nodes")
    assert first.count("data-row>") == 100
    link = re.search(r'href="([^"]+)" rel="next"', first)
    assert link
    assert fleet.page(html.unescape(link[1])).count("data-row>") == 10
    names = []
    cursor = ""
    while cursor is not None:
        answer = fleet.api(f"nodes?limit=30{cursor and '&cursor=' + cursor}")
        names += [one["name"] for one in answer["items"]]
        cursor = answer["next"]
    assert names == sorted(names)
    assert len(set(names)) == 110


def test_a_program_reads_a_node_and_a_gpu(accused: Fleet) -> None:
    node = accused.api(node_path().removeprefix("/"))
    assert node["instance_id"] == INSTANCE
    assert (node["alarms"], node["incidents"]) == (1, 1)
    assert [one["kind"] for one in node["incidents_by_kind"]] == ["culprit"]
    assert node["newest_alarms"][0]["ranks"] == [13]
    assert len(node["gpus"]) == 8
    gpu = accused.api("gpus/" + UUID)
    assert gpu["moved"] is False
    assert gpu["p_faulty"] == pytest.approx(0.82, abs=0.01)
    assert gpu["nodes"][0]["name"] == NAME


def test_hostile_names_stay_text_on_node_pages(fleet: Fleet) -> None:
    names = json.loads((CASES / "37-hostile-and-odd-names" / "names.json").read_text())
    for number, name in enumerate(one for one in names if "\x00" not in one and one.strip()):
        document = rank_map("job", first=1 + 4 * number, time=at(number))
        for rank in document["ranks"][:8]:
            rank["node"], rank["instance_id"] = name, None
        fleet.post({**document, "attempt": number + 1})
        path = node_path(name, None)
        page = fleet.page(path)
        for built in ("<img src=x", "<script>alert", '"><script', "\u202e"):
            assert built not in page
        assert "can be cordoned, not replaced" in page
        assert fleet.api(path.removeprefix("/"))["name"] == name
    assert "<img src=x" not in fleet.page("/nodes")


def test_nobody_sees_it_without_a_sign_in(accused: Fleet) -> None:
    accused.http.cookies.clear()
    for path in ("/nodes", node_path(), gpu_path()):
        assert accused.get(path).status_code == 303
    for path in ("nodes", node_path()[1:], gpu_path()[1:]):
        assert accused.http.get("/api/v1/" + path).status_code == 401
