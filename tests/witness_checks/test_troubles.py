"""Do all ranks learn together what one of them ran into, and is nobody accused of it?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.witness_checks.troubles import (
    everything,
    half_precision_norm,
    in_a_group,
    names_nonfinite,
)
from witness.rules.alarm import read_alarm
from witness.rules.digests import contradiction
from witness.rules.findings import findings
from witness.simulate import fleet

RANKS = 3


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return fleet.run(RANKS, 1, everything, timeout_s=100)


@pytest.fixture(scope="module")
def grouped() -> list[Any]:
    return fleet.run(6, 1, in_a_group, 3, timeout_s=100)


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("rebuild fails", "ReplayError", "replay failed on ranks [1]"),
        ("exchanges", "CollectiveInReplayError", "ranks [0, 1, 2] started a collective"),
        ("wrapper", "CollectiveInReplayError", "must use the module that it is given"),
        ("synchronised norm", "CollectiveInReplayError", "between is a SyncBatchNorm"),
        ("sparse", "ValueError", "sparse gradients"),
        ("ignored", "ValueError", "DDP ignores first.weight"),
    ],
)
def test_all_ranks_raise_together(
    found: list[dict[str, Any]], what: str, kind: str, words: str
) -> None:
    for rank in range(RANKS):
        raised, said, after_s = found[rank][what]
        assert (raised, words in said) == (kind, True), said
        assert after_s < 30


def test_an_alarm_is_not_lost_to_a_replay_that_fails(found: list[dict[str, Any]]) -> None:
    alarm = found[0]["rebuild fails beside a fault"]
    assert [found[rank]["rebuild fails beside a fault"] for rank in range(RANKS)] == [alarm] * 3
    assert (alarm["check"], alarm["nonfinite"], alarm["replay_failed"]) == ("compute", [2], [1])
    assert "replay" not in alarm["digests"]["1"]
    assert contradiction(read_alarm(alarm), alarm["peer_offset"], RANKS) is None


def test_a_third_rank_that_fails_names_nobody(found: list[dict[str, Any]]) -> None:
    alarm = found[0]["third fails"]
    # The replay by rank 0 differs; rank 2, which would settle it, cannot rebuild.
    assert alarm["mismatched_pairs"] == [[1, 0]]
    (verdict,) = alarm["verdicts"]
    assert (verdict["kind"], verdict["suspect"], verdict["third"]) == ("unattributable", None, 2)


def test_one_bad_copy_of_the_reduced_gradient_stops_all(found: list[dict[str, Any]]) -> None:
    alarm, same = found[0]["copy"]
    assert [found[rank]["copy"] for rank in range(RANKS)] == [(alarm, True)] * RANKS
    assert same
    assert (alarm["check"], alarm["reduced_nonfinite"]) == ("reduced gradient", [2])
    assert findings(read_alarm(alarm))[0].rule == "G1"


def test_one_bad_copy_is_no_overflow_that_a_scaler_may_skip(found: list[dict[str, Any]]) -> None:
    alarm, same = found[0]["copy, scaled"]
    assert [found[rank]["copy, scaled"] for rank in range(RANKS)] == [(alarm, True)] * RANKS
    assert same
    assert (alarm["check"], alarm["reduced_nonfinite"]) == ("reduced gradient", [2])


def test_an_alarm_that_cannot_be_settled_is_told_as_it_is(found: list[dict[str, Any]]) -> None:
    alarm = found[0]["settling"]
    assert [found[rank]["settling"] for rank in range(RANKS)] == [alarm] * RANKS
    assert (alarm["check"], alarm["nonfinite"]) == ("compute", [0, 1, 2])


def test_a_nan_names_its_rank_with_and_without_audits(found: list[dict[str, Any]]) -> None:
    for alarm in found[0]["nan"]:
        assert (alarm["check"], alarm["step"], alarm["nonfinite"]) == ("compute", 1, [1])
        assert alarm["culprits"] == [1]


def test_steps_that_a_scaler_skips_are_no_alarm(found: list[dict[str, Any]]) -> None:
    alarms, said = found[0]["scaler"]
    assert alarms == [None, None]
    assert len(said) == 1
    assert "rank 1 alone" in said[0]


def test_weights_are_judged_by_strict_majority(found: list[dict[str, Any]]) -> None:
    results = found[0]["weights"]
    assert [found[rank]["weights"] for rank in range(RANKS)] == [results] * RANKS
    named = {name: result[:3] for name, result in results.items()}
    assert named == {
        "same": (False, [], []),
        "one": (True, [2], [1]),
        "sign of zero": (True, [0], [0]),
        "all": (True, None, [0]),
        "two in two tensors": (True, [0, 1], [0, 1]),
        "nothing": (False, [], []),
    }
    for name, key in {"one": "own", "all": "own", "two in two tensors": "whole"}.items():
        assert {tuple(entry) for entry in results[name][3].values()} == {(key,)}


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_even_split_names_nobody(ranks: int) -> None:
    assert fleet.run(ranks, 1, split_in_two)[0] == (True, None, [0])


def split_in_two() -> Any:
    import torch
    import torch.distributed as dist

    from witness.ddp.weights import find_divergent

    result = find_divergent([torch.ones(3) * (dist.get_rank() % 2)])
    return result.diverged, result.suspects, result.tensors


def test_a_group_of_ranks_audits_itself_in_the_numbers_of_the_job(grouped: list[Any]) -> None:
    for rank in (1, 3, 5):
        healthy, persistent, once, weights = grouped[rank][0]
        assert healthy is None
        assert (persistent["culprits"], persistent["step"]) == ([3], 2)
        assert sorted(persistent["mismatched_pairs"]) == [[3, 1], [5, 3]]
        (verdict,) = once["verdicts"]
        assert verdict == {"pair": [3, 1], "third": 5, "suspect": 3, "kind": "transient"}
        assert (weights["check"], weights["suspects"]) == ("weights", [3])
        for alarm in (persistent, once):
            assert (alarm["world_size"], alarm["peer_offset"]) == (6, 2)
            assert contradiction(read_alarm(alarm), 2, 6) is None
    assert [grouped[rank][0] for rank in (0, 2, 4)] == [[None] * 4] * 3


def test_an_audit_without_a_guard_says_the_same(grouped: list[Any]) -> None:
    pairs, loss, verdicts = grouped[5][1]
    assert (pairs, loss) == ([(3, 1)], True)
    assert [one["kind"] for one in verdicts] == ["transient"]
    assert grouped[0][1] == ([], False, [])


def test_a_rank_is_named_from_norms_alone() -> None:
    assert [(one.own, one.reduced) for one in fleet.run(3, 1, names_nonfinite)] == [([1], [])] * 3


def test_the_norm_of_float16_gradients_has_the_range_of_float32() -> None:
    own, reduced = fleet.run(2, 1, half_precision_norm)[0]
    assert own == reduced == pytest.approx(8 * 64 * 256)
