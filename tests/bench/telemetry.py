"""What does telemetry cost from the source to the page, and how fast does a storm drain?

A real Prometheus, filled by remote write with what an exporter's scrapes would have stored. The
floor of all rows is the bare HTTP read of the same answers in the same run, the quickest of the
rounds: on a busy machine it measures the source. Against it stands our own processor time.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from app.actions.telemetry.shown import Curve, Panel
from app.sources.ports import Question
from app.sources.registry import sources
from app.store import telemetry_kept, telemetry_queue
from app.store.connection import Connection
from app.store.database import connect, writing
from app.store.migrate import upgrade
from app.store.telemetry_queue import A_PERSON, Want
from app.web.telemetry.panels import Span, dropped, lay_out
from tests.bench import bare, telemetry_storm
from tests.bench.report import Report
from tests.bench.telemetry_fleet import CLUSTER, FIELDS, QUICK, WHOLE, Fleet, Size
from tests.prometheus import Prometheus
from witness.rules.dcgm_fields import BY_ID
from witness.rules.samples import Series, join

SECTION = "telemetry"
AIM_BYTES = 2.0
HOURS = 2.0
PANELS = 12


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Measure one node's two hours step by step, then a storm of alarms and its pages."""
    run(report, folder, QUICK if quick else WHOLE)


def run(report: Report, folder: Path, size: Size) -> None:
    """Measure that much."""
    now = datetime.now(UTC).replace(microsecond=0)
    for name in ("node", "storm"):
        (folder / name).mkdir(exist_ok=True)
    with Prometheus(folder / "node", _port()) as prometheus:
        fleet = Fleet(1, size.node_step_s, now - timedelta(minutes=5), HOURS)
        fleet.write(prometheus)
        _steps(report, prometheus.url, fleet, folder / "node", size.rounds)
    # The default limits of Prometheus hold; a storm is what they are for.
    with Prometheus(folder / "storm", _port()) as prometheus:
        telemetry_storm.measure(report, prometheus, folder / "storm", now, size)


def _steps(report: Report, url: str, fleet: Fleet, folder: Path, rounds: int) -> None:
    uuids, times = tuple(fleet.uuids(0)), fleet.times
    question = Question(uuids, times[0], times[-1])
    (source,) = sources({CLUSTER: [{"url": url, "interval_s": fleet.step_s}]})[CLUSTER]
    floor = min(bare.read(url, [(uuids, times[0], times[-1])])[0] for _ in range(rounds))
    pulled = source.pull(question)
    series = join(pulled.series, fleet.step_s).series
    samples = sum(len(one.times) for one in series)
    assert samples == pulled.samples == len(times) * len(uuids) * FIELDS, (samples, pulled.samples)
    blocks = telemetry_kept.pack(series)
    store = _Store(f"sqlite:///{folder / 'parts.db'}", fleet)
    report.add(SECTION, f"bare HTTP read of {samples:,} samples of 8 GPUs", f"{floor:.3f} s")
    for what, way in (
        ("pull: read, parse, check", lambda: source.pull(question)),
        ("join by GPU", lambda: join(pulled.series, fleet.step_s)),
        ("pack into blocks", lambda: telemetry_kept.pack(series)),
        ("write the blocks, committed", lambda: store.write(series)),
        ("read back, with the hash", store.read),
        (f"draw {PANELS} fields of 8 GPUs", lambda: _draw(series)),
    ):
        _row(report, what, _middle(way, rounds), floor)
    whole = _middle(lambda: store.all_of(source.pull(question).series), rounds)
    _row(report, "all of it, from the source to the drawing", whole, floor)
    size = sum(len(one["data"]) for one in blocks) / samples
    report.add(SECTION, "kept", f"{size:.2f} B a sample", "16 B of two float64", size / 16,
               f"<= {AIM_BYTES:g} B", size <= AIM_BYTES)  # fmt: skip
    report.add(SECTION, "queries of the pull", str(pulled.queries))
    store.close()
    source.close()


class _Store:
    """A database that holds the windows of one node."""

    def __init__(self, url: str, fleet: Fleet) -> None:
        upgrade(url)
        self._step_s = fleet.step_s
        self._engine = connect(url)
        start = datetime.fromtimestamp(fleet.times[0], UTC)
        wants = [
            Want(CLUSTER, uuid, start, fleet.until, "suspect", uuid) for uuid in fleet.uuids(0)
        ]
        self._windows = {one.gpu_uuid: one.window_id for one in wants}
        with writing(self._engine).begin() as connection:
            telemetry_queue.queue(connection, A_PERSON, wants, fleet.until)

    def write(self, series: tuple[Series, ...]) -> None:
        packed = {
            uuid: telemetry_kept.pack(one for one in series if one.gpu_uuid == uuid)
            for uuid in self._windows
        }
        with writing(self._engine).begin() as connection:
            for uuid, rows in packed.items():
                telemetry_kept.write_blocks(connection, self._windows[uuid], rows)

    def read(self) -> list[Series]:
        with self._engine.connect() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> list[Series]:
        uuids = {window: uuid for uuid, window in self._windows.items()}
        return telemetry_kept.read_series(connection, uuids)

    def all_of(self, raw: object) -> None:
        self.write(join(raw, self._step_s).series)  # type: ignore[arg-type]
        _draw(self.read())

    def close(self) -> None:
        self._engine.dispose()


def _draw(series: list[Series] | tuple[Series, ...]) -> int:
    """Draw fields of a suspect and its node as a page does; give the drawings' size."""
    suspect = series[0].gpu_uuid
    fields = sorted({one.field_id for one in series}, key=lambda n: (not BY_ID[n].is_evidence, n))
    span = Span(series[0].times[0], series[0].times[-1])
    size = 0
    for number in fields[:PANELS]:
        curves = tuple(
            Curve(one, "suspect" if one.gpu_uuid == suspect else "node")
            for one in series
            if one.field_id == number
        )
        panel = Panel(BY_ID[number], (), curves, risen=False)
        size += len(lay_out(panel, span, f"b{number}", lambda _, own: (dropped(own),)).picture)
    return size


def _row(report: Report, what: str, taken: tuple[float, float], floor: float) -> None:
    processor, wall = taken
    said = f"{processor:.3f} s ({wall:.2f} on the wall)"
    report.add(SECTION, what, said, "the bare read", processor / floor)


def _middle(way: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Take the middle of some rounds: processor time of this process, and time on the wall."""
    processor, wall = [], []
    for _ in range(rounds):
        began = time.process_time(), time.perf_counter()
        way()
        processor.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return median(processor), median(wall)


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
