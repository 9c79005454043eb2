"""Does the bench of telemetry run, on a source that is small, and lose nothing there?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import telemetry
from tests.bench.report import Report
from tests.bench.telemetry_fleet import Size

SMALL = Size(alarms=6, nodes=4, step_s=240.0, node_step_s=120.0, rounds=1, browser=False)


@pytest.mark.slow
@pytest.mark.timeout(400)  # two servers and two sources; on a busy machine they take their time
def test_a_small_source_is_measured_from_end_to_end(tmp_path: Path) -> None:
    report = Report()
    telemetry.run(report, tmp_path, SMALL)
    found = {row.what: row for row in report.rows}
    assert found["kept"].met
    assert found["queries of the pull"].value == "2"
    assert found["alarms without a reading, windows not pulled"].met
    assert {row.section for row in report.rows} == {"telemetry", "storm", "page"}
    assert any("series drawn" in what and row.met for what, row in found.items())
