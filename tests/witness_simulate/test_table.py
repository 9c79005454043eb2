"""Does the table say of each row what was seen, and of a wrong one that it is wrong?"""

from __future__ import annotations

from pathlib import Path

import pytest

from witness.simulate import written
from witness.simulate.drill import Seen
from witness.simulate.model import Job
from witness.simulate.scenarios import Alarm, Layout, Scenario, scenarios
from witness.simulate.table import Row, as_markdown, details

FLEET = Layout(4, 8)


def as_expected(scenario: Scenario) -> Row:
    """Make the row of a scenario that came out as expected."""
    return Row(scenario, Seen(scenario.expected, scenario.saved, None), agreed=True)


def line(name: str) -> str:
    rows = [as_expected(one) for one in scenarios(FLEET) if one.name == name]
    return as_markdown(rows).splitlines()[2]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        (
            "NaN, once at 25",
            "13 | 25, compute | (13, 5) | transient, third 21 | not finite 13; by verdict 13 "
            "| 21–25 | 20 (20, 20) | 20",
        ),
        (
            "×1000 on two ranks, from 23",
            "13, 22 | 30, compute | (13, 5) (21, 13) (22, 14) (30, 22) | – | culprits 13, 22 "
            "| 21–30 | 20 (20, 20) | 20",
        ),
        (
            "bit 22 of a weight, checkpoints every 5 unchecked",
            "0 | 40, compute | (0, 24) (8, 0) | – | culprits 0 | 31–40 "
            "| 20 (20, 20), 25 (20, 20), 30 (30, 30), 35 (30, 30) | 30",
        ),
        (
            "bit 22 of an attention weight, restored",
            "7 | 20, weights | – | – | suspects 7 | 20 | – | before the drill",
        ),
        ("no fault", "– | none to step 50 | – | – | – | – | 20 (20, 20), 40 (40, 40) | –"),
        (
            "Inf in the all-reduce, once at 25",
            "13 | 25, reduced gradient | – | – | nobody | 25 | 20 (20, 20) | 20",
        ),
    ],
)
def test_a_row_reads_as_it_was_seen(name: str, cells: str) -> None:
    assert line(name) == f"| {name} | {cells} | yes |"


def test_what_is_not_as_expected_is_said() -> None:
    first, second = scenarios(FLEET)[:2]
    missed = Row(first, Seen(None, first.saved, None), agreed=True)
    split = Row(second, Seen(second.expected, second.saved, None), agreed=False)
    for row in (missed, split):
        assert not row.met
        assert as_markdown([row]).endswith("| **no** |\n")
    assert "NaN, once at 25: expected Alarm(step=25" in missed.said
    assert "got None" in missed.said
    assert split.said.endswith("(ranks differ)")


def test_an_alarm_is_detailed_in_lines() -> None:
    alarm = scenarios(FLEET)[0].expected
    assert alarm is not None
    assert details(alarm) == [
        "  mismatched pairs (target, replayer): (13, 5)",
        "  verdicts: transient, third 21",
        "  named: not finite 13; by verdict 13",
    ]


def test_a_document_reads_back_as_the_alarm_it_is() -> None:
    document = {
        "check": "compute",
        "step": 25,
        "nonfinite": [13],
        "mismatched_pairs": [[13, 5]],
        "culprits": [],
        "verdicts": [{"pair": [13, 5], "third": 21, "suspect": 13, "kind": "transient"}],
        "suspect_window": [21, 25],
    }
    assert Alarm.read(document) == scenarios(FLEET)[0].expected


def test_every_layout_is_written_with_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_table(layout: Layout, job: Job, timeout_s: float) -> list[Row]:
        return [as_expected(one) for one in scenarios(layout, job.shape)]

    monkeypatch.setattr(written, "run_table", run_table)
    rows = written.write(tmp_path / "table.md", Job(), 1)
    text = (tmp_path / "table.md").read_text()
    assert len(rows) == 22 + 22 + 21
    assert "make fault-table" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## 4 nodes of 8, 32 ranks",
        "## 3 nodes of 8, 24 ranks",
        "## 3 nodes of 1, 3 ranks",
    ]
    assert "22 of 22 rows as expected" in text
