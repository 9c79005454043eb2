"""Which flags, Xids, clock events and silences count, and which only look so?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.telemetry_samples import (
    ALARM,
    NODE,
    SUSPECT,
    gpu,
    only,
    over_time,
    reading,
    steps,
)
from witness.rules.samples import Series


def test_a_flag_that_stands_counts_and_is_not_dated() -> None:
    got = reading([over_time(395, lambda _: 1.0)])
    flag = only(got, "flag")
    assert (flag.risen, flag.when, flag.first) == (True, "standing", None)
    assert "When it began is not known." in flag.text
    assert only(reading([steps(395, (-60, 1.0))]), "flag").when == "window"


def test_a_recovery_action_is_put_into_words() -> None:
    assert "reboot the node" in only(reading([steps(1523, (-60, 2.0))]), "flag").text


def test_a_health_watch_that_turns_to_warning() -> None:
    watch = over_time(9003, lambda time: 10.0 * (time > ALARM), part=(("watch", "PCIE"),))
    assert "PCIE: warning" in only(reading([watch]), "flag").text


def test_the_hardwares_own_limits() -> None:
    assert only(
        reading([over_time(153, lambda time: 5.0 - 6 * (time > ALARM - 60))]), "limit"
    ).risen
    assert reading([over_time(153, lambda _: 12.0)]).observations == ()
    absolute = [
        over_time(150, lambda time: 80.0 + 10 * (time > ALARM)),
        over_time(158, lambda _: 89.0),
    ]
    assert "89 °C" in only(reading(absolute), "limit").text
    # From Ada on the field holds a margin: no temperature is held against it.
    margin = [over_time(150, lambda _: 60.0), over_time(158, lambda _: -2.0)]
    assert reading(margin).observations == ()


@pytest.mark.parametrize(
    ("number", "at", "risen"),
    [
        (79, -60, True),
        (79, -1800, True),
        (48, 300, True),
        (119, -60, True),
        (119, -1800, False),
        (999, -60, True),
        (31, -60, False),
        (13, -60, False),
        (43, -60, False),
        (63, -60, True),
        (154, -60, True),
    ],
)
def test_a_new_xid_counts_by_its_class_and_time(number: int, at: float, risen: bool) -> None:
    seen = only(reading([steps(230, (at, number))]), "xid_new")
    assert seen.risen == risen
    assert f"New Xid {number} " in seen.text
    assert (seen.first, seen.last) == (ALARM + at - 15, ALARM + at)


def test_an_xid_in_the_first_sample_has_no_time_even_inside_the_window() -> None:
    got = reading([over_time(230, lambda _: 79.0, start=ALARM - 60)])
    seen = only(got, "xid_standing")
    assert (seen.when, seen.risen) == ("unknown", False)


def test_a_gauge_that_goes_back_to_nought_is_no_recovery() -> None:
    got = reading([steps(230, (-3600, 79.0), (-60, 0.0))])
    assert got.status == "nothing_found"
    assert "no recovery" in only(got, "xid_gone").text


def test_one_xid_is_one_however_many_samples_show_it() -> None:
    got = reading([steps(230, (-60, 79.0))])
    assert len(got.risen) == 1


def test_counts_over_a_window_date_an_xid_and_are_not_added_up() -> None:
    part = (("window_ms", "300000"), ("xid", "79"))
    counts = over_time(9001, lambda time: 1.0 * (ALARM - 60 <= time < ALARM + 240), part=part)
    (seen,) = reading([counts]).observations
    assert (seen.risen, seen.when, seen.amount) == (True, "window", 1.0)
    assert (seen.first, seen.last) == (ALARM - 360, ALARM - 60)


def test_a_total_that_appears_while_the_gpu_is_watched_counts_from_nought() -> None:
    total = over_time(9005, lambda _: 1.0, start=ALARM - 60, part=(("xid", "48"),))
    watched = reading([total, over_time(150, lambda _: 41.0)])
    assert only(watched, "increase").risen
    unwatched = reading([total])
    assert unwatched.observations == ()


def test_clock_events_by_the_exporters_counts() -> None:
    normal = over_time(9006, lambda time: time - ALARM + 4000, part=(("event", "power_cap"),))
    assert reading([normal]).observations == ()
    brake = steps(9006, (-60, 2.0))
    brake = Series(SUSPECT, 9006, (("event", "hw_power_brake"),), brake.times, brake.values)
    assert "hardware power brake" in only(reading([brake]), "increase").text


def test_a_clock_event_that_was_there_before_does_not_count() -> None:
    got = reading([over_time(112, lambda time: 8.0 * (time // 15 % 9 == 0))])
    assert not only(got, "clock_event").risen
    assert "before as well" in only(got, "clock_event").text


def test_a_clock_event_that_stands_counts_only_against_neighbours_without_it() -> None:
    own = over_time(112, lambda _: 8.0)
    assert reading([own]).status == "nothing_found"
    neighbours = [over_time(112, lambda _: 0.0, uuid=uuid) for uuid in NODE if uuid != SUSPECT]
    seen = only(reading([own, *neighbours], node=NODE), "clock_event")
    assert (seen.risen, seen.when) == (True, "standing")
    assert "still active in the suspect window" in seen.text


def test_a_clock_event_of_most_neighbours_does_not_count() -> None:
    found = [steps(112, (-60, 0x40), uuid=uuid) for uuid in NODE]
    assert reading(found, node=NODE).status == "nothing_found"


@pytest.mark.parametrize("mask", [0x1, 0x2, 0x4, 0x10, 0x100, 0x117])
def test_normal_clock_events_never_count(mask: int) -> None:
    assert reading([steps(112, (-60, mask))]).status == "nothing_found"


def test_a_gpu_that_was_away_while_others_reported() -> None:
    found = [over_time(150, lambda _: 41.0, uuid=uuid) for uuid in NODE if uuid != SUSPECT]
    own = over_time(150, lambda _: 41.0)
    kept = [
        (time, value)
        for time, value in zip(own.times, own.values, strict=True)
        if not ALARM - 90 < time < ALARM + 90
    ]
    holed = Series(SUSPECT, 150, (), tuple(t for t, _ in kept), tuple(v for _, v in kept))
    away = only(reading([*found, holed], node=NODE), "away")
    assert (away.risen, away.when) == (True, "window")
    assert "while 7 of 7 neighbours reported" in away.text


def test_a_gpu_whose_samples_turn_to_no_value_while_others_have_values() -> None:
    blank = 9223372036854775794.0
    own = [
        over_time(field, lambda time: 41.0 if time < ALARM - 60 else blank) for field in (150, 202)
    ]
    neighbours = [over_time(150, lambda _: 41.0, uuid=uuid) for uuid in NODE if uuid != SUSPECT]
    seen = only(reading([*own, *neighbours], node=NODE), "no_values")
    assert (seen.risen, seen.when) == (True, "window")
    assert "while 7 of 7 neighbours have values" in seen.text
    # All of them at once: the exporter lost them.
    alike = [
        over_time(150, lambda time: 41.0 if time < ALARM - 60 else blank, uuid=uuid)
        for uuid in NODE
    ]
    assert reading(alike, node=NODE).status != "risen"


def test_an_exporter_that_was_away_accuses_no_gpu() -> None:
    def holed(uuid: str) -> Series:
        one = over_time(150, lambda _: 41.0, uuid=uuid)
        times = tuple(time for time in one.times if not ALARM - 90 < time < ALARM + 90)
        return Series(uuid, 150, (), times, (41.0,) * len(times))

    got = reading([holed(uuid) for uuid in NODE], node=NODE)
    assert got.status == "nothing_found"
    assert any("missing" in note for note in got.notes)


def test_a_whole_node_that_stops_is_not_told_apart() -> None:
    node = [over_time(150, lambda _: 41.0, uuid=uuid, end=ALARM) for uuid in NODE]
    other = over_time(150, lambda _: 41.0, uuid=gpu(5, 3))
    got = reading([*node, other], node=NODE, ring=[gpu(5, 3)])
    assert got.status == "nothing_found"
    assert any("No GPU of this node has a sample after" in note for note in got.notes)


def test_a_gpu_that_never_reported_is_said_and_not_judged() -> None:
    found = [over_time(150, lambda _: 41.0, uuid=uuid) for uuid in NODE if uuid != SUSPECT]
    got = reading(found, node=NODE)
    assert got.status == "not_collected"
    assert any("7 of 8 GPUs of its node did" in note for note in got.notes)


def test_instances_of_a_split_gpu_are_read_one_by_one() -> None:
    found = [
        replace(steps(310, (15, 2.0 if mig == "2" else 0.0)), part=(("mig", mig),)) for mig in "12"
    ]
    got = reading(found)
    assert "(on 2)" in only(got, "increase").text
    assert any("split (MIG) into 2 instances" in note for note in got.notes)
