"""Does a GPU that contradicts itself become an alarm that claims no more than that?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench.server import TOKEN
from tests.witness_report.conftest import Service
from witness.ddp.adapters.torchtitan import CHECK, alarm_of, is_mismatch, reporting
from witness.report import Envelope, Reporter
from witness.rules.alarm import read_alarm
from witness.rules.findings import findings


class SDCReplayMismatch(RuntimeError):
    """Has the fields of torchtitan's exception; the released package does not hold it yet."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("SDC replay mismatch")
        vars(self).update(fields)


NOW = {"step": 12, "local_step": 2, "replay": 1, "rank": 5, "signature_mismatch": "grad:w1"}
EARLIER = {**{k: v for k, v in NOW.items() if k != "local_step"}, "attempt": 2}


@pytest.mark.parametrize("fields", [NOW, EARLIER])
def test_what_torchtitan_says_is_kept_word_for_word(fields: dict[str, Any]) -> None:
    alarm = alarm_of(SDCReplayMismatch(**fields))
    assert {key: alarm[key] for key in NOW} == NOW
    assert alarm["check"] == CHECK
    assert alarm["update_applied"] is False


def test_nobody_is_accused_and_no_verdict_is_made_up() -> None:
    alarm = read_alarm(alarm_of(SDCReplayMismatch(**NOW), world_size=16))
    assert alarm.named_ranks() == ()
    (finding,) = findings(alarm)
    assert finding.rule is None
    assert finding.ambiguous
    assert finding.rank is None


@pytest.mark.parametrize(
    ("known", "window"),
    [
        ({}, None),
        ({"start_step": 11}, [11, 12]),
        ({"start_step": 1, "last_pass": 11}, [12, 12]),
    ],
)
def test_a_window_is_given_only_where_somebody_knows_it(
    known: dict[str, int], window: list[int] | None
) -> None:
    assert alarm_of(SDCReplayMismatch(**NOW), **known).get("suspect_window") == window


def test_an_exception_that_only_looks_alike_is_left_alone() -> None:
    assert not is_mismatch(SDCReplayMismatch(step=None))
    assert not is_mismatch(RuntimeError("SDC replay mismatch"))
    with pytest.raises(TypeError, match="RuntimeError is no SDCReplayMismatch"):
        alarm_of(RuntimeError())


def test_the_service_keeps_and_shows_it(tmp_path: Path, service: Service) -> None:
    envelope = Envelope("alpine", "research", "titan", 1)
    reporter = Reporter(envelope, url=service.url, token=TOKEN, spool=tmp_path)
    with (
        pytest.raises(SDCReplayMismatch),
        reporting(reporter, world_size=16),
    ):
        raise SDCReplayMismatch(**NOW)
    reporter.close(5.0)
    (alarm,) = service.alarms("titan")
    assert (alarm["check"], alarm["step"]) == (CHECK, 12)
    shown = service.read(f"/alarms/{alarm['id']}")["document"]
    assert {key: shown["alarm"][key] for key in NOW} == NOW
    assert [finding["rule"] for finding in alarm["findings"]] == [None]


def test_other_exceptions_pass_unreported() -> None:
    class Reporter:
        def alarm(self, document: Any) -> None:
            raise AssertionError("nothing to report")

    with pytest.raises(KeyError), reporting(Reporter()):
        raise KeyError("x")
