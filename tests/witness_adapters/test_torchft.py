"""Does torchft refuse the step of an alarm, and do its replicas' comings and goings reach us?"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.witness_adapters.torchft_jobs import job
from witness.ddp.adapters.torchft import LOGGERS, Membership
from witness.simulate import fleet

pytestmark = pytest.mark.timeout(300)  # every rank imports a framework, on cores that may be busy

Said = list[dict[str, Any]]


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torchft")


@pytest.fixture(scope="module")
def said(spool: Path) -> Said:
    """Run two replicas under a real lighthouse, once."""
    quiet = [{"RUST_LOG": "error"}] * 2
    return fleet.run(2, 1, job, str(spool), timeout_s=120, environments=quiet)


def _events(spool: Path, replica: int) -> list[dict[str, Any]]:
    """Read what one replica reported, in its order; the first event says which one it is."""
    for folder in spool.glob("run-*"):
        documents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        if documents[0]["slice"] == replica:
            return documents
    raise LookupError(f"replica {replica} reported nothing")


def test_a_step_that_every_replica_refuses_is_applied_nowhere(said: Said) -> None:
    for replica in said:
        moved, weights = replica["refused by both"]
        assert not moved
        assert weights == replica["plain"][1]


def test_a_replica_that_refuses_alone_is_given_the_state_of_the_others(said: Said) -> None:
    assert [one["refused by 1"][0] for one in said] == [True, False]
    assert said[0]["refused by 1"][1] != said[1]["refused by 1"][1]
    assert said[0]["last"][1] == said[1]["last"][1]


def test_membership_is_reported_as_elastic_events(said: Said, spool: Path) -> None:
    first, second = _events(spool, 0), _events(spool, 1)
    assert [one["event"] for one in first[:2]] == ["attempt_start", "resize"]
    assert first[1]["reason"] == "a step was refused"
    down = first[-1]
    assert (down["event"], down["replicas_before"], down["replicas"]) == ("slice_down", 2, 1)
    assert [one["event"] for one in second[:2]] == ["attempt_start", "resize"]
    told = {"event", "quorum_id", "step", "replicas", "reason"}
    assert {key: first[1][key] for key in told} == {key: second[1][key] for key in told}


class Lost:
    """A manager whose quorum failed."""

    def num_participants(self) -> int:
        raise RuntimeError("no quorum")


def test_a_record_that_cannot_be_read_is_left_to_logging_and_costs_the_job_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler = Membership(Lost(), reporter=None)
    for name in LOGGERS:
        handler.emit(logging.makeLogRecord({"name": name, "rank": 0, "quorum_id": 3}))
    handler.emit(logging.makeLogRecord({"name": "torchft_commits", "rank": 0}))
    assert "no quorum" in capsys.readouterr().err
