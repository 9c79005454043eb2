"""Is one node too many refused by the right limit, in words with its figures?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.rules import rail_policy
from witness.rules.rail_policy import FIELDS, BadLimit, RailPolicy
from witness.rules.rails import (
    EFFECTS,
    Counts,
    caps,
    effect_of,
    first_refusal,
    share_limit,
    unknowns,
)

POLICY = RailPolicy(
    max_nodes=3, max_share=0.25, max_destroyed_share=0.1, max_per_group=3, max_per_zone=4,
    max_per_domain=2, max_per_hour=3, max_per_day=5, cooldown_minutes=30, attempts=2,
)  # fmt: skip
KNOWN = Counts(fleet=40, group="gpu", zone="a", domains=(("the rack 7", 0),))
DESTROYING = ("replace", "reboot", "deep_health_check")


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({}, None, ""),
        ({"out": 2}, None, ""),
        ({"out": 3}, "max_nodes", "3 of at most 3 nodes held or being destroyed at one time."),
        ({"out_in_cluster": 9}, None, ""),
        ({"out_in_cluster": 10}, "max_share", "10 of at most 10 of the cluster’s 40 GPU nodes"),
        ({"out_in_group": 3}, "max_per_group", "in the instance group gpu."),
        ({"out_in_zone": 4}, "max_per_zone", "4 of at most 4 nodes out of service in the zone a."),
        ({"domains": (("the rack 7", 2),)}, "max_per_domain", "2 nodes out of service in the rack"),
        ({"last_hour": 3}, "max_per_hour", "3 of at most 3 nodes an hour."),
        ({"last_day": 5}, "max_per_day", "5 of at most 5 nodes a day."),
        ({"attempts": 2}, "attempts", "2 of at most 2 attempts on this node in 24 hours."),
        ({"out": 3, "last_hour": 3}, "max_nodes", "3 of at most 3"),
    ],
)
@pytest.mark.parametrize("action", ["cordon", *DESTROYING])
def test_each_limit(action: str, changed: dict[str, Any], code: str | None, words: str) -> None:
    refusal = first_refusal(POLICY, action, replace(KNOWN, **changed))
    assert (refusal.code if refusal else None) == code
    assert words in (refusal.words if refusal else "")


@pytest.mark.parametrize(
    ("action", "changed", "code"),
    [
        ("cordon", {"destroying_in_cluster": 9}, None),
        ("replace", {"destroying_in_cluster": 3}, None),
        ("replace", {"destroying_in_cluster": 4}, "max_destroyed_share"),
        ("cordon", {"rests_minutes": 1.0}, None),
        ("replace", {"rests_minutes": 29.9}, "cooldown"),
        ("replace", {"rests_minutes": 30.0}, None),
        ("cordon", {"fleet": None}, None),
        ("cordon", {"fleet": None, "out": 3}, "max_nodes"),
        ("replace", {"fleet": None}, "fleet_unknown"),
        ("replace", {"fleet": None, "dry_run": True}, None),
        ("no such action", {"fleet": None}, "fleet_unknown"),
    ],
)
def test_what_destroys_meets_more(action: str, changed: dict[str, Any], code: str | None) -> None:
    refusal = first_refusal(POLICY, action, replace(KNOWN, **changed))
    assert (refusal.code if refusal else None) == code


def test_undoing_and_asking_meet_no_limit() -> None:
    full = Counts(
        99, 99, 99, None, False, "gpu", 99, "a", 99, (("the rack 7", 99),), 99, 99, 99, 0.0
    )
    for action in ("uncordon", "targeted_audit"):
        assert first_refusal(POLICY, action, full) is None
        assert caps(POLICY, action, full) == ()
        assert unknowns(action, full) == ()


def test_every_action_that_is_known_has_an_effect() -> None:
    assert {name for name, effect in EFFECTS.items() if effect == "destroys"} == set(DESTROYING)
    assert effect_of("something new") == "destroys"


@pytest.mark.parametrize(
    ("fleet", "share", "held", "destroyed"),
    [(0, 0.25, 4, 1), (4, 0.25, 4, 1), (40, 0.25, 10, 10), (100, 0.29, 29, 29), (100, 0.07, 7, 7),
     (39, 0.1, 4, 3), (10_000, 1.0, 10_000, 10_000)],
)  # fmt: skip
def test_a_share_is_rounded_down(fleet: int, share: float, held: int, destroyed: int) -> None:
    assert share_limit(fleet, share, "holds") == held
    assert share_limit(fleet, share, "destroys") == destroyed


def test_what_was_not_checked_is_said() -> None:
    assert unknowns("cordon", KNOWN) == ()
    said = unknowns("cordon", Counts())
    assert [one.split(":")[0] for one in said] == [
        "How many GPU nodes the cluster has is not known",
        "The node’s instance group is not known",
        "The node’s zone and rack are not known",
    ]


def test_what_is_left_is_told_with_every_limit() -> None:
    left = {one.code: one.left for one in caps(POLICY, "replace", replace(KNOWN, out=1))}
    assert left == {
        "max_nodes": 2, "max_share": 10, "max_destroyed_share": 4, "max_per_group": 3,
        "max_per_zone": 4, "max_per_domain": 2, "max_per_hour": 3, "max_per_day": 5, "attempts": 2,
    }  # fmt: skip


@given(st.sampled_from(sorted(EFFECTS)), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_more_in_use_never_lets_more_through(action: str, out: int, hour: int, more: int) -> None:
    counts = replace(KNOWN, out=out, last_hour=hour)
    worse = replace(counts, out=out + more, last_hour=hour + more)
    if first_refusal(POLICY, action, counts) is not None:
        assert first_refusal(POLICY, action, worse) is not None


def test_a_policy_is_read_and_said_in_words() -> None:
    policy = rail_policy.checked({"max_nodes": 5, "max_share": 0.5, "four_eyes": False}, 3)
    assert (policy.max_nodes, policy.max_share, policy.four_eyes) == (5, 0.5, False)
    assert (policy.name, RailPolicy().name) == ("3", "assumed")
    assert rail_policy.changes(RailPolicy(), policy) == (
        "Nodes held, or being destroyed, at one time, over all clusters: 32 nodes → 5 nodes",
        "Share of a cluster’s GPU nodes out of service at one time, by whomever: 25 % → 50 %",
        "What destroys is approved by somebody else than who asked for it: yes → no",
    )
    assert rail_policy.checked(policy.values, 3) == policy
    assert set(RailPolicy().values) == {field.name for field in FIELDS}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_nodes", 0), ("max_nodes", 2.5), ("max_nodes", True), ("max_nodes", "3"),
        ("max_nodes", 10**9), ("max_share", 0), ("max_share", 1.1), ("four_eyes", 1),
        ("max_share", float("nan")), ("cooldown_minutes", -1), ("no_such", 1),
        ("max_destroyed_share", 0.9), ("max_per_hour", 65), ("execute_minutes", float("inf")),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_be_is_named(field: str, value: object) -> None:
    with pytest.raises(BadLimit) as bad:
        rail_policy.checked({field: value}, 1)
    assert bad.value.field == field
