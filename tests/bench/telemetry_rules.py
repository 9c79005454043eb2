"""What do keeping and reading telemetry cost beside parsing it, and how often is chance a shift?

The floor is `json.loads` of Prometheus' answer with the same samples, values to floats: what any
client must do. Processor time of one thread, best of the rounds. 26 fields for two hours at 15 s;
see `tests/rules/test_telemetry_blocks.py` for what they hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.report import Report
from tests.rules.telemetry_samples import NODE, SUSPECT, gpu
from tests.rules.test_telemetry_blocks import two_hours
from tests.rules.test_telemetry_levels import chance, node_of
from witness.rules.blocks import decode, encode
from witness.rules.dcgm_fields import BY_ID
from witness.rules.observations import FALSE_ALARMS
from witness.rules.samples import Series, from_prometheus, join
from witness.rules.telemetry import Window, read

SECTION = "readings"
ROUNDS = 5
AIM_BYTES = 2.0
RING = tuple(gpu(5, node) for node in range(3, 27))
# As many fields as a GPU has made-up series: temperatures, power, energy, ratios, traffic, ...
IDS = (
    *(150, 155, 156, 1001, 1004, 1005, 1009, 1010, 203, 100, 202, 310, 311),
    *(312, 313, 393, 394, 395, 230, 252, 251, 253, 140, 101, 409, 429),
)


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Take sizes and times; `folder` is not needed."""
    del folder
    gpus = NODE if quick else (*NODE, *RING)
    found = [
        Series(uuid, field, (), tuple(times), tuple(values))
        for seed, uuid in enumerate(gpus)
        for field, (times, values) in zip(IDS, two_hours(seed), strict=True)
    ]
    samples = sum(len(one.times) for one in found)
    node = [one for one in found if one.gpu_uuid in NODE]
    answer = json.dumps([_as_answer(one) for one in found])
    floor = _best(lambda: _parsed(answer)) / samples
    _blocks(report, node, floor)
    parsed = _parsed(answer)
    joined = _best(lambda: join(from_prometheus(m, v) for m, v in parsed)) / samples
    _row(report, f"join {samples:,} samples of {len(gpus)} GPUs", joined, floor)
    alarm = found[0].times[-1] - 600
    window = Window(alarm - 6600, alarm - 300, alarm, alarm + 600)
    taken = _best(lambda: read(window, SUSPECT, found, node=NODE, ring=RING)) / samples
    _row(report, f"read one alarm, {samples:,} samples", taken, floor)
    _false_alarms(report, 100 if quick else 400)


def _blocks(report: Report, found: list[Series], floor: float) -> None:
    samples = sum(len(one.times) for one in found)
    blocks = [encode(one.times, one.values) for one in found]
    size = sum(len(block.data) for block in blocks) / samples
    report.add(
        SECTION,
        f"block, {samples:,} samples of 8 GPUs",
        f"{size:.2f} B a sample",
        "16 B of two float64",
        size / 16,
        f"<= {AIM_BYTES:g} B",
        size <= AIM_BYTES,
    )
    encoding = _best(lambda: [encode(one.times, one.values) for one in found]) / samples
    _row(report, "encode", encoding, floor)
    decoding = _best(lambda: [decode(b.codec, b.data, b.sha256) for b in blocks]) / samples
    _row(report, "decode, with its hash", decoding, floor)


def _false_alarms(report: Report, seeds: int) -> None:
    for tail, what in ((0.0, "noise that lasts"), (0.01, "and 1 % outliers")):
        called = sum(chance(node_of(seed, tail=tail)) <= FALSE_ALARMS for seed in range(seeds))
        report.add(
            SECTION,
            f"quiet nodes called shifted, {what}",
            f"{called} of {seeds}",
            aim=f"<= {FALSE_ALARMS:.0%}",
            met=called <= FALSE_ALARMS * seeds,
        )
    for bump in (4.0, 6.0, 8.0):
        hit = sum(chance(node_of(seed, bump=bump)) <= FALSE_ALARMS for seed in range(seeds // 4))
        report.add(SECTION, f"suspects {bump:g} °C too hot, found", f"{hit} of {seeds // 4}")


def _row(report: Report, what: str, seconds: float, floor: float) -> None:
    report.add(SECTION, what, f"{seconds * 1e6:.2f} µs a sample", "parsing it", seconds / floor)


def _as_answer(one: Series) -> tuple[dict[str, str], list[tuple[float, str]]]:
    labels = {"__name__": BY_ID[one.field_id].names[0], "UUID": one.gpu_uuid}
    return labels, [(t, f"{v:.15g}") for t, v in zip(one.times, one.values, strict=True)]


def _parsed(answer: str) -> list[tuple[dict[str, str], list[tuple[float, str]]]]:
    parsed = json.loads(answer)
    return [(metric, [(time, text) for time, text in values if float(text) is not None])
            for metric, values in parsed]  # fmt: skip


def _best(way: Callable[[], object]) -> float:
    """Take the processor time of the best of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        way()
        taken.append(time.process_time() - began)
    return min(taken)
