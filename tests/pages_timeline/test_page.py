"""Does the timeline show what happened, and nothing else?"""

from __future__ import annotations

import html
import json
import re
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from app.store import audit, ids
from app.store.connection import Connection
from app.store.tables import elastic_events, jobs
from tests.pages_timeline.fleet import (
    CASES,
    NOW,
    START,
    Fleet,
    at,
    chart_of,
    checkpoint,
    culprit,
    passes,
    rank_map,
    weights,
)

ALL = "/timeline?range=all"


def listed(page: str) -> list[str]:
    """Give the lines of the list in plain words."""
    rows = re.findall(r"<li( data-row| class=\"gap\"| class=\"day\")>(.*?)</li>", page, re.S)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for _, row in rows]


@pytest.fixture
def two_jobs(fleet: Fleet) -> Fleet:
    """Two jobs on other nodes: one culprit by the ring, one alarm that names nobody."""
    fleet.post_all([rank_map(), passes(), checkpoint(20, 13), checkpoint(25, 14.7), culprit()])
    fleet.post_all([rank_map("sft-8b", first=9), weights("sft-8b", rank=None)])
    return fleet


def test_an_empty_store_is_said_to_be_empty(fleet: Fleet) -> None:
    page = fleet.page("/timeline")
    assert "No alarm in 7 days." in page
    assert "Nothing in this range." in page
    assert chart_of(page)["lanes"] == 0


def test_lanes_marks_and_the_list_tell_the_same(two_jobs: Fleet) -> None:
    page = two_jobs.page(ALL)
    chart = chart_of(page)
    assert "2 alarms in" in page
    assert "1 names a rank, 1 names nobody" in page
    assert sorted(mark[2] for mark in chart["marks"]) == ["nobody", "ring"]
    lines = listed(page)
    assert any("Ring alarm at step 30: rank 13, GPU a0000002 of" in line for line in lines)
    assert any("Weights alarm at step 40: nobody named" in line for line in lines)
    assert any("sft-8b , attempt 1 started: 32 ranks" in line for line in lines)


def test_a_window_is_placed_by_the_pass_before_it(two_jobs: Fleet) -> None:
    chart = chart_of(two_jobs.page(ALL))
    (window,) = chart["windows"]
    mark = next(mark for mark in chart["marks"] if mark[2] == "ring")
    assert window[0] == mark[0]
    assert window[2] == mark[1]
    assert mark[1] - window[1] == 60_000  # the pass at step 20 came one minute before
    assert "steps 21–30" in window[3]


def test_a_window_without_step_time_or_pass_is_said_not_to_be_drawn(fleet: Fleet) -> None:
    fleet.post_all([rank_map(), culprit()])
    page = fleet.page(ALL)
    assert chart_of(page)["windows"] == []
    assert "1 suspect window not drawn" in page


def test_checkpoints_lie_before_and_inside_the_window(two_jobs: Fleet) -> None:
    flags = chart_of(two_jobs.page(ALL))["checkpoints"]
    assert {(flag[3].split("\n")[0], flag[2]) for flag in flags} == {
        ("checkpoint of step 20", "before"),
        ("checkpoint of step 25", "inside"),
    }


def test_passes_are_drawn_and_hours_without_any_are_hatched(fleet: Fleet) -> None:
    early = [rank_map(time=at(-300)), passes(time=at(-286))]
    fleet.post_all([*early, passes(last=90, time=at(100)), culprit(step=99, time=at(101))])
    chart = chart_of(fleet.page("/timeline?range=7d"))
    assert chart["strips"]
    hour = 3_600_000
    assert any(stretch[2] - stretch[1] >= hour for stretch in chart["silent"])


def test_an_alarm_before_its_rank_map_stands_there_unresolved(fleet: Fleet) -> None:
    fleet.post(culprit())
    page = fleet.page(ALL)
    assert "not resolved: no rank map yet" in page
    assert "Not resolved" in page
    assert len(chart_of(page)["marks"]) == 1
    fleet.post(rank_map())
    assert "not resolved: no rank map yet" not in fleet.page(ALL)


