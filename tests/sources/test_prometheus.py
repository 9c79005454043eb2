"""Do stored samples come back as they were stored, from a real Prometheus?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.sources.ports import Question, Refused
from app.sources.prometheus import PrometheusSource, selector
from app.sources.registry import sources
from tests.prometheus import STALE_MARK, Prometheus, dcgm
from witness.rules.samples import join

TEMP = "DCGM_FI_DEV_GPU_TEMP"
LINK = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
GPUS = tuple(dcgm(TEMP, gpu)["UUID"] for gpu in range(8))


def source(url: str, **more: object) -> PrometheusSource:
    (made,) = sources({"alpine": [{"url": url, **more}]})["alpine"]
    assert isinstance(made, PrometheusSource)
    return made


def samples(start: float, count: int, step: float = 15.0) -> list[tuple[float, float]]:
    return [(start + place * step, 40.0 + place % 7) for place in range(count)]


def test_samples_keep_their_own_times_and_gaps(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 86_400 * 3) + 0.123
    stored = samples(start, 40)
    del stored[10:20]
    prometheus.write([(dcgm(TEMP, 5), stored), (dcgm(TEMP, 6), samples(start, 40))])
    pulled = source(prometheus.url).pull(Question((GPUS[5],), start, start + 600))
    (series,) = pulled.series
    assert list(series.samples) == [one for one in stored if one[0] <= start + 600]
    assert series.labels["UUID"] == GPUS[5]
    assert (pulled.samples, pulled.partial, pulled.warnings) == (30, False, ())


def test_only_what_lies_in_the_window_comes_back(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 7200)
    prometheus.write([(dcgm(TEMP, 0), samples(start, 100))])
    pulled = source(prometheus.url).pull(Question(GPUS[:1], start + 15, start + 45))
    assert [at for at, _ in pulled.series[0].samples] == [start + 15, start + 30, start + 45]


def test_a_long_window_comes_in_pieces_that_join(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 86_400 * 4)
    count = 3 * 86_400 // 15
    prometheus.write([(dcgm(TEMP, gpu), samples(start, count)) for gpu in range(2)])
    pulled = source(prometheus.url).pull(Question(GPUS[:2], start, start + count * 15))
    assert pulled.queries > 2
    joined = join(pulled.series).series
    assert [len(one.times) for one in joined] == [count, count]
    assert list(zip(joined[0].times, joined[0].values, strict=True)) == samples(start, count)


def test_a_server_with_a_small_limit_is_asked_for_less_at_a_time(
    tmp_path: Path, free_port: int
) -> None:
    start = float(int(time.time()) - 7200)
    with Prometheus(tmp_path, free_port, ["--query.max-samples=500"]) as running:
        running.write([(dcgm(TEMP, gpu), samples(start, 240)) for gpu in range(8)])
        pulled = source(running.url).pull(Question(GPUS, start, start + 3600))
    assert [len(one.times) for one in join(pulled.series).series] == [240] * 8
    assert pulled.queries > 4


def test_other_labels_of_the_uuid_and_other_spellings_are_found(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 3600)
    link = {"__name__": LINK, "gpu_uuid": GPUS[1]}
    moved = {"__name__": TEMP, "exported_UUID": GPUS[2].upper()}
    prometheus.write(
        [
            (dcgm(TEMP, 1), samples(start, 4)),
            (link, samples(start, 4)),
            (moved, samples(start, 4)),
            ({"__name__": "up", "UUID": GPUS[1]}, samples(start, 4)),
        ]
    )
    asked = source(prometheus.url)
    both = asked.pull(Question(GPUS[1:2], start, start + 60)).series
    assert sorted(one.labels["__name__"] for one in both) == sorted([TEMP, link["__name__"]])
    (other,) = asked.pull(Question(GPUS[2:3], start, start + 60)).series
    assert other.labels["exported_UUID"] == GPUS[2].upper()


def test_gpus_under_four_labels_of_one_fleet_are_all_found(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 3600)
    label = ["UUID"] * 4 + ["gpu_uuid", "gpu_uuid", "exported_UUID", "uuid"]
    stored = []
    for gpu, name in enumerate(label):
        plain = {key: text for key, text in dcgm(TEMP, gpu).items() if key != "UUID"}
        link = {"__name__": LINK, "gpu_uuid": GPUS[gpu], "nvlink": "3"}
        stored += [(plain | {name: GPUS[gpu]}, samples(start, 4)), (link, samples(start, 4))]
    prometheus.write(stored)
    pulled = source(prometheus.url).pull(Question(GPUS, start, start + 60))
    fields = {gpu: set[int]() for gpu in GPUS}
    for one in join(pulled.series).series:
        fields[one.gpu_uuid].add(one.field_id)
        assert one.left_out == 0
    assert all(found == {150, 409} for found in fields.values())
    assert pulled.queries == 4  # UUID, gpu_uuid, uuid, exported_UUID; then nobody is left


def test_a_series_with_two_labels_of_its_gpu_counts_once(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 3600)
    prometheus.write([(dcgm(TEMP, 0, gpu_uuid=GPUS[0]), samples(start, 4))])
    pulled = source(prometheus.url).pull(Question(GPUS[:1], start, start + 60))
    assert (len(pulled.series), pulled.samples, pulled.queries) == (1, 4, 2)


def test_what_was_never_stored_is_an_empty_answer(prometheus: Prometheus) -> None:
    pulled = source(prometheus.url).pull(Question(GPUS, time.time() - 60, time.time()))
    assert (pulled.series, pulled.samples) == ((), 0)
    assert pulled.queries == 6


def test_marks_of_staleness_are_no_samples(prometheus: Prometheus) -> None:
    start = float(int(time.time()) - 3600)
    prometheus.write([(dcgm(TEMP, 0), [(start, 41.0), (start + 15, STALE_MARK)])])
    (series,) = source(prometheus.url).pull(Question(GPUS[:1], start, start + 60)).series
    assert list(series.samples) == [(start, 41.0)]


@pytest.mark.parametrize("hostile", ['GPU-"} or vector(1)#', "GPU-a\nb", "GPU-(((", ".*", "\\"])
def test_no_uuid_gets_out_of_its_quotes(prometheus: Prometheus, hostile: str) -> None:
    start = float(int(time.time()) - 3600)
    prometheus.write([(dcgm(TEMP, 0), samples(start, 4))])
    assert source(prometheus.url).pull(Question((hostile,), start, start + 60)).series == ()


def test_the_selector_reads_as_it_should() -> None:
    assert selector("UUID", ("GPU-a-1", "GPU-b"), 100.0, 160.5) == (
        '{__name__=~"DCGM_(FI|EXP)_.+",UUID=~"(?i:GPU-a-1|GPU-b)"}[61500ms]'
    )


def test_an_address_that_is_no_query_api_is_refused(prometheus: Prometheus) -> None:
    with pytest.raises(Refused, match="does not speak the query API"):
        source(f"{prometheus.url}/nowhere").pull(Question(GPUS, 0.0, 60.0))
