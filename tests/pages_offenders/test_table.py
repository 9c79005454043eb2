"""What does the decision table say of a pasted alarm, and is nothing kept of it?"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import sqlalchemy as sa

from app.actions.table_reading import LONGEST, PasteError, judge
from app.store.tables import metadata
from tests.pages_offenders.house import House
from witness.rules.decision_table import ROWS, TABLE_VERSION
from witness.rules.guards import CODES

R1 = {
    "step": 30,
    "check": "compute",
    "nonfinite": [],
    "mismatched_pairs": [[13, 5], [21, 13]],
    "culprits": [13],
    "verdicts": [],
    "suspect_window": [21, 30],
    "last_audit_pass": 20,
    "last_weight_check_pass": 20,
}


def states(page: str, row: str) -> list[str]:
    """Give the states of a row's predicates, and whether the row is lit."""
    found = re.search(rf'<tr[^>]*id="row-{row}" class="(\w+)">(.*?)</tr>', page, re.DOTALL)
    assert found
    return [found.group(1), *re.findall(r'class="pred (\w)"', found.group(2))]


def kept(house: House) -> dict[str, int]:
    """Count the rows of every table but those that a look at a page changes."""
    with house.context.store.reading() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            or 0
            for table in metadata.sorted_tables
        }


def test_the_whole_table_is_shown_with_its_version(one_house: House) -> None:
    page = one_house.sign_in("viewer").get("/decision-table").text
    for row in ROWS:
        assert f'id="row-{row.id}"' in page
    for code in CODES:
        assert f">{code}<" in page
    assert f"version {TABLE_VERSION}" in page
    read = one_house.read("decision-table")
    assert read["version"] == TABLE_VERSION
    assert [one["id"] for one in read["items"]] == [row.id for row in ROWS]
    assert [one["code"] for one in read["guards"]] == list(CODES)
    assert one_house.ask("decision-table?format=csv").text.startswith("id,alarm_says")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pasted_alarm_lights_its_row_and_is_not_kept(one_house: House, wrapped: bool) -> None:
    browser = one_house.sign_in("viewer")
    token = browser.token("/decision-table")
    before = kept(one_house)
    document: dict[str, Any] = {"cluster": "a", "job": "j", "alarm": R1} if wrapped else R1
    answer = browser.http.post(
        "/decision-table", data={"csrf": token, "document": json.dumps(document)}
    )
    assert answer.status_code == 200
    page = answer.text
    assert states(page, "R1") == ["lit", "t", "t"]
    assert states(page, "R2") == ["dim", "t", "f"]
    assert states(page, "W1") == ["dim", "f", "f"]
    assert "Cordon, replace after review" in page
    assert "21 to 30" in page
    assert "posted document with its envelope" in page or not wrapped
    assert kept(one_house) == before


def test_missing_suspects_are_unknown(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    paste = json.dumps({"check": "weights", "step": 4})
    page = browser.post("/decision-table", {"document": paste}).text
    assert states(page, "W1") == ["dim", "t", "u"]
    assert "A person must look" in page


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"step": NaN, "check": "compute"}', "alarm.step"),
        ('{"step": 4}', "alarm.check"),
        ('{"step": 4, "check": "compute", "culprits": [1.5]}', "alarm.culprits[0]"),
        ('{"alarm": 7}', "alarm"),
        ("[1]", "An alarm is a JSON object"),
        ("{", "This is no JSON"),
        ('{"a": 1}\n{"a": 2}', "A second document begins at line 2"),
        ("  ", "Nothing was pasted"),
        ("[" * 100_000, "nested too deep"),
        ("9" * 5_000, "too many digits"),
    ],
)
def test_what_cannot_be_read_is_named(one_house: House, document: str, said: str) -> None:
    browser = one_house.sign_in("viewer")
    answer = browser.post("/decision-table", {"document": document})
    assert answer.status_code == 422
    assert said in answer.text
    assert "Nothing was stored" in answer.text


def test_nan_tokens_are_read_where_a_value_may_be_one() -> None:
    said = judge('{"step": 30, "check": "compute", "nonfinite": [4], "digests": {"0": NaN}}')
    assert said.matched == ("N1",)


def test_the_size_has_a_limit(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    answer = browser.post("/decision-table", {"document": "x" * (LONGEST + 1)})
    assert answer.status_code == 413
    assert f"{LONGEST:,}" in answer.text
    with pytest.raises(PasteError):
        judge("x" * (LONGEST + 1))


def test_hostile_words_stay_text(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    hostile = {"step": 1, "check": "<script>alert(1)</script>\u0000\ud800\u202e"}
    answer = browser.post("/decision-table", {"document": json.dumps(hostile)})
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text


def test_pasting_needs_a_form_of_ours(one_house: House) -> None:
    browser = one_house.sign_in("viewer")
    assert browser.http.post("/decision-table", data={"document": "{}"}).status_code == 403