def test_the_same_job_name_run_again_is_two_runs(fleet: Fleet) -> None:
    fleet.post_case("20-same-job-name-run-again")
    page = fleet.page(ALL + "&by=job")
    starts = [line for line in listed(page) if "started" in line]
    assert len(starts) == 2
    lanes = {mark[0] for mark in chart_of(page)["marks"]}
    assert len(chart_of(page)["marks"]) == 2
    assert lanes == {0}
    nodes = chart_of(fleet.page(ALL))
    assert len({mark[0] for mark in nodes["marks"]}) == 1  # both name the same machine


def test_days_without_anything_are_a_line(fleet: Fleet) -> None:
    fleet.post_all([rank_map(), culprit(), culprit("sft-8b", time="2026-02-27T09:00:00Z")])
    assert "3 days" in " ".join(listed(fleet.page(ALL)))


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ([("check", "ring")], "llama"),
        ([("check", "weights")], "sft"),
        ([("rule", "R1")], "llama"),
        ([("rule", "W2")], "sft"),
        ([("status", "suspect")], "llama"),
        ([("status", "ambiguous")], "sft"),
        ([("job", "llama-953m")], "llama"),
        ([("node", "hyperpod-i-0c0ffee0000000002")], "llama"),
        ([("instance", "i-0c0ffee0000000002")], "llama"),
        ([("gpu", "GPU-a0000002-1111-4222-8333-000000000005")], "llama"),
        ([("gpu", "A0000002-1111-4222-8333-000000000005")], "llama"),
        ([("q", "LLAMA")], "llama"),
        ([("q", "sft-")], "sft"),
        ([("from", "2026-03-02T10:16:00Z"), ("to", "2026-03-02T11:00:00Z")], "sft"),
        ([("from", "2026-03-02T10:10:00Z"), ("to", "2026-03-02T10:16:00Z")], "llama"),
        ([("job", "sft-8b"), ("check", "weights")], "sft"),
    ],
)
def test_a_filter_keeps_what_it_names(
    two_jobs: Fleet, query: list[tuple[str, str]], kept: str
) -> None:
    given = query if query[0][0] == "from" else [("range", "all"), *query]
    lines = listed(two_jobs.page("/timeline?" + urlencode(given)))
    alarms = [line for line in lines if "alarm at step" in line]
    assert len(alarms) == 1, lines
    assert ("llama" if "Ring" in alarms[0] else "sft") == kept


@pytest.mark.parametrize(
    "query",
    [
        [("cluster", "elsewhere")],
        [("namespace", "other")],
        [("job", "no-such-job")],
        [("node", "no-such-node")],
        [("gpu", "GPU-ffffffff-1111-4222-8333-000000000005")],
        [("check", "of my own")],
        [("node", "hyperpod-i-0c0ffee0000000002"), ("rule", "W1")],
        [("job", "llama-953m"), ("node", "hyperpod-i-0c0ffee0000000009")],
    ],
)
def test_a_filter_that_fits_nothing_shows_nothing(
    two_jobs: Fleet, query: list[tuple[str, str]]
) -> None:
    page = two_jobs.page("/timeline?" + urlencode([("range", "all"), *query]))
    assert not [line for line in listed(page) if "alarm at step" in line]
    assert chart_of(page)["marks"] == []


def test_a_filter_is_a_chip_that_takes_it_away(two_jobs: Fleet) -> None:
    page = two_jobs.page(ALL + "&check=ring&q=llama")
    chips = re.findall(r'<a class="pill on" href="([^"]+)"[^>]*>(.*?)</a>', page, re.S)
    assert ["check ring" in label for _, label in chips] == [True, False]
    without = two_jobs.page(html.unescape(chips[0][0]))
    assert "text llama" in without
    assert "check ring" not in without


def test_five_minutes_around_an_alarm_show_it(two_jobs: Fleet) -> None:
    row = re.search(r"<b>Ring alarm.*?</li>", two_jobs.page(ALL), re.S)
    assert row
    around = html.unescape(re.findall(r'href="([^"]+)">±5 min</a>', row[0])[0])
    assert "from=2026-03-02T10%3A10%3A00Z" in around
    assert "2 alarms in 10 minutes" in two_jobs.page(
        "/timeline?from=2026-03-02T10:12:00Z&to=2026-03-02T10:22:00Z"
    )
    assert "1 alarm in 10 minutes" in two_jobs.page(around)


