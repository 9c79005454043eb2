"""Does the whole life of a replacement hold, and does a drill that is off say so?"""

from __future__ import annotations

import pytest

from tests.doubles.sagemaker import Platform
from tests.drill import world
from tests.drill.__main__ import main, wanted
from tests.drill.scenes import SCENES


def test_none_named_means_all_and_an_unknown_one_is_refused() -> None:
    assert wanted([]) == list(SCENES)
    assert wanted(["karpenter"]) == ["karpenter"]
    with pytest.raises(SystemExit):
        wanted(["nothing"])


def test_the_whole_life_of_a_replacement_holds(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["whole_life"])
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert "took its place" in shown
    assert "the chain fits" in shown


def test_a_drill_that_is_off_ends_with_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A platform that does not put new machines into Kubernetes is one that a drill has to notice.
    monkeypatch.setattr(Platform, "_running", lambda self, node: None)
    monkeypatch.setattr(world, "PATIENCE_S", 5.0)
    assert main(["platform_faster"]) == 1
    assert "OFF: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(SCENES) - {"whole_life"}))
def test_every_other_drill_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([name])
    assert status == 0, capsys.readouterr().out
