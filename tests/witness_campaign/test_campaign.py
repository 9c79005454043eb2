"""Do the checks find injected faults on real processes without ever accusing a healthy rank?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from witness.simulate.campaign import as_markdown, campaign, clean, main
from witness.simulate.campaign_plan import FAMILIES, plan


def test_a_plan_is_drawn_again_from_its_seed() -> None:
    trials = plan(300, 5, seed=3)
    assert trials == plan(300, 5, seed=3)
    assert trials != plan(300, 5, seed=4)
    assert trials[200:] == plan(100, 5, seed=3, first=200)
    assert {one.family for one in trials} == set(FAMILIES)
    assert all(0 <= rank < 5 for one in trials for rank in one.faulty)
    assert all(len(one.faulty) == len(one.faults) for one in trials)


def test_a_small_campaign_on_real_processes() -> None:
    results = campaign(30, seed=5, nodes=(3, 5))
    outcomes = Counter(one.judgement.outcome for one in results)
    assert outcomes["accused"] == 0
    visible = [one for one in results if FAMILIES[one.trial.family].visible]
    alarmed = [one for one in visible if one.alarm is not None]
    assert len(alarmed) >= 0.9 * len(visible)
    assert outcomes["named"] >= 0.7 * len(visible)
    table = as_markdown(results)
    assert table.count("\n") == len({one.trial.family for one in results}) + 4


def test_no_alarm_without_a_fault() -> None:
    assert clean(60) == (60, 60, [])


def test_the_command_writes_what_it_saw(tmp_path: Path) -> None:
    assert main(["--faults", "4", "--clean", "4", "--write", str(tmp_path / "campaign.md")]) == 0
    said = (tmp_path / "campaign.md").read_text()
    assert "0 wrong accusations in 4 trials: at 95 % at most 1 in 1" in said
    assert "0 false alarms in 4 audit steps" in said


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_faults_accuse_nobody_healthy() -> None:
    results = campaign(1000)
    assert [one for one in results if one.judgement.outcome == "accused"] == []
    assert clean(20_000)[2] == []