def test_every_page_of_the_list_follows_without_loss_or_repeat(fleet: Fleet) -> None:
    # Seventy alarms of three moments: ties must neither be lost nor come twice.
    fleet.post_all([rank_map()])
    fleet.post_all([culprit(step=30 + n, time=at(15 + n % 3)) for n in range(70)])
    seen: list[str] = []
    address: str | None = ALL
    pages = 0
    while address is not None:
        page = fleet.page(address)
        seen += re.findall(
            r"Ring alarm at step ([0-9]+)", page.split('id="list-h"')[1].split("<script")[0]
        )
        found = re.search(r'href="([^"]+)" rel="next"', page)
        address = html.unescape(found[1]) if found else None
        pages += 1
    assert pages == 2
    assert sorted(map(int, seen)) == list(range(30, 100))


@pytest.mark.parametrize("by", ["node", "gpu", "job", "slice"])
def test_every_way_of_lanes_holds_the_alarms(two_jobs: Fleet, by: str) -> None:
    chart = chart_of(two_jobs.page(f"{ALL}&by={by}"))
    assert len(chart["marks"]) == 2
    assert len({mark[0] for mark in chart["marks"]}) == 2


def test_lanes_beyond_the_first_are_counted(fleet: Fleet) -> None:
    fleet.post_all([rank_map(nodes=32)])
    fleet.post_all([culprit(rank=16 + 8 * n, step=30 + n) for n in range(15)])
    page = fleet.page(ALL)
    assert chart_of(page)["lanes"] == 12
    assert "and 3 more: show up to 40" in page
    assert chart_of(fleet.page(ALL + "&lanes=40"))["lanes"] == 15


@pytest.mark.parametrize("query", ["range=2h", "by=rank", "from=x", "before=zzz", "status=open"])
def test_what_is_wrong_is_answered_with_400(fleet: Fleet, query: str) -> None:
    fleet.page("/timeline?" + query, status=400)
    fleet.page("/timeline/view?" + query, status=400)


def test_without_a_script_the_histogram_and_the_list_are_there(two_jobs: Fleet) -> None:
    page = two_jobs.page(ALL)
    assert re.search(r'<svg [^>]*role="group" aria-labelledby="ov-t ov-d">', page)
    assert "2 alarms from" in page
    segments = re.findall(r'<a href="(/timeline\?[^"]+)" tabindex="-1"', page)
    assert len(segments) == 32
    two_jobs.page(html.unescape(segments[0]))
    assert "The alarms over time as a table" in page


def test_names_stay_text_in_page_chart_and_links(fleet: Fleet) -> None:
    names = json.loads((CASES / "37-hostile-and-odd-names" / "names.json").read_text())
    usable = [name for name in names if "\x00" not in name]
    for number, name in enumerate(usable):
        fleet.post({**rank_map(name, first=1 + 4 * number), "time": at(number)})
        fleet.post(culprit(name, time=at(20 + number)))
    for by in ("node", "job"):
        page = fleet.page(f"{ALL}&by={by}&lanes=40")
        for built in ("<img src=x", "<script>alert", '"><script'):
            assert built not in page
        assert "\u202e" not in page
        assert len(chart_of(page)["marks"]) == len(usable)
    texts = " ".join(mark[3] for mark in chart_of(fleet.page(ALL + "&lanes=40"))["marks"])
    assert "<img src=x onerror=alert(1)>" in texts  # plain text; the script writes it as such
    known = fleet.api("jobs?limit=100")["items"]
    for name in usable:
        # A name longer than a filter may be is asked for by its id, as the pages' links do.
        job = next(one for one in known if one["job"] == name)
        query = urlencode([("range", "all"), ("job", name if len(name) <= 1_000 else job["id"])])
        page = fleet.page(f"/timeline?{query}")
        assert page.count("Ring alarm at step 30") >= 1, name
        assert "1 alarm in" in page


def test_the_live_part_answers_204_until_something_comes(two_jobs: Fleet) -> None:
    answer = two_jobs.get("/timeline/view?range=24h")
    stamp = answer.headers["X-Stamp"]
    assert two_jobs.get(f"/timeline/view?range=24h&stamp={stamp}").status_code == 204
    two_jobs.post(culprit("sft-8b", step=90, time=at(100)))
    changed = two_jobs.get(f"/timeline/view?range=24h&stamp={stamp}")
    assert changed.status_code == 200
    assert "Ring alarm at step 90" in changed.text


