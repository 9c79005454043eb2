"""Does an audit leave every kind of training as it was, and still catch a fault in it?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.witness_checks.ranks import FAULTY, all_workloads
from tests.witness_checks.workloads import WORKLOADS
from witness.simulate import fleet

RANKS = 3


@pytest.fixture(scope="module")
def results() -> list[dict[str, dict[str, Any]]]:
    return fleet.run(RANKS, 1, all_workloads, list(WORKLOADS), timeout_s=110)


@pytest.mark.parametrize("name", WORKLOADS)
def test_audits_raise_no_alarm_and_change_no_bit(
    results: list[dict[str, dict[str, Any]]], name: str
) -> None:
    for rank in range(RANKS):
        found = results[rank][name]
        assert found["alarms"] == [None, None, None]
        plain, strict, default = found["left"]
        assert strict == plain, f"deterministic audits changed rank {rank}"
        assert default == plain, f"audits with default kernels changed rank {rank}"


@pytest.mark.parametrize("kind", ["forward", "default", "backward"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_fault_is_caught_in_it(
    results: list[dict[str, dict[str, Any]]], name: str, kind: str
) -> None:
    alarms = [results[rank][name][kind] for rank in range(RANKS)]
    assert alarms[0] is not None
    assert alarms[1:] == alarms[:1] * (RANKS - 1)
    assert alarms[0]["step"] == 2
    assert (alarms[0]["check"], alarms[0]["culprits"]) == ("compute", [FAULTY])
    assert alarms[0]["mismatched_pairs"] == [[1, 0], [2, 1]]
    if kind == "backward":
        assert alarms[0]["divergent_tensors"] == 1
