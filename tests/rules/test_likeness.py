"""Do alarms that are alike really come to the same findings?"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from witness.rules.alarm import Alarm, SuspectsState, Verdict
from witness.rules.findings import findings
from witness.rules.likeness import likeness
from witness.rules.topology import Place, Topology

KINDS = ("persistent", "transient", "unclear", "replayer computed wrong", "unattributable", "odd")

SUSPECTS: list[tuple[tuple[int, ...] | None, SuspectsState]] = [
    (None, "null"),
    (None, "missing"),
    ((3,), "named"),
    ((), "empty"),
]


def layout(nodes: int) -> Topology:
    places = [Place(rank, f"n{rank // 2}", None, f"GPU-{rank}") for rank in range(2 * nodes)]
    return Topology.from_places(places, 2 * nodes)


def some_alarm(dice: random.Random) -> Alarm:
    ranks = [dice.randrange(7, 9) for _ in range(3)]
    pairs = tuple((dice.randrange(4), dice.randrange(4)) for _ in range(dice.randrange(3)))
    verdicts = tuple(
        Verdict(pair, dice.choice([None, ranks[0]]), dice.choice([None, *pair]), dice.choice(KINDS))
        for pair in pairs
        if dice.random() < 0.5
    )
    check = dice.choice(["compute", "compute", "weights", "reduced gradient", "odd"])
    step = dice.randrange(20, 60)
    return Alarm(
        check,
        step,
        tuple(ranks[: dice.randrange(2)]),
        pairs,
        tuple(ranks[: dice.randrange(3)]),
        verdicts,
        *dice.choice(SUSPECTS),
        suspect_window=dice.choice([None, (step - 9, step), (step - 3, step)]),
        last_audit_pass=dice.choice([None, step - 10]),
        last_weight_check_pass=dice.choice([None, step - 10]),
        world_size=dice.choice([None, 8]),
    )


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_alike_means_same_findings(nodes: int) -> None:
    dice, topology = random.Random(nodes), layout(nodes)
    seen: dict[object, object] = {}
    met = 0
    for _ in range(4_000):
        alarm = some_alarm(dice)
        key = likeness(alarm)
        if key is None:
            continue
        found = findings(alarm, topology)
        met += key in seen
        assert seen.setdefault(key, found) == found
    assert met > 500, "hardly any two alarms were alike: the test compared nothing"


def test_a_window_that_disagrees_is_like_no_other() -> None:
    alarm = Alarm("compute", 30, (), ((5, 3), (7, 5)), (5,), last_audit_pass=20)
    assert likeness(replace(alarm, suspect_window=(21, 30))) is not None
    assert likeness(replace(alarm, suspect_window=(25, 30))) is None


def test_digests_are_like_no_others() -> None:
    assert likeness(Alarm("compute", 30, culprits=(5,), digests={"5": {"own": "a"}})) is None
