"""Is the table whole, and does each predicate say true, false or unknown as it is?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.documents import alarm, compute, reduced, verdict, weights
from witness.rules.decision_table import BY_ID, ROWS, TABLE_VERSION, RowResult, evaluate


def held(document: dict[str, Any]) -> dict[str, RowResult]:
    return {result.row.id: result for result in evaluate(alarm(document))}


def matches(document: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {key: result.ranks for key, result in held(document).items() if result.matched}


def test_the_rows_and_their_order() -> None:
    assert [row.id for row in ROWS] == ["W1", "W2", "R1", "R2", "R3", "R4", "N1", "G1", "U1"]
    assert list(BY_ID) == [row.id for row in ROWS]
    assert TABLE_VERSION >= 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_each_row_says_all_it_must(row: Any) -> None:
    assert row.alarm_says.endswith(".")
    assert row.meaning.endswith(".")
    assert row.action.endswith(".")
    assert row.predicates
    assert row.proposes
    # No row may propose what destroys: that takes a recurrence or a score, and a person.
    assert "replace" not in row.proposes
    assert row.action.startswith("Ambiguous") is row.ambiguous


def test_which_rows_are_ambiguous() -> None:
    assert {row.id for row in ROWS if row.ambiguous} == {"W2", "N1", "G1", "U1"}


def test_the_wording_that_keeps_people_from_mistakes() -> None:
    assert "with two, a healthy GPU can be named" in BY_ID["R1"].meaning
    assert "intermittent fault can look the same" in BY_ID["R3"].meaning
    assert "every node of the job" in BY_ID["G1"].action
    assert "1.8e19" in BY_ID["N1"].meaning
    said = " ".join(f"{row.meaning} {row.action} {' '.join(row.cautions)}" for row in ROWS)
    for word in ("innocent", "clean", "safe", " OK"):
        assert word not in said


PAIR: dict[str, Any] = {"pairs": [[13, 5]]}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (weights(suspects=[12, 7]), {"W1": (7, 12)}),
        (weights(suspects=None), {"W2": ()}),
        (weights(suspects=[]), {}),
        (weights(), {}),
        (reduced(), {"G1": ()}),
        (compute(culprits=[22, 13]), {"R1": (13, 22)}),
        (compute(**PAIR, verdicts=[verdict("persistent")]), {"R2": (13,)}),
        (compute(**PAIR, verdicts=[verdict("transient")]), {"R3": (13,)}),
        (
            compute(**PAIR, verdicts=[verdict("replayer computed wrong", suspect=5)]),
            {"R4": (5,)},
        ),
        (compute(**PAIR, verdicts=[verdict("unclear")]), {"U1": (13,)}),
        (compute(**PAIR, verdicts=[verdict("unattributable", suspect=None)]), {"U1": ()}),
        (compute(nonfinite=[3]), {"N1": (3,)}),
        (compute(nonfinite=[13], culprits=[13]), {"R1": (13,)}),
        (compute(nonfinite=[13, 3], culprits=[13]), {"R1": (13,), "N1": (3,)}),
        (compute(), {}),
        (compute(**PAIR, verdicts=[verdict("cosmic ray")]), {}),
        ({"check": "quantum", "step": 1, "culprits": [3], "nonfinite": [4]}, {}),
        ({"check": "weights", "step": 1, "culprits": [3], "suspects": [4]}, {"W1": (4,)}),
        (
            compute(
                pairs=[[13, 5], [21, 13], [6, 30]],
                culprits=[13],
                verdicts=[verdict("transient", (6, 30), 14, 6), verdict("unclear", (7, 31), 15, 7)],
            ),
            {"R1": (13,), "R3": (6,), "U1": (7,)},
        ),
    ],
)
def test_which_rows_match(document: dict[str, Any], expected: dict[str, Any]) -> None:
    assert matches(document) == expected


def test_missing_suspects_are_unknown_to_both_rows() -> None:
    rows = held(weights())
    for row_id in ("W1", "W2"):
        check, suspects = rows[row_id].predicates
        assert (check.state, suspects.state, suspects.shown_value) == ("true", "unknown", "missing")
        assert not rows[row_id].matched


@pytest.mark.parametrize(
    ("suspects", "first", "second", "shown"),
    [
        (None, "false", "true", "null"),
        ([], "false", "false", "[]"),
        ([12, 7], "true", "false", "7 and 12"),
    ],
)
def test_what_the_weights_rows_show(suspects: Any, first: str, second: str, shown: str) -> None:
    rows = held(weights(suspects=suspects))
    w1, w2 = rows["W1"].predicates[1], rows["W2"].predicates[1]
    assert (w1.state, w2.state) == (first, second)
    assert w1.shown_value == w2.shown_value == shown


def test_what_the_other_rows_show() -> None:
    rows = held(compute(nonfinite=[13], culprits=[13], verdicts=[verdict("unclear")]))
    assert [p.shown_value for p in rows["R1"].predicates] == ["compute", "13"]
    assert [(p.state, p.shown_value) for p in rows["R2"].predicates] == [
        ("true", "compute"),
        ("false", "unclear"),
    ]
    assert rows["N1"].predicates[1].state == "false"
    assert rows["N1"].predicates[1].shown_value == "rank 13, already named by the ring"
    assert rows["W1"].predicates[1].shown_value == "not part of this check"
    assert rows["G1"].predicates[0].shown_value == "compute"
    empty = held(compute())
    assert empty["R3"].predicates[1].shown_value == "no verdicts"
    assert empty["R1"].predicates[1].shown_value == "none"
    assert empty["N1"].predicates[1].shown_value == "none"
