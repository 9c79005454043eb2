"""Does the cost of a page stay where it is while the store grows?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.filters import read_filters
from app.store.connection import Connection
from app.store.store import Store
from app.store.tables import alarm_hours, alarms, findings
from app.store.timeline_bins import BIN_CAP, SCAN_BINS, histogram
from app.store.timeline_reading import alarm_page
from app.store.timeline_scope import SCAN, resolve
from app.web.timeline.asked import understand
from app.web.timeline.gather import MARKS, gather
from tests.pages_timeline.fleet import NOW, START, Fleet, at, chart_of, culprit, rank_map

HOUR_US = 3_600_000_000


def storm(connection: Connection, number: int, minutes: float) -> None:
    """Copy the one stored alarm many times over a stretch of time, rollup included."""
    row: dict[str, Any] = dict(connection.execute(sa.select(alarms)).mappings().one())
    held: dict[str, Any] = dict(connection.execute(sa.select(findings)).mappings().one())
    rows: list[dict[str, Any]] = []
    named: list[dict[str, Any]] = []
    hours: dict[int, int] = {}
    for one in range(number):
        moment = START + timedelta(minutes=minutes * one / number)
        new = {**row, "id": one + 1, "key": f"{one:032x}", "occurred_at": moment}
        rows.append({**new, "step": 1_000 + one})
        named.append({**held, "alarm_id": one + 1, "occurred_at": moment})
        hour = int(moment.timestamp()) // 3_600
        hours[hour] = hours.get(hour, 0) + 1
    connection.execute(alarms.insert(), rows)
    connection.execute(findings.insert(), named)
    connection.execute(alarm_hours.delete())
    family = {"cluster": "alpine", "family": row["family"]}
    connection.execute(
        alarm_hours.insert(), [{"hour": h, "alarms": n, **family} for h, n in hours.items()]
    )


@pytest.fixture
def stormed(fleet: Fleet) -> Fleet:
    """Twelve thousand alarms in an hour and a half."""
    fleet.post_all([rank_map(), culprit()])
    fleet.store.write(lambda c: storm(c, 12_000, 90))
    return fleet


@pytest.fixture
def reading(stormed: Fleet) -> Iterator[Connection]:
    with stormed.store.reading() as connection:
        yield connection


def test_a_day_is_counted_from_the_hours(reading: Connection) -> None:
    scope = resolve(reading, read_filters([]), NOW - timedelta(days=30), NOW)
    bins = histogram(reading, scope)
    assert bins.alarms == 12_000
    assert bins.exact
    assert len(bins.bins) <= 3


def test_a_storm_within_hours_is_counted_up_to_a_cap_in_each_bin(reading: Connection) -> None:
    scope = resolve(reading, read_filters([]), START, START + timedelta(minutes=90))
    bins = histogram(reading, scope)
    assert bins.capped_at == BIN_CAP
    assert {one.alarms for one in bins.bins} <= set(range(1, BIN_CAP + 1))
    assert 90 <= len(bins.bins) <= 301


def test_filters_without_an_index_say_how_far_they_looked(reading: Connection) -> None:
    scope = resolve(reading, read_filters([("rule", "W1")]), START, NOW)
    bins = histogram(reading, scope)
    assert bins.alarms == 0
    assert bins.counted_from is not None
    page = alarm_page(reading, scope, None, 50)
    assert page.rows == ()
    assert page.more
    assert not page.looked_at_all
    seen = 0
    before = page.reached
    while page.more:
        page = alarm_page(reading, scope, before, 50)
        before = page.reached
        seen += 1
    assert seen == 12_001 // SCAN


def test_a_page_asks_as_often_with_twelve_thousand_alarms_as_with_one(
    fleet: Fleet,
) -> None:
    fleet.post_all([rank_map(), culprit()])
    few = _statements(fleet.store)
    fleet.store.write(lambda c: storm(c, 12_000, 90))
    many = _statements(fleet.store)
    assert few <= many <= few + 6  # counts a lane, and a total, in place of marks


def _statements(store: Store) -> int:
    found = []
    asked = understand([("range", "7d")], NOW, None)

    def count(*given: Any) -> None:
        found.append(given[2])

    sa.event.listen(store.engine, "before_cursor_execute", count)
    with store.reading() as connection:
        gather(connection, asked, NOW)
    sa.event.remove(store.engine, "before_cursor_execute", count)
    return len(found)


def test_no_read_walks_a_whole_table(tmp_path: Path, migrated_sqlite_url: str) -> None:
    fleet = Fleet(migrated_sqlite_url, tmp_path)
    fleet.post_all([rank_map(), culprit()])
    fleet.store.write(lambda c: storm(c, 3_000, 90))
    plans: list[str] = []
    statements: list[tuple[str, Any]] = []

    def keep(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            statements.append((statement, given))

    sa.event.listen(fleet.store.engine, "before_cursor_execute", keep)
    for query in (
        "",
        "?range=all",
        "?range=1h",
        "?by=gpu",
        "?by=job",
        "?check=ring&rule=R1",
        "?q=x",
    ):
        fleet.page("/timeline" + query)
    sa.event.remove(fleet.store.engine, "before_cursor_execute", keep)
    with fleet.store.reading() as connection:
        for statement, given in statements:
            rows = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, given).all()
            plans += [f"{row[3]}" for row in rows]
    fleet.close()
    big = ("alarms", "findings", "attempts", "jobs", "coverage_hours", "checkpoints")
    walked = [
        plan for plan in plans
        if any(plan == f"SCAN {table}" or plan.startswith(f"SCAN {table} ") for table in big)
        and "INDEX" not in plan
    ]  # fmt: skip
    assert plans
    assert walked == []


def test_more_alarms_than_marks_are_counts_in_their_lanes(stormed: Fleet) -> None:
    page = stormed.page("/timeline?range=24h")
    chart = chart_of(page)
    assert chart["marks"] == []
    assert sum(row[3] for row in chart["bins"]) == 300  # the newest of the lane
    assert "newest 300 alarms" in page
    assert f"More than {MARKS:,} alarms" in page


def test_no_page_is_heavier_than_three_hundred_kilobytes(fleet: Fleet) -> None:
    fleet.post_all([rank_map(nodes=32)])
    fleet.post_all(
        [culprit(rank=16 + n % 240, step=30 + n, time=at(15 + n / 20)) for n in range(MARKS)]
    )
    answer = fleet.get("/timeline?range=24h&lanes=40")
    chart = chart_of(answer.text)
    assert len(chart["marks"]) > 900
    assert len(answer.content) < 300_000
    assert len(json.dumps(chart)) < 250_000


def test_the_constants_are_the_bounds_that_are_written_down() -> None:
    assert (SCAN, SCAN_BINS, BIN_CAP, MARKS) == (5_000, 10_000, 200, 1_000)
