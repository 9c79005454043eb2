"""Do samples reach the right GPU and field, whatever the source calls and splits them?"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.telemetry_samples import ALARM, SUSPECT, gpu, recorded, series
from witness.rules.samples import (
    RawSeries,
    from_prometheus,
    join,
    meant,
    scrape_interval,
    united,
)

REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"


def raw(samples: list[tuple[float, float]], name: str = REPLAYS, **labels: str) -> RawSeries:
    return RawSeries({"__name__": name, "UUID": SUSPECT, **labels}, samples)


def test_a_changing_pod_label_does_not_split_a_gpu() -> None:
    (one,) = recorded("split_by_pod").series
    assert one.gpu_uuid == SUSPECT
    assert one.values == (5, 5, 6, 6, 6, 8, 8)
    assert one.joined == 3
    assert one.left_out == 0
    assert one.seen.pods == ("research/worker-1-aaa", "research/worker-1-bbb")


def test_the_same_index_on_two_nodes_is_two_gpus() -> None:
    cold, hot = recorded("one_index_two_nodes").series
    assert (cold.gpu_uuid, cold.values) == (SUSPECT, (41, 42, 42))
    assert (hot.gpu_uuid, hot.values) == (gpu(5, 9), (88, 90, 91))
    # The host name is the exporter's pod, and that pod is not the workload's.
    assert cold.seen.hosts == ("dcgm-exporter-p9k4d",)
    assert cold.seen.pods == ()


def test_two_names_of_one_field_are_one_field() -> None:
    old, new = recorded("renamed_clock_events").series
    assert (old.field_id, new.field_id) == (112, 112)
    both = join([raw([(0.0, 1.0)], "DCGM_FI_DEV_GPU_TEMP"),
                 raw([(15.0, 2.0)], "DCGM_FI_DEV_GPU_TEMP_CELSIUS")]).series  # fmt: skip
    assert [one.values for one in both] == [(1.0, 2.0)]


@pytest.mark.parametrize(
    "labels",
    [
        {"UUID": SUSPECT},
        {"uuid": SUSPECT.lower()},
        {"gpu_uuid": SUSPECT.removeprefix("GPU-")},
        {"GPU_UUID": SUSPECT.upper()},
        {"exported_UUID": SUSPECT, "UUID": "GPU-ffffffff-1111-4222-8333-000000000000"},
        {"exported_gpu_uuid": SUSPECT},
    ],
)
def test_every_spelling_of_the_uuid_label_is_read(labels: dict[str, str]) -> None:
    found = join([RawSeries({"__name__": REPLAYS, **labels}, [(1.0, 2.0)])])
    assert [one.gpu_uuid for one in found.series] == [SUSPECT]


@pytest.mark.parametrize("uuid", ["5", "nvidia5", "", "GPU-a0000002", "None"])
def test_what_is_no_full_uuid_is_not_joined(uuid: str) -> None:
    found = join([RawSeries({"__name__": REPLAYS, "UUID": uuid, "gpu": "5"}, [(1.0, 2.0)])])
    assert found.series == ()
    assert found.not_joined[0].why == "no label holds a GPU UUID"


def test_unknown_metrics_are_counted_not_guessed() -> None:
    found = join([raw([], "DCGM_FI_DEV_NEW"), raw([], "DCGM_FI_DEV_NEW"), raw([(1.0, 1.0)])])
    assert len(found.series) == 1
    (lost,) = found.not_joined
    assert (lost.metric, lost.series) == ("DCGM_FI_DEV_NEW", 2)


def test_instances_and_links_stay_apart_and_error_codes_do_not() -> None:
    found = join(
        [
            raw([(0.0, 1.0)], GPU_I_ID="1", GPU_I_PROFILE="3g.40gb"),
            raw([(0.0, 2.0)], GPU_I_ID="2", GPU_I_PROFILE="3g.40gb"),
            raw([(0.0, 3.0)], "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", nvlink="7"),
            raw([(0.0, 0.0)], "DCGM_FI_DEV_XID_ERRORS", err_code="0"),
            raw([(15.0, 79.0)], "DCGM_FI_DEV_XID_ERRORS", err_code="79", err_msg="off the bus"),
        ]
    ).series
    assert [(one.field_id, one.part, one.values) for one in found] == [
        (202, (("mig", "1"),), (1.0,)),
        (202, (("mig", "2"),), (2.0,)),
        (230, (), (0.0, 79.0)),
        (429, (("link", "7"),), (3.0,)),
    ]
    assert found[0].seen.profiles == ("3g.40gb",)


def test_the_exporters_counts_stay_apart_by_what_they_count() -> None:
    labels = {"window_size_in_ms": "300000"}
    found = join(
        [
            raw([(0.0, 1.0)], "DCGM_EXP_XID_ERRORS_COUNT", xid="79", **labels),
            raw([(0.0, 1.0)], "DCGM_EXP_XID_ERRORS_COUNT", xid="31", **labels),
            raw([(0.0, 1.0)], "DCGM_EXP_CLOCK_EVENTS_COUNT", clock_event="hw_thermal", **labels),
        ]
    ).series
    assert [dict(one.part) for one in found] == [
        {"window_ms": "300000", "xid": "31"},
        {"window_ms": "300000", "xid": "79"},
        {"window_ms": "300000", "event": "hw_thermal"},
    ]


def test_a_second_exporter_at_the_same_time_makes_no_false_resets() -> None:
    steady = [(15.0 * at, float(6 + at // 20)) for at in range(40)]
    late = [(15.0 * at + 4, float(6 + max(0, at - 2) // 20)) for at in range(38)]
    (one,) = join([raw(steady, pod="a"), raw(late, pod="b")]).series
    assert one.values == tuple(value for _, value in steady)
    assert one.left_out == 38


def test_a_second_server_fills_the_holes_of_the_first() -> None:
    whole = [(15.0 * at, float(at)) for at in range(40)]
    first = [sample for sample in whole if not 150 <= sample[0] < 300]
    second = [(time + 1, value) for time, value in whole[8:22]]
    (one,) = join([raw(first, replica="a"), raw(second, replica="b")]).series
    inside = [time for time in one.times if 135 < time < 300]
    assert inside == [15.0 * at + 1 for at in range(9, 20)]
    assert one.left_out == len(second) - len(inside)


@given(st.data())
def test_any_split_into_successive_series_gives_the_same_line(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
    samples = [(15.0 * at, value) for at, value in enumerate(values)]
    pods: list[str] = []
    while len(pods) < len(samples):
        # Each pod holds the GPU for three samples at least; else the interval must be given.
        pods += [data.draw(st.sampled_from("abc"))] * data.draw(st.integers(3, 9))
    pods = pods[: len(samples)]
    split = [
        raw([s for s, owner in zip(samples, pods, strict=True) if owner == pod], pod=pod)
        for pod in sorted(set(pods))
    ]
    shuffled = data.draw(st.permutations(split))
    (one,) = join(shuffled, data.draw(st.sampled_from([None, 15.0]))).series
    assert list(zip(one.times, one.values, strict=True)) == samples
    assert one.left_out == 0


def test_a_label_that_changes_with_every_sample_needs_the_interval() -> None:
    even = [(30.0 * at, 1.0) for at in range(10)]
    odd = [(30.0 * at + 15, 1.0) for at in range(10)]
    (one,) = join([raw(even, pod="a"), raw(odd, pod="b")], interval_s=15).series
    assert len(one.times) == 20


@given(st.permutations(range(10)))
def test_the_order_of_samples_and_series_changes_nothing(order: list[int]) -> None:
    samples = [(15.0 * at, float(at)) for at in order]
    (one,) = join([raw(samples)]).series
    assert one.times == tuple(15.0 * at for at in range(10))
    assert one.values == tuple(float(at) for at in range(10))


def test_values_as_prometheus_prints_them() -> None:
    printed = ("NaN", "+Inf", "-Inf", "9.223372036854775808e+18")
    read = from_prometheus({}, [(15.0 * at, text) for at, text in enumerate(printed)])
    (_, nan), *others = read.samples
    assert math.isnan(nan)
    assert others == [(15.0, math.inf), (30.0, -math.inf), (45.0, 2.0**63)]
    for text in ("", "12,5", "twelve", "1" * 1000):
        with pytest.raises(ValueError, match=r"float|longer"):
            from_prometheus({}, [(15.0, "1"), (30.0, text)])
    for time in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="time"):
            from_prometheus({}, [(15.0, "1"), (time, "1")])


def test_the_scrape_interval_is_seen_through_gaps() -> None:
    one = series(150, [41.0] * 40)
    holed = type(one)(one.gpu_uuid, 150, (), one.times[:10] + one.times[25:], one.values[:25])
    assert scrape_interval([holed]) == 15.0
    assert scrape_interval([series(150, [41.0])]) is None
    assert ALARM > 0


def test_spellings_of_the_rank_map_find_their_gpu() -> None:
    known = {SUSPECT, gpu(4), gpu(5, 9)}
    digits = SUSPECT.removeprefix("GPU-")
    for text in (SUSPECT, digits, SUSPECT.upper(), f"b'{digits}'", f"UUID('{digits}')"):
        assert meant(text, known) == SUSPECT
    assert meant("GPU-a0000009", known) == gpu(5, 9)
    for unclear in ("GPU-a0000002", "GPU-a00000", "nvidia5", "5", None, gpu(7)):
        assert meant(unclear, known) is None


def test_two_sources_of_one_cluster_count_an_error_once() -> None:
    first = series(202, [3.0] * 30 + [5.0] * 30)
    second = replace(series(202, [3.0] * 29 + [5.0] * 29, start=ALARM - 3592), joined=2)
    for both in ([first, second], [second, first]):
        (one,) = united(both)
        assert one.times == first.times
        assert one.joined == 3
        assert one.left_out == 58
    assert united([first]) == (first,)


@given(st.lists(st.floats(0, 9), min_size=2, max_size=30), st.data())
def test_windows_in_a_row_unite_to_the_whole(values: list[float], data: st.DataObject) -> None:
    whole = series(202, values)
    cut = data.draw(st.integers(1, len(values) - 1))
    parts = [
        replace(whole, times=whole.times[:cut], values=whole.values[:cut]),
        replace(whole, times=whole.times[cut:], values=whole.values[cut:]),
    ]
    (one,) = united(data.draw(st.permutations(parts)))
    assert (one.times, one.values) == (whole.times, whole.values)
