"""Are lists asked for and answered as stated, and is every wrong parameter named?"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from datetime import UTC, datetime

import pytest
from starlette.requests import Request

from app.api.paging import Listing
from app.csv_table import cell, table
from app.errors import Problem
from app.filters import Filters, read_filters
from app.strict_json import dumps, strict

THINGS = Listing("things", "newest first", ("job", "from", "to", "q"), ("id", "job"), (int, str))


def request(query: str) -> Request:
    return Request(
        {"type": "http", "path": "/api/v1/things", "query_string": query.encode(), "headers": []}
    )


def test_a_page_without_parameters_shows_everything() -> None:
    page = THINGS.read(request(""))
    assert (page.limit, page.after, page.form) == (100, None, "json")
    assert not page.filters.narrowed


def test_filters_may_be_repeated_and_times_without_zone_are_utc() -> None:
    page = THINGS.read(
        request("job=a&job=b&from=2026-03-02T10:00:00&to=2026-03-02T12:00:00%2B01:00")
    )
    assert page.filters.job == ("a", "b")
    assert page.filters.since == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert page.filters.until == datetime(2026, 3, 2, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("limit=1&limit=2", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=%FF", "cursor"),
        ("format=xml", "format"),
        ("from=yesterday", "from"),
        ("from=2026-03-02&to=2026-03-01", "to"),
        ("from=2026-03-02&from=2026-03-01", "from"),
        ("from=0001-01-01T00:00:00%2B14:00", "from"),
        ("job=a%00b", "job"),
        ("q=" + "x" * 1001, "q"),
        ("rule=R1", "rule"),
        ("colour=red", "colour"),
        ("&".join(["job=a"] * 51), "job"),
    ],
)
def test_what_is_wrong_is_named(query: str, field: str) -> None:
    with pytest.raises(Problem) as caught:
        THINGS.read(request(query))
    assert (caught.value.status, caught.value.field) == (400, field)


def test_a_cursor_is_good_for_its_own_list_only() -> None:
    written = THINGS.write_cursor((5, "b"))
    assert THINGS.read_cursor(written) == (5, "b")
    other = Listing("others", "newest first", (), ("id",), (int, str))
    with pytest.raises(Problem):
        other.read_cursor(written)


@pytest.mark.parametrize(
    "key", [[True, "b"], [2**63, "b"], [1.5, "b"], [5], [5, "\ud800"], [5, "\0"]]
)
def test_a_cursor_of_other_types_is_refused(key: list[object]) -> None:
    text = json.dumps(["things", *key]).encode()
    with pytest.raises(Problem):
        THINGS.read_cursor(base64.urlsafe_b64encode(text).decode().rstrip("="))


def test_the_answer_says_where_the_next_page_begins() -> None:
    page = THINGS.read(request("limit=2&job=a%20b"))
    rows = [{"id": str(number), "job": "a b"} for number in (3, 2, 1)]
    response = THINGS.answer(page, rows, [(3, "x"), (2, "y"), (1, "z")])
    body = json.loads(bytes(response.body))
    assert [row["id"] for row in body["items"]] == ["3", "2"]
    assert body["order"] == "newest first"
    assert THINGS.read_cursor(body["next"]) == (2, "y")
    query = response.headers["link"].split("?", 1)[1].split(">", 1)[0]
    following = THINGS.read(request(query))
    assert following.after == (2, "y")
    assert following.filters.job == ("a b",)


def test_the_last_page_has_no_next() -> None:
    response = THINGS.answer(THINGS.read(request("")), [{"id": "1"}], [(1, "z")])
    assert json.loads(bytes(response.body))["next"] is None
    assert "link" not in response.headers


def test_csv_cells_run_nothing() -> None:
    names = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "  =1",
        "plain",
        'quo"ted',
        "two\nlines",
        "a\0b",
    ]
    written = table(["job", "step"], [{"job": name, "step": -3} for name in names])
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows[0] == ["job", "step"]
    shown = [row[0] for row in rows[1:]]
    assert shown[:6] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'  =1"]
    assert shown[6:] == ["plain", 'quo"ted', "two\nlines", "a\N{SYMBOL FOR NULL}b"]
    assert {row[1] for row in rows[1:]} == {"-3"}
    assert cell([{"a": math.nan}]) == '[{"a": "NaN"}]'


def test_json_is_strict_and_keeps_every_digit() -> None:
    said = {"a": math.nan, "b": [math.inf, -math.inf], "c": 2**53, "d": 2**53 - 1, "e": True}
    assert strict(said) == {
        "a": "NaN",
        "b": ["Infinity", "-Infinity"],
        "c": "9007199254740992",
        "d": 2**53 - 1,
        "e": True,
    }
    assert dumps(datetime(2026, 3, 2, 10, tzinfo=UTC)) == '"2026-03-02T10:00:00Z"'


def test_parameters_that_are_no_filters_are_left_to_the_page() -> None:
    assert read_filters([("sort", "p"), ("job", "")]) == Filters()
