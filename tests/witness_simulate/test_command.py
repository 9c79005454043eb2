"""Does the command say what the checks saw, and end as a real job ends?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.actions.service import ADMIN_TOKEN, Service
from witness.inject import Fault
from witness.simulate.__main__ import main
from witness.simulate.scenarios import Layout, scenarios

FAULT = "rank=1,factor=1000,element=100,since=3"
SHORT = ["--steps", "6", "--audit-every", "2", "--check-every", "2", "--ckpt-every", "2"]


def test_an_alarm_ends_with_code_3_and_says_whom_it_names(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main([*SHORT, "--fault", FAULT, "--replays", "0"]) == 3
    said = capfd.readouterr().out
    assert "fault: rank 1, blocks.1.down (output): × 1000, from step 3" in said
    assert "step    0  loss of rank 0" in said
    assert "fired at step 4 and names rank 1" in said
    assert "mismatched pairs (target, replayer): (1, 0) (2, 1)" in said
    assert "0 (audit 0, weights 0), 2 (audit 2, weights 2)" in said


def test_without_a_fault_nothing_fires(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(SHORT) == 0
    assert "no alarm from step 0 to step 6" in capfd.readouterr().out


def test_the_alarm_is_printed_for_programs(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--fault", FAULT, "--replays", "0", "--json"]) == 3
    alarm = json.loads(capfd.readouterr().out)
    assert (alarm["check"], alarm["step"], alarm["culprits"]) == ("compute", 4, [1])


def test_a_held_job_goes_on_before_the_window(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = ["--checkpoints", str(tmp_path), "--job", "held"]
    faulty = [*SHORT, "--no-check-on-checkpoint", "--check-every", "0", "--audit-every", "4"]
    late = "rank=0,mode=flip,bit=22,place=weights,once=1"
    assert main([*faulty, *folder, "--fault", late, "--replays", "0"]) == 3
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == [
        "step-00000000.pt",
        "step-00000002.pt",
    ]
    capfd.readouterr()
    assert main([*SHORT, *folder, "--attempt", "2", "--resume"]) == 0
    assert "no alarm from step 1 to step 6" in capfd.readouterr().out


def test_a_row_is_run_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--scenario", "NaN"]) == 0
    said = capfd.readouterr().out
    assert "| NaN, once at 25 | 1 | 25, compute | (1, 0) | transient, third 2 |" in said


def test_the_rows_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "4", "--gpus", "8", "--list"]) == 0
    assert capfd.readouterr().out.splitlines() == [one.name for one in scenarios(Layout(4, 8))]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fault", "rank=3"], "there is no rank 3: ranks go to 2"),
        (["--fault", "rank=1,layer=blocks.9.down"], "the model has no layer 'blocks.9.down'"),
        (["--fault", "rank=1,mode=melt"], "mode must be one of"),
        (["--nodes", "0"], "0 nodes of 1 GPUs are no fleet"),
        (["--nodes", "2", "--table"], "audits need 3 nodes, and there are 2"),
        (["--scenario", "unheard of"], "no scenario contains 'unheard of'"),
    ],
)
def test_wrong_arguments_are_explained(
    arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert said in capfd.readouterr().err


def test_ranks_that_fail_are_told_apart_from_an_alarm(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "2", *SHORT]) == 4
    assert "PlacementError" in capfd.readouterr().err


def test_the_examples_of_the_help_are_faults(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    examples = re.findall(r"--fault (rank\S+)", capfd.readouterr().out)
    assert [Fault.parse(one).rank for one in examples] == [13, 0, 1]


def test_a_service_that_is_given_hears_of_it(
    service: Service, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    address = ["--url", service.url, "--token", ADMIN_TOKEN, "--job", "told", "--replays", "0"]
    assert main([*SHORT, *address, "--fault", FAULT, "--spool", str(tmp_path)]) == 3
    said = capfd.readouterr().out
    assert f"reported to {service.url}; documents not delivered: 0\n" in said
    (alarm,) = service.read("/alarms", job="told")["items"]
    assert (alarm["cluster"], alarm["check"], alarm["step"]) == ("simulated", "compute", 4)


def test_a_service_that_is_away_costs_no_alarm(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, free_port: int
) -> None:
    address = ["--url", f"http://127.0.0.1:{free_port}", "--token", "t", "--spool", str(tmp_path)]
    assert main([*SHORT, *address, "--fault", FAULT, "--replays", "0", "--wait", "1"]) == 3
    said = capfd.readouterr().out
    assert "fired at step 4 and names rank 1" in said
    left = len(list(tmp_path.rglob("*.json")))
    assert f"documents not delivered: {left}\n  posting: ConnectionRefusedError" in said
    assert len(list(tmp_path.rglob("*.alarm.json"))) == 3
