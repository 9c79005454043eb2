"""Is every well-formed alarm read, and every other refused with the field that is wrong?"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.documents import DOCUMENTS, compute, reduced, weights
from witness.rules.alarm import Alarm, AlarmError, Schedule, Verdict, read_alarm
from witness.rules.ring import Audit

WRONG_INTEGERS = [math.nan, math.inf, 30.0, True, "30", -1, [30], {}]


def test_a_compute_alarm() -> None:
    alarm = read_alarm(
        {
            "check": "compute",
            "step": 25,
            "nonfinite": [13],
            "mismatched_pairs": [[13, 5]],
            "culprits": [],
            "verdicts": [{"pair": [13, 5], "third": 21, "suspect": 13, "kind": "transient"}],
            "suspect_window": [21, 25],
            "last_audit_pass": 20,
            "last_weight_check_pass": None,
            "world_size": 32,
            "peer_offset": 8,
            "kernel_mode": "deterministic",
            "schedule": {"audit_every": 10, "check_every": 10, "start_step": 0},
            "digests": {"13": {"own": "a"}},
            "further_audits": [{"peer_offset": 16, "mismatched_pairs": [[13, 29]]}],
            "loss": math.nan,
        }
    )
    assert alarm == Alarm(
        check="compute",
        step=25,
        nonfinite=(13,),
        mismatched_pairs=((13, 5),),
        culprits=(),
        verdicts=(Verdict((13, 5), 21, 13, "transient"),),
        suspects=None,
        suspects_state="not_applicable",
        suspect_window=(21, 25),
        last_audit_pass=20,
        last_weight_check_pass=None,
        world_size=32,
        peer_offset=8,
        kernel_mode="deterministic",
        schedule=Schedule(10, 10, None, 0),
        digests={"13": {"own": "a"}},
        further_audits=(Audit(16, ((13, 29),)),),
    )
    assert alarm.audits(8) == (Audit(8, ((13, 5),)), Audit(16, ((13, 29),)))


@pytest.mark.parametrize(
    ("given", "suspects", "state"),
    [
        ({"suspects": None}, None, "null"),
        ({"suspects": []}, (), "empty"),
        ({}, None, "missing"),
        ({"suspects": [7, 12]}, (7, 12), "named"),
    ],
)
def test_null_empty_and_missing_suspects_differ(given: Any, suspects: Any, state: str) -> None:
    alarm = read_alarm({"check": "weights", "step": 40, **given})
    assert (alarm.suspects, alarm.suspects_state) == (suspects, state)


def test_a_check_without_suspects_lacks_none() -> None:
    assert read_alarm({"check": "compute", "step": 1}).suspects_state == "not_applicable"
    document = {"check": "reduced gradient", "step": 1, "suspects": None}
    assert read_alarm(document).suspects_state == "not_applicable"


def test_integers_beyond_those_of_a_browser_keep_every_digit() -> None:
    alarm = read_alarm(weights(suspects=[0], step=2**53 + 1, suspect_window=[2**53, 2**63 - 1]))
    assert (alarm.step, alarm.suspect_window) == (9007199254740993, (2**53, 2**63 - 1))


def test_what_is_unknown_is_kept_as_posted() -> None:
    verdict = {"pair": [1, 2], "kind": "half a verdict"}
    alarm = read_alarm({"check": "quantum", "step": 0, "verdicts": [verdict], "more": [1]})
    assert alarm.check == "quantum"
    assert alarm.verdicts == (Verdict((1, 2), None, None, "half a verdict"),)


@pytest.mark.parametrize("wrong", WRONG_INTEGERS)
@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("alarm.step", lambda v: {"step": v}),
        ("alarm.nonfinite[1]", lambda v: {"nonfinite": [3, v]}),
        ("alarm.culprits[0]", lambda v: {"culprits": [v]}),
        ("alarm.suspects[0]", lambda v: {"suspects": [v]}),
        ("alarm.mismatched_pairs[1][0]", lambda v: {"mismatched_pairs": [[1, 2], [v, 5]]}),
        ("alarm.mismatched_pairs[0][1]", lambda v: {"mismatched_pairs": [[13, v]]}),
        ("alarm.suspect_window[0]", lambda v: {"suspect_window": [v, 5]}),
        ("alarm.suspect_window[1]", lambda v: {"suspect_window": [1, v]}),
        ("alarm.last_audit_pass", lambda v: {"last_audit_pass": v}),
        ("alarm.last_weight_check_pass", lambda v: {"last_weight_check_pass": v}),
        ("alarm.world_size", lambda v: {"world_size": v}),
        ("alarm.peer_offset", lambda v: {"peer_offset": v}),
        (
            "alarm.further_audits[0].peer_offset",
            lambda v: {"further_audits": [{"peer_offset": v}]},
        ),
        (
            "alarm.further_audits[0].mismatched_pairs[0][1]",
            lambda v: {"further_audits": [{"mismatched_pairs": [[13, v]]}]},
        ),
        ("alarm.schedule.audit_every", lambda v: {"schedule": {"audit_every": v}}),
        ("alarm.schedule.check_every", lambda v: {"schedule": {"check_every": v}}),
        ("alarm.schedule.ckpt_every", lambda v: {"schedule": {"ckpt_every": v}}),
        ("alarm.schedule.start_step", lambda v: {"schedule": {"start_step": v}}),
        (
            "alarm.verdicts[0].third",
            lambda v: {"verdicts": [{"pair": [1, 2], "third": v, "kind": "unclear"}]},
        ),
        (
            "alarm.verdicts[0].suspect",
            lambda v: {"verdicts": [{"pair": [1, 2], "suspect": v, "kind": "unclear"}]},
        ),
        ("alarm.verdicts[0].pair[1]", lambda v: {"verdicts": [{"pair": [1, v], "kind": "x"}]}),
    ],
)
def test_where_an_integer_is_due_nothing_else_is_taken(field: str, place: Any, wrong: Any) -> None:
    with pytest.raises(AlarmError) as refused:
        read_alarm({"check": "compute", "step": 30, **place(wrong)})
    assert refused.value.field == field
    assert refused.value.expected
    json.dumps(refused.value.got, allow_nan=False)


@pytest.mark.parametrize(
    ("field", "document"),
    [
        ("alarm", [1]),
        ("alarm.check", {"step": 1}),
        ("alarm.check", {"step": 1, "check": ""}),
        ("alarm.check", {"step": 1, "check": 5}),
        ("alarm.step", {"check": "compute"}),
        ("alarm.step", {"check": "compute", "step": None}),
        ("alarm.step", {"check": "compute", "step": 2**63}),
        ("alarm.nonfinite", {"check": "compute", "step": 1, "nonfinite": 13}),
        ("alarm.nonfinite", {"check": "compute", "step": 1, "nonfinite": ""}),
        ("alarm.nonfinite", {"check": "compute", "step": 1, "nonfinite": {}}),
        ("alarm.nonfinite[0]", {"check": "compute", "step": 1, "nonfinite": [2**31]}),
        ("alarm.nonfinite[0]", {"check": "compute", "step": 1, "nonfinite": [None]}),
        ("alarm.culprits", {"check": "compute", "step": 1, "culprits": False}),
        ("alarm.mismatched_pairs", {"check": "compute", "step": 1, "mismatched_pairs": 0}),
        ("alarm.mismatched_pairs[0]", {"check": "compute", "step": 1, "mismatched_pairs": [13, 5]}),
        ("alarm.mismatched_pairs[0]", {"check": "compute", "step": 1, "mismatched_pairs": [[1]]}),
        ("alarm.mismatched_pairs[0]", {"check": "compute", "step": 1, "mismatched_pairs": ["ab"]}),
        ("alarm.further_audits", {"check": "compute", "step": 1, "further_audits": {}}),
        ("alarm.further_audits[0]", {"check": "compute", "step": 1, "further_audits": [[16]]}),
        ("alarm.verdicts", {"check": "compute", "step": 1, "verdicts": {}}),
        ("alarm.verdicts[0]", {"check": "compute", "step": 1, "verdicts": [[13, 5]]}),
        ("alarm.verdicts[0].pair", {"check": "compute", "step": 1, "verdicts": [{"kind": "x"}]}),
        (
            "alarm.verdicts[0].kind",
            {"check": "compute", "step": 1, "verdicts": [{"pair": [1, 2]}]},
        ),
        ("alarm.suspects", {"check": "weights", "step": 1, "suspects": 0}),
        ("alarm.suspects", {"check": "weights", "step": 1, "suspects": {}}),
        ("alarm.suspect_window", {"check": "compute", "step": 1, "suspect_window": [30, 21]}),
        ("alarm.suspect_window", {"check": "compute", "step": 1, "suspect_window": [30]}),
        ("alarm.suspect_window", {"check": "compute", "step": 1, "suspect_window": "21-30"}),
        ("alarm.world_size", {"check": "compute", "step": 1, "world_size": 0}),
        ("alarm.peer_offset", {"check": "compute", "step": 1, "peer_offset": 0}),
        ("alarm.kernel_mode", {"check": "compute", "step": 1, "kernel_mode": 1}),
        ("alarm.schedule", {"check": "compute", "step": 1, "schedule": [10]}),
        ("alarm.digests", {"check": "compute", "step": 1, "digests": [1]}),
    ],
)
def test_a_wrong_shape_is_refused_by_name(field: str, document: Any) -> None:
    with pytest.raises(AlarmError) as refused:
        read_alarm(document)
    assert refused.value.field == field
    assert field in str(refused.value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ("x" * 90, '"' + "x" * 60 + '…"'),
        ("x" * 60, '"' + "x" * 60 + '"'),
        ([1, 2], "a list of 2"),
        ({}, "an object"),
        (-(10**9), "-1000000000"),
        (10**50, "an integer of more than 40 digits"),
    ],
)
def test_a_refusal_quotes_what_was_there(value: Any, shown: str) -> None:
    with pytest.raises(AlarmError) as refused:
        read_alarm({"check": "compute", "step": value})
    assert refused.value.got == shown


@pytest.mark.parametrize("field", ["world_size", "peer_offset"])
def test_a_count_is_at_least_one(field: str) -> None:
    for count in (1, 2**31 - 1):
        assert getattr(read_alarm({**compute(), field: count}), field) == count
    for count in (0, 2**31):
        with pytest.raises(AlarmError):
            read_alarm({**compute(), field: count})


def test_ranks_and_steps_end_where_the_store_ends() -> None:
    highest = read_alarm(compute(nonfinite=[2**31 - 1], step=2**63 - 1))
    assert (highest.nonfinite, highest.step) == ((2**31 - 1,), 2**63 - 1)
    assert read_alarm(compute(nonfinite=[0], step=0)).nonfinite == (0,)


def test_a_null_list_is_an_absent_one() -> None:
    nothing = {"nonfinite": None, "mismatched_pairs": None, "culprits": None, "verdicts": None}
    assert read_alarm({"check": "compute", "step": 1, **nothing}) == Alarm("compute", 1)


@pytest.mark.parametrize(
    ("document", "family"),
    [
        (compute(pairs=[[13, 5]]), "ring"),
        (compute(nonfinite=[13], pairs=[[13, 5]]), "ring"),
        (compute(culprits=[13]), "ring"),
        (compute(verdicts=[{"pair": [13, 5], "kind": "unclear"}]), "ring"),
        (compute(nonfinite=[13]), "nonfinite"),
        (compute(), "unknown"),
        (weights(suspects=None), "weights"),
        (reduced(), "reduced gradient"),
        ({"check": "ring", "step": 1}, "unknown"),
    ],
)
def test_the_mark_of_an_alarm(document: Any, family: str) -> None:
    assert read_alarm(document).check_family == family


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_order_or_repetition(document: Any, random: Any) -> None:
    mixed = dict(document)
    for key in ("nonfinite", "mismatched_pairs", "culprits", "verdicts", "suspects"):
        if mixed.get(key):
            mixed[key] = [*mixed[key], random.choice(mixed[key])]
            random.shuffle(mixed[key])
    assert read_alarm(mixed).names() == read_alarm(document).names()


def test_names_are_hashable_and_can_be_written_down() -> None:
    verdicts: list[dict[str, Any]] = [
        {"pair": [13, 5], "kind": "unclear"},
        {"pair": [13, 5], "third": 1, "kind": "x"},
    ]
    names = read_alarm(compute(verdicts=verdicts)).names()
    assert hash(names)
    assert json.loads(json.dumps(names)) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (compute(culprits=[13]), compute(culprits=[14])),
        (compute(culprits=[13]), compute(nonfinite=[13])),
        (compute(pairs=[[13, 5]]), compute(pairs=[[5, 13]])),
        (weights(suspects=None), weights(suspects=[])),
        ({"check": "weights", "step": 1}, {"check": "weights", "step": 1, "suspects": None}),
        (
            compute(verdicts=[{"pair": [13, 5], "third": 21, "suspect": 13, "kind": "transient"}]),
            compute(verdicts=[{"pair": [13, 5], "third": 21, "suspect": 13, "kind": "persistent"}]),
        ),
        (
            compute(verdicts=[{"pair": [13, 5], "suspect": 0, "kind": "unclear"}]),
            compute(verdicts=[{"pair": [13, 5], "suspect": None, "kind": "unclear"}]),
        ),
    ],
)
def test_names_tell_different_alarms_apart(one: Any, other: Any) -> None:
    assert read_alarm(one).names() != read_alarm(other).names()


def test_what_an_alarm_does_not_name_does_not_count() -> None:
    one = read_alarm(compute(culprits=[13], suspect_window=[21, 30], last_audit_pass=20))
    other = read_alarm(compute(culprits=[13], suspect_window=[1, 30], world_size=32))
    assert one.names() == other.names()


def test_the_named_ranks() -> None:
    verdicts = [
        {"pair": [13, 5], "third": 21, "suspect": 13, "kind": "transient"},
        {"pair": [6, 30], "third": 14, "suspect": None, "kind": "unattributable"},
    ]
    alarm = read_alarm(compute(nonfinite=[9, 3], culprits=[3], verdicts=verdicts))
    assert alarm.named_ranks() == (3, 9, 13)
    assert read_alarm(weights(suspects=[7, 2])).named_ranks() == (2, 7)
