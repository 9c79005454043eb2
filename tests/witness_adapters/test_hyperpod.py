"""Does the rule for HyperPod's agent match the line that the reporter writes, where it stands?"""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import yaml

from witness.ddp.adapters.hyperpod import ANY_ALARM, NAMED_HERE, alarm_in, log_rule
from witness.report.sinks import LogLine, notice_of
from witness.wire import Envelope

ENVELOPE = Envelope("alpine", "research", "night-run", 2)
ALARM = {"check": "compute", "step": 30, "culprits": [13], "suspect_window": [21, 30]}
PREFIXES = ["", "[default0]:", "[default7]:2026-11-03 05:51:29,300 [INFO] trainer: "]


def _line(ranks_here: range | None = None, alarm: dict[str, Any] = ALARM) -> str:
    stream = io.StringIO()
    LogLine(stream).tell(notice_of(ENVELOPE, alarm, ranks_here))
    return stream.getvalue().rstrip("\n")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_rule_matches_the_real_line_as_the_agent_matches(prefix: str) -> None:
    (rule,) = yaml.safe_load(log_rule())
    assert rule["faultOnMatch"] is True
    assert re.match(rule["logPattern"], prefix + _line())


def test_without_the_leading_part_a_line_with_a_prefix_would_be_missed() -> None:
    assert ANY_ALARM.startswith(".*")
    assert not re.match(ANY_ALARM.removeprefix(".*"), PREFIXES[1] + _line())


def test_a_line_that_only_speaks_of_alarms_does_not_match() -> None:
    assert not re.match(ANY_ALARM, "[default0]:no SDC_ALARM so far")


@pytest.mark.parametrize(("here", "matches"), [(range(8, 16), True), (range(8), False)])
def test_the_narrow_rule_matches_on_the_nodes_of_the_named_ranks(
    here: range, matches: bool
) -> None:
    (rule,) = yaml.safe_load(log_rule(NAMED_HERE, name="Don't"))
    assert rule["name"] == "Don't"
    assert bool(re.match(rule["logPattern"], PREFIXES[1] + _line(here))) is matches


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_line_is_read_back_whatever_stands_before_it(prefix: str) -> None:
    said = alarm_in(prefix + _line(range(8, 16)))
    assert said is not None
    assert (said["check"], said["step"], said["named"]) == ("compute", 30, [13])
    assert (said["job"], said["attempt"], said["here"]) == ("night-run", 2, True)


@pytest.mark.parametrize("line", ["", "SDC_ALARM", "SDC_ALARM {", "SDC_ALARM [1]", "step 3"])
def test_other_lines_are_no_alarm(line: str) -> None:
    assert alarm_in(line) is None