def test_a_range_that_ends_now_moves_on_by_itself(two_jobs: Fleet) -> None:
    stamp = two_jobs.get("/timeline/view").headers["X-Stamp"]
    two_jobs.clock.now = NOW.replace(hour=13)
    assert two_jobs.get(f"/timeline/view?stamp={stamp}").status_code == 200


def test_a_page_follows_what_comes_only_where_it_is_asked_to(two_jobs: Fleet) -> None:
    assert 'data-live="/timeline/view?range=24h"' in two_jobs.page("/timeline?range=24h")
    assert "data-live=" not in two_jobs.page("/timeline?range=24h&live=off")
    fixed = "/timeline?from=2026-03-02T10:00:00Z&to=2026-03-02T11:00:00Z"
    assert "data-live=" not in two_jobs.page(fixed)


def test_times_are_written_in_the_viewers_zone(two_jobs: Fleet) -> None:
    two_jobs.http.cookies.set("sw_zone", "Asia/Kolkata")
    page = two_jobs.page(ALL)
    assert any(line.startswith("15:45:00 Ring alarm") for line in listed(page))
    assert chart_of(page)["zone"] == "Asia/Kolkata"


def test_nobody_sees_it_without_a_sign_in(fleet: Fleet) -> None:
    fleet.http.cookies.clear()
    for path in ("/timeline", "/timeline/view"):
        assert fleet.get(path).status_code in (303, 401)


def test_slices_have_lanes_under_their_job(two_jobs: Fleet) -> None:
    def keep(connection: Connection) -> None:
        job = connection.execute(sa.select(jobs.c.id).where(jobs.c.name == "sft-8b")).scalar_one()
        rows = [
            {
                "id": 1 + n, "job_id": job, "attempt_id": None, "event": event, "slice": number,
                "step": 5, "snapshot_step": None, "at": START, "document_id": 1,
            }
            for n, (event, number) in enumerate(
                [("slice_down", 3), ("slice_up", 3), ("resize", None), ("slice_down", 5)]
            )
        ]  # fmt: skip
        connection.execute(elastic_events.insert(), rows)

    two_jobs.store.write(keep)
    page = two_jobs.page(ALL + "&by=slice")
    chart = chart_of(page)
    assert chart["lanes"] == 4
    by_lane: dict[int, list[str]] = {}
    for lane, _, way, *_ in chart["elastic"]:
        by_lane.setdefault(lane, []).append(way)
    assert sorted(map(sorted, by_lane.values())) == [["down"], ["down", "up"], ["other"]]
    assert "slice 3 of sft-8b" in page
    assert "slice down , slice 3" in " ".join(listed(page)).replace("slice down,", "slice down ,")


def test_a_node_that_was_only_acted_on_has_a_lane_with_the_action(two_jobs: Fleet) -> None:
    node = two_jobs.api("nodes?node=hyperpod-i-0c0ffee0000000003")["items"][0]["id"]
    two_jobs.store.write(
        lambda c: audit.append(
            c, "T. Reyes", "proposal.approved", "Cordon of node 3 approved by T. Reyes.",
            at=NOW, node_id=ids.read(node),
        )
    )  # fmt: skip
    page = two_jobs.page("/timeline?from=2026-03-02T11:59:00Z&to=2026-03-02T12:01:00Z")
    chart = chart_of(page)
    assert [row[2] for row in chart["actions"]] == ["action"]
    assert chart["lanes"] == 1
    assert "Cordon of node 3 approved by T. Reyes." in " ".join(listed(page))
    assert f'href="/nodes/{node}"' in page


def test_the_lanes_are_a_table_too(two_jobs: Fleet) -> None:
    page = two_jobs.page(ALL)
    table = page.split("The lanes as a table</summary>")[1].split("</table>")[0]
    rows = [
        " ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split())
        for row in re.findall(r'<tr role="row"><th scope="row".*?</tr>', table, re.S)
    ]
    assert len(rows) == 2
    named = next(row for row in rows if row.startswith("hyperpod-i-0c0ffee0000000002"))
    assert "1 before, 1 inside, 0 after a window" in named
    assert named.split("suspect, 1 alarm ")[1].startswith("1 3 ")  # one start, three passes
