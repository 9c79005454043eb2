"""Is an alarm held against the truth as the service would read it?"""

from __future__ import annotations

from typing import Any

import pytest

from witness.simulate.judging import judge


def compute(pairs: list[list[int]], culprits: list[int], **more: Any) -> dict[str, Any]:
    said = {"check": "compute", "step": 22, "nonfinite": [], "verdicts": [], "peer_offset": 1}
    window = {"suspect_window": [21, 22], "last_audit_pass": 20, "last_weight_check_pass": 20}
    return {**said, **window, "mismatched_pairs": pairs, "culprits": culprits, **more}


def weights(suspects: list[int] | None) -> dict[str, Any]:
    window = {"suspect_window": [21, 22], "last_audit_pass": 20, "last_weight_check_pass": 20}
    return {"check": "weights", "step": 22, "suspects": suspects, **window}


ONE = compute([[2, 1], [3, 2]], [2])
CHAIN = compute([[1, 0], [2, 1], [3, 2]], [1, 2])


@pytest.mark.parametrize(
    ("alarm", "faulty", "nodes", "outcome", "settled"),
    [
        (None, {2}, 5, "no alarm", ()),
        (ONE, {2}, 5, "named", (2,)),
        (ONE, {4}, 5, "accused", (2,)),
        (ONE, {2, 4}, 5, "partly named", (2,)),
        (CHAIN, {1, 2}, 5, "named", ()),
        (CHAIN, {1, 3}, 5, "ambiguous", ()),
        (compute([[2, 1], [0, 2]], [2]), {0, 1}, 3, "ambiguous", ()),
        (weights([1]), {1}, 4, "named", (1,)),
        (weights([0]), {1}, 4, "accused", (0,)),
        (weights(None), {1}, 4, "ambiguous", ()),
        ({**weights([0]), "world_size": 3}, {1, 2}, 3, "ambiguous", ()),
    ],
)
def test_an_alarm_is_held_against_the_truth(
    alarm: dict[str, Any] | None,
    faulty: set[int],
    nodes: int,
    outcome: str,
    settled: tuple[int, ...],
) -> None:
    judged = judge(alarm, frozenset(faulty), nodes, 1)
    assert (judged.outcome, judged.settled) == (outcome, settled)


def test_a_verdict_names_as_a_culprit_does() -> None:
    verdict = {"pair": [2, 1], "third": 3, "suspect": 2, "kind": "persistent"}
    alarm = compute([[2, 1]], [], verdicts=[verdict])
    assert judge(alarm, frozenset({2}), 5, 1).outcome == "named"
    assert judge(alarm, frozenset({1}), 5, 1).outcome == "accused"
    open_still = compute([[2, 1]], [], verdicts=[{**verdict, "suspect": None, "kind": "unclear"}])
    assert judge(open_still, frozenset({1}), 5, 1).outcome == "ambiguous"
