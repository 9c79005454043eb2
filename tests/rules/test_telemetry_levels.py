"""Are shifts found, and is chance called a shift no more often than stated?"""

from __future__ import annotations

import random
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, NODE, SUSPECT, gpu, series
from witness.rules.around import within
from witness.rules.bursts import at_least, burst
from witness.rules.cleaning import clean
from witness.rules.counting import counted
from witness.rules.levels import NotJudged, Shift, shift
from witness.rules.observations import FALSE_ALARMS, Window
from witness.rules.samples import Series

WINDOW = Window(ALARM - 7200, ALARM - 300, ALARM, ALARM + 600)
NEIGHBOURS = [uuid for uuid in NODE if uuid != SUSPECT]
HEAT = 150


def heats(
    rng: random.Random, uuid: str, own: float, shared: list[float], noise: float = 0.7
) -> list[float]:
    """Make whole degrees: a level of the GPU, the job's ups and downs, noise that lasts."""
    drift, values = 0.0, []
    for common in shared:
        # Heat forgets within minutes: half of it is gone after about 45 s.
        drift = 0.8 * drift + rng.gauss(0, noise)
        values.append(float(round(own + common + drift)))
    assert uuid
    return values


def node_of(seed: int, bump: float = 0.0, tail: float = 0.0) -> list[Series]:
    """Make eight GPUs for two hours at 15 s; the suspect may run hotter in the window."""
    rng = random.Random(seed)
    count = int((WINDOW.end - WINDOW.start) // 15)
    load, shared = 0.0, []
    for _ in range(count):
        load = 0.98 * load + rng.gauss(0, 1.0)
        shared.append(load)
    found = []
    for uuid in NODE:
        values = heats(rng, uuid, 55 + rng.uniform(-6, 6), shared)
        for place in range(count):
            if rng.random() < tail:
                values[place] += rng.choice([3.0, 9.0, 27.0])
            time = WINDOW.start + 15 * place
            if uuid == SUSPECT and WINDOW.suspect_from < time <= WINDOW.alarm:
                values[place] += bump
        found.append(series(HEAT, values, uuid=uuid, start=WINDOW.start))
    return found


def result(found: list[Series], window: Window = WINDOW) -> Shift | NotJudged:
    cleaned = {one.gpu_uuid: clean(one) for one in found}
    own = cleaned.pop(SUSPECT)
    return shift(own, list(cleaned.values()), window)


def chance(found: list[Series], window: Window = WINDOW) -> float:
    got = result(found, window)
    assert isinstance(got, Shift)
    return got.chance


@pytest.mark.parametrize("tail", [0.0, 0.01])
def test_chance_alone_is_called_a_shift_no_more_often_than_stated(tail: float) -> None:
    """Among 120 quiet nodes; the bound is the stated share and two standard deviations."""
    seeds = 120
    called = sum(chance(node_of(seed, tail=tail)) <= FALSE_ALARMS for seed in range(seeds))
    assert called <= seeds * FALSE_ALARMS + 2 * (seeds * FALSE_ALARMS) ** 0.5


def test_a_suspect_eight_degrees_hotter_than_it_should_be_is_found_nearly_always() -> None:
    found = [chance(node_of(seed, bump=8.0)) <= FALSE_ALARMS for seed in range(20)]
    assert sum(found) >= 19


def test_a_job_that_heats_all_gpus_alike_shifts_nobody() -> None:
    found = node_of(3)
    hotter = [
        Series(
            one.gpu_uuid, HEAT, (), one.times,
            tuple(
                value + 15 * (time > WINDOW.suspect_from)
                for time, value in zip(one.times, one.values, strict=True)
            ),
        )
        for one in found
    ]  # fmt: skip
    assert chance(hotter) > FALSE_ALARMS


def test_a_gpu_that_was_always_hot_is_not_shifted() -> None:
    found = [
        Series(one.gpu_uuid, HEAT, (), one.times, tuple(value + 12 for value in one.values))
        if one.gpu_uuid == SUSPECT
        else one
        for one in node_of(4)
    ]
    assert chance(found) > FALSE_ALARMS


def test_a_gross_difference_is_found_in_spite_of_a_short_past() -> None:
    window = Window(ALARM - 900, ALARM - 300, ALARM, ALARM + 60)
    bumped = [chance(node_of(seed, bump=40.0), window) for seed in range(5)]
    assert max(bumped) <= FALSE_ALARMS
    quiet = [chance(node_of(seed), window) for seed in range(60)]
    assert sum(one <= FALSE_ALARMS for one in quiet) <= 6


def test_few_draws_need_a_large_excess() -> None:
    """Three neighbours and two blocks of past: ranks alone could not get below one in twelve."""
    window = Window(ALARM - 900, ALARM - 300, ALARM, ALARM + 60)
    kept = [
        within(one, window.start, window.end)
        for one in node_of(2, bump=40.0)
        if one.gpu_uuid in (SUSPECT, *NEIGHBOURS[:3])
    ]
    got = result(kept, window)
    assert isinstance(got, Shift)
    assert got.draws == 11
    assert got.chance == pytest.approx(got.others / got.residual / 12)
    assert got.chance <= FALSE_ALARMS < 1 / 12


def test_a_neighbour_out_of_line_does_not_accuse_the_suspect() -> None:
    found = [
        Series(one.gpu_uuid, HEAT, (), one.times, tuple(value + 30 for value in one.values))
        if one.gpu_uuid == gpu(2)
        else one
        for one in node_of(6)
    ]
    assert chance(found) > FALSE_ALARMS


def test_sensors_that_stand_still_differ_by_their_own_step_at_least() -> None:
    flat = [series(HEAT, [50.0] * 480, uuid=uuid, start=WINDOW.start) for uuid in NEIGHBOURS]
    own = [50.0 + (WINDOW.start + 15 * at > WINDOW.suspect_from) for at in range(480)]
    one_degree = [*flat, series(HEAT, own, start=WINDOW.start)]
    assert chance(one_degree) == 1.0


@pytest.mark.parametrize(
    ("keep", "window", "why"),
    [
        (2, WINDOW, "fewer than 3 other GPUs"),
        (7, Window(ALARM - 300, ALARM - 300, ALARM, ALARM), "from before"),
        (7, Window(ALARM + 5000, ALARM + 6000, ALARM + 6300, ALARM + 7000), "overlap"),
    ],
)
def test_without_a_past_or_neighbours_nothing_is_judged(
    keep: int, window: Window, why: str
) -> None:
    found = node_of(1)
    kept = [one for one in found if one.gpu_uuid in (SUSPECT, *NEIGHBOURS[:keep])]
    got = result(kept, window)
    assert isinstance(got, NotJudged)
    assert why in got.why


@given(st.integers(0, 10_000), st.floats(-50, 50), st.floats(-50, 50))
@settings(max_examples=20, deadline=None)
def test_a_constant_offset_of_a_gpu_or_of_all_changes_nothing(
    seed: int, own: float, all_of_them: float
) -> None:
    found = node_of(seed % 5, bump=6.0)
    moved = [
        Series(
            one.gpu_uuid, HEAT, (), one.times,
            tuple(v + all_of_them / 4 + own / 4 * (one.gpu_uuid == SUSPECT) for v in one.values),
        )
        for one in found
    ]  # fmt: skip
    assert chance(moved) == pytest.approx(chance(found), rel=1e-6)


@given(st.integers(1, 30), st.data())
def test_drawing_without_replacement_as_by_binomial_coefficients(
    of: int, data: st.DataObject
) -> None:
    marked, drawn = data.draw(st.integers(0, of)), data.draw(st.integers(0, of))
    hits = data.draw(st.integers(0, of))
    exact = sum(
        comb(marked, k) * comb(of - marked, drawn - k)
        for k in range(hits, min(marked, drawn) + 1)
        if drawn >= k
    ) / comb(of, drawn)
    assert at_least(hits, marked, drawn, of) == pytest.approx(exact, abs=1e-9)


def replays(rises_at: dict[int, float]) -> tuple[Series, dict[float, float]]:
    value, values = 0.0, []
    for place in range(480):
        value += rises_at.get(place, 0.0)
        values.append(value)
    one = series(202, values, start=WINDOW.start)
    count = counted(one.times, one.values, "driver")
    return one, {rise.at: rise.amount for rise in count.rises}


def test_rises_in_the_window_only_are_no_habit() -> None:
    one, rising = replays({465: 3.0})
    compared = burst(clean(one), rising, WINDOW)
    assert (compared.inside, compared.before) == (1, 0)
    assert not compared.habit


def test_a_counter_that_rises_all_day_has_a_habit() -> None:
    one, rising = replays(dict.fromkeys(range(5, 480, 10), 1.0))
    compared = burst(clean(one), rising, WINDOW)
    assert compared.habit
    assert compared.chance is not None
    assert compared.chance > FALSE_ALARMS


def test_a_burst_many_times_larger_than_the_habit_is_none() -> None:
    rises = dict.fromkeys(range(5, 480, 10), 1.0) | {465: 1000.0}
    one, rising = replays(rises)
    assert not burst(clean(one), rising, WINDOW).habit


def test_too_few_samples_prove_no_habit() -> None:
    window = Window(ALARM - 60, ALARM - 30, ALARM, ALARM)
    one = series(202, [0, 1, 1, 1, 2], start=ALARM - 60)
    compared = burst(clean(one), {ALARM - 45: 1.0, ALARM: 1.0}, window)
    assert compared.before == 1
    assert not compared.habit


def test_rises_at_random_times_pass_for_denser_no_more_often_than_stated() -> None:
    called = 0
    for seed in range(300):
        rng = random.Random(seed)
        rises = {at: float(rng.randint(1, 4)) for at in range(1, 480) if rng.random() < 0.05}
        one, rising = replays(rises)
        compared = burst(clean(one), rising, WINDOW)
        called += compared.chance is not None and compared.chance <= FALSE_ALARMS
    assert called <= 300 * FALSE_ALARMS + 2 * (300 * FALSE_ALARMS) ** 0.5
