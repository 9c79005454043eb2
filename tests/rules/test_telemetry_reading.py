"""Does a reading say what the samples show, what they do not, and never that a GPU is good?"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.telemetry_samples import (
    ALARM,
    NODE,
    RECORDED,
    SUSPECT,
    WINDOW,
    gpu,
    only,
    over_time,
    reading,
    recorded,
    series,
    steps,
)
from witness.rules.dcgm_fields import FIELDS
from witness.rules.samples import Series, join
from witness.rules.telemetry import Refusal, Source, Window, missing_in_words, read


def test_nothing_collected() -> None:
    got = reading([])
    assert got.status == "not_collected"
    assert "Nothing is known" in got.headline
    only_load = reading([over_time(203, lambda _: 99.0)])
    assert only_load.status == "not_collected"


def test_a_refusal_is_not_an_empty_answer() -> None:
    source = Source(refusals=(Refusal("the query would process 60,000,000 samples"),))
    got = reading([], source=source)
    assert got.status == "refused"
    assert got.headline == "The source refused: the query would process 60,000,000 samples"
    assert {one.why for one in got.missing} == {"refused"}


def test_a_partial_refusal_is_said_beside_what_was_found() -> None:
    source = Source(
        refusals=(Refusal("timed out", frozenset({310, 311})),), warnings=("2 stores missing",)
    )
    got = reading([over_time(150, lambda _: 41.0)], source=source)
    assert got.status == "nothing_found"
    assert "Not answered: timed out" in got.notes
    assert "The source said: 2 stores missing" in got.notes
    assert {one.field_id for one in got.missing if one.why == "refused"} == {310, 311}


def test_readings_from_before_the_window_alone_are_nothing_looked_at() -> None:
    got = reading([over_time(150, lambda _: 41.0, end=ALARM - 300)])
    assert got.status == "not_collected"
    assert got.looked_at == ()
    assert 150 in {one.field_id for one in got.missing if one.why == "absent"}


def test_nothing_found_clears_nothing() -> None:
    got = reading([over_time(150, lambda _: 41.0), over_time(202, lambda _: 3.0)])
    assert got.status == "nothing_found"
    assert got.looked_at == (150, 202)
    assert got.headline == (
        "Nothing found in the 2 fields that were looked at; 21 that the add-on can collect were "
        "missing. That clears nothing."
    )


@pytest.mark.parametrize("word", ["clean", "healthy", "good GPU", "innocent", "no fault"])
def test_no_sentence_calls_a_gpu_good(word: str) -> None:
    for name in ("blank_values", "sticky_xid", "counter_reset", "one_gpu_silent"):
        got = reading(recorded(name).series, RECORDED, node=NODE)
        said = [got.headline, *got.notes, *missing_in_words(got.missing)]
        said += [one.text for one in got.observations]
        assert not [text for text in said if word in text.lower()]


def test_missing_fields_say_why() -> None:
    basic = reading([over_time(150, lambda _: 41.0)], source=Source(level="basic"))
    why = {one.field_id: one.why for one in basic.missing}
    assert why[310] == "basic_level"
    assert why[202] == "absent"
    assert why[112] == "not_in_add_on"
    advanced = reading([over_time(150, lambda _: 41.0)], source=Source(level="advanced"))
    assert {one.field_id: one.why for one in advanced.missing}[310] == "absent"
    off = reading([], source=Source(level="disabled"))
    assert {one.why for one in off.missing} == {"disabled"}
    # Where the level is not known, a field of it on any GPU shows that it is collected.
    other = [over_time(150, lambda _: 41.0), over_time(310, lambda _: 0.0, uuid=gpu(1))]
    assert {one.field_id: one.why for one in reading(other).missing}[310] == "absent"
    blank = reading([over_time(140, lambda _: 2147483633.0), over_time(150, lambda _: 41.0)])
    assert {one.field_id: one.why for one in blank.missing}[140] == "no_value"
    sentences = missing_in_words(basic.missing)
    assert any("advanced level only: " in text and "NVLink replays" in text for text in sentences)
    # A part of a total is not missed.
    assert not any(314 <= one.field_id < 346 for one in basic.missing)


@pytest.mark.parametrize(
    ("field_id", "at", "when", "risen"),
    [
        (310, -60, "window", True),
        (310, 0, "window", True),
        (310, 300, "after", True),
        (310, -1800, "before", False),
        (311, -1800, "before", True),
        (393, -1800, "before", True),
        (241, -60, "window", True),
        (1212, -60, "window", True),
    ],
)
def test_a_rise_counts_by_what_it_is_and_when(
    field_id: int, at: float, when: str, risen: bool
) -> None:
    rose = only(reading([steps(field_id, (at, 3.0))]), "increase")
    assert (rose.amount, rose.when, rose.risen) == (3.0, when, risen)


@pytest.mark.parametrize("field_id", [240, 244, 156, 1214])
def test_what_is_normal_under_load_is_no_evidence(field_id: int) -> None:
    got = reading([over_time(field_id, lambda time: time - ALARM + 4000)])
    assert got.observations == ()
    assert got.status == "not_collected"


def test_a_sample_is_as_old_as_a_minute_so_the_window_reaches_past_the_alarm() -> None:
    assert only(reading([steps(310, (45, 1.0))]), "increase").when == "window"


def test_a_rise_on_most_neighbours_is_not_particular() -> None:
    found = [steps(202, (-60, 4.0), uuid=uuid) for uuid in NODE]
    rose = only(reading(found, node=NODE), "increase")
    assert not rose.risen
    assert "7 of 7 GPUs that compare rose as well, so it is not particular" in rose.text
    alone = [steps(202, (-60, 4.0 if uuid == SUSPECT else 0.0), uuid=uuid) for uuid in NODE]
    rose = only(reading(alone, node=NODE), "increase")
    assert rose.risen
    assert "None of the 7 GPUs that compare rose." in rose.text


@pytest.mark.parametrize(("others", "risen"), [(3, True), (4, False)])
def test_common_means_at_least_half_of_those_that_compare(others: int, risen: bool) -> None:
    rising = {SUSPECT, *[uuid for uuid in NODE if uuid != SUSPECT][:others]}
    found = [steps(202, (-60, 4.0 if uuid in rising else 0.0), uuid=uuid) for uuid in NODE]
    assert only(reading(found, node=NODE), "increase").risen == risen


def test_a_rise_far_above_the_neighbours_is_particular_all_the_same() -> None:
    found = [steps(202, (-60, 4000.0 if uuid == SUSPECT else 1.0), uuid=uuid) for uuid in NODE]
    assert only(reading(found, node=NODE), "increase").risen


def test_uncorrected_errors_count_even_when_neighbours_have_them() -> None:
    found = [steps(311, (-60, 1.0), uuid=uuid) for uuid in NODE]
    assert only(reading(found, node=NODE), "increase").risen


def test_a_habit_is_said_and_does_not_count() -> None:
    got = reading([over_time(310, lambda time: (time - ALARM + 3600) // 60)])
    rose = only(got, "increase")
    assert not rose.risen
    assert "before as well" in rose.text
    assert got.status == "nothing_found"


def test_links_are_read_apart_and_told_together() -> None:
    found = [
        replace(steps(429, (-30, 5.0 if link == 7 else 0.0)), part=(("link", str(link)),))
        for link in range(18)
    ]
    rose = only(reading(found), "increase")
    assert (rose.amount, rose.risen) == (5.0, True)
    assert "(on 7)" in rose.text


def test_held_down_time_is_said_in_both_units() -> None:
    rose = only(reading([steps(241, (-60, 2_500_000.0))]), "increase")
    assert "2,500,000 (2.5 ms, or 2.5 s by old units)" in rose.text


def test_a_counter_that_the_board_keeps_and_that_falls_is_a_contradiction() -> None:
    got = reading([over_time(312, lambda time: 7.0 if time < ALARM - 60 else 5.0)])
    assert got.status == "nothing_found"
    assert "fell from 7 to 5" in only(got, "contradiction").text


def test_a_hot_suspect_is_told_with_its_numbers_and_its_chance() -> None:
    rng = random.Random(1)

    def heat(uuid: str) -> Series:
        return over_time(
            150,
            lambda time: (
                round(50 + rng.gauss(0, 0.8))
                + 30 * (uuid == SUSPECT and ALARM - 120 < time <= ALARM + 60)
            ),
            uuid=uuid,
        )

    got = reading([heat(uuid) for uuid in NODE], node=NODE)
    level = only(got, "level")
    assert level.risen
    assert level.chance is not None
    assert level.chance <= 0.05
    assert "GPU temperature 80 °C after 50 °C" in level.text


any_series = st.builds(
    series,
    st.sampled_from([field.id for field in FIELDS]),
    st.lists(
        st.floats(allow_nan=True, allow_infinity=True)
        | st.sampled_from([0.0, 1.0, 31.0, 79.0, 72.0, 2147483633.0, 2.0**63]),
        max_size=12,
    ),
    uuid=st.sampled_from([SUSPECT, *NODE[:3]]),
    start=st.sampled_from([ALARM - 600, ALARM - 150, ALARM, ALARM + 1e6]),
    part=st.sampled_from(
        [
            (),
            (("link", "3"),),
            (("mig", "1"),),
            (("xid", "79"),),
            (("xid", "x"),),
            (("event", "hw_thermal"),),
        ]
    ),
)


# Any order of times, equal ones as well: nobody checks a window before it comes here.
any_window = st.builds(
    Window, *(st.sampled_from([ALARM - 3600, ALARM - 150, ALARM, ALARM + 90]) for _ in range(4))
)


@given(any_window, st.lists(any_series, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_any_samples_give_a_reading_that_does_not_depend_on_their_order(
    window: Window, found: list[Series], rng: random.Random
) -> None:
    got = reading(found, window, node=NODE)
    rng.shuffle(found)
    again = reading(found, window, node=NODE)
    assert again.observations == got.observations
    assert (again.status, again.headline, again.missing) == (got.status, got.headline, got.missing)
    assert (got.status == "risen") == bool(got.risen)
    assert set(got.looked_at).isdisjoint(one.field_id for one in got.missing)
    assert all(one.evidence != "context" for one in got.risen)
    json.dumps([asdict(one) for one in got.observations], allow_nan=False)


def test_two_sources_do_not_double_a_rise() -> None:
    found = [steps(202, (-60, 4.0))]
    assert only(reading(found * 2), "increase").amount == 4.0


def test_an_instance_with_a_uuid_of_its_own_cannot_be_joined() -> None:
    got = read(WINDOW, "MIG-a0000002-1111-4222-8333-000000000005", [])
    assert got.status == "not_collected"
    assert "an instance by a UUID of its own" in got.notes[0]


def test_a_joined_source_goes_straight_into_a_reading() -> None:
    assert reading(join([]).series).status == "not_collected"
