"""What does a reading say of answers that are easily read wrongly?"""

from __future__ import annotations

from tests.rules.telemetry_samples import (
    ALARM,
    NODE,
    RECORDED,
    SUSPECT,
    gpu,
    only,
    reading,
    recorded,
)
from witness.rules.samples import meant
from witness.rules.telemetry import Window, read


def test_blanks_are_neither_rise_nor_heat() -> None:
    got = reading(recorded("blank_values").series, RECORDED)
    assert got.status == "nothing_found"
    assert got.observations == ()
    assert got.dropped == 6
    assert "6 samples say “no value”." in got.notes


def test_nan_and_infinities_are_said() -> None:
    got = reading(recorded("nan_and_infinities").series, RECORDED)
    assert got.status == "not_collected"
    assert "1 sample is not a number." in got.notes
    assert "2 samples are infinite." in got.notes


def test_an_xid_that_stood_for_days_is_not_dated_to_the_alarm() -> None:
    window = Window(ALARM - 4 * 86_400, ALARM - 120, ALARM, ALARM + 900)
    got = reading(recorded("sticky_xid").series, window)
    assert got.status == "nothing_found"
    (seen,) = got.observations
    assert (seen.code, seen.when, seen.risen, seen.first) == (
        "xid_standing",
        "standing",
        False,
        None,
    )
    assert "Last Xid 31 (memory page fault): already present before the suspect window" in seen.text
    assert "does not say when it happened" in seen.text


def test_a_counter_reset_by_a_reboot() -> None:
    got = reading(recorded("counter_reset").series, RECORDED)
    rose = only(got, "increase")
    assert (rose.field_id, rose.amount) == (202, 2)
    assert "Over all samples it rose by 4: 2 before and 2 after it was set back" in rose.text
    reset = only(got, "reset")
    assert "corrected memory errors since driver load from 7" in reset.text
    assert "removes no error" in reset.text
    assert not reset.risen


def test_a_gpu_split_by_pod_labels_rises_once() -> None:
    rose = only(reading(recorded("split_by_pod").series, RECORDED), "increase")
    assert "Over all samples it rose by 3." in rose.text


def test_the_heat_of_another_node_is_not_the_suspects() -> None:
    window = Window(ALARM - 600, ALARM - 250, ALARM, ALARM + 900)
    got = reading(recorded("one_index_two_nodes").series, window, ring=[gpu(5, 9)])
    assert got.looked_at == (150,)
    assert got.status == "nothing_found"


def test_clock_events_under_old_and_new_name() -> None:
    window = Window(ALARM - 600, ALARM - 250, ALARM, ALARM + 900)
    found = recorded("renamed_clock_events").series
    old = read(window, SUSPECT, found)
    (cap,) = old.observations
    assert "“software power cap” in 1 sample" in cap.text
    assert (cap.risen, old.status) == (False, "nothing_found")
    new = read(window, gpu(5, 3), found)
    assert new.status == "risen"
    titles = [one.text.split("”")[0] for one in new.observations]
    assert titles == [
        "Clock event “hardware slowdown",
        "Clock event “hardware thermal slowdown",
        "Clock event “idle",
    ]
    assert [one.risen for one in new.observations] == [True, True, False]


def test_one_silent_gpu_of_eight_stands_first() -> None:
    window = Window(ALARM - 900, ALARM - 120, ALARM, ALARM + 900)
    got = reading(recorded("one_gpu_silent").series, window, node=NODE)
    assert got.status == "risen"
    assert got.headline == (
        "GPU silent since 2026-03-02 10:14:00 UTC, 7 of 8 GPUs of this node report until "
        "2026-03-02 10:30:00 UTC."
    )
    assert got.observations[0].code == "silent"


def test_every_spelling_of_a_rank_map_reaches_the_same_reading() -> None:
    found = recorded("one_gpu").series
    known = {one.gpu_uuid for one in found}
    digits = SUSPECT.removeprefix("GPU-")
    spellings = [SUSPECT, digits, SUSPECT.upper(), SUSPECT.lower(), f"b'{digits}'",
                 "GPU-a0000002", f"UUID('{digits}')"]  # fmt: skip
    assert {meant(text, known) for text in spellings} == {SUSPECT}
    assert {meant(text, known) for text in ("nvidia5", "5")} == {None}
