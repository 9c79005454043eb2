"""How fast are a thousand waiting alarms read, with how much asked of the source, and is any lost?

They lie in the database before the server starts. Half are of one job at one moment and share their
windows; half are of other jobs, GPUs and moments. The floor is the bare HTTP read of the distinct
windows, sixteen GPUs a query as the service asks, one after the other.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from app.store.database import connect, writing
from app.store.migrate import upgrade
from ingest.apply import apply_posts
from ingest.parse import Arrival, read_post
from tests.bench import bare, telemetry_page
from tests.bench.report import Report
from tests.bench.server import Server
from tests.bench.telemetry_fleet import CLUSTER, Fleet, Size, body
from tests.prometheus import Prometheus

SECTION = "storm"
HOURS = 3.75
AT_ONCE = 16
PATIENCE_S = 1_800.0


def measure(
    report: Report, prometheus: Prometheus, folder: Path, now: datetime, size: Size
) -> None:
    """Fill the source and the database, start a server, wait until every alarm is read."""
    fleet = Fleet(size.nodes, size.step_s, now - timedelta(minutes=5), HOURS)
    report.say(f"filling the source with {fleet.write(prometheus):,} samples")
    url = f"sqlite:///{folder / 'witness.db'}"
    _wait_in(url, fleet, size.alarms)
    asked = _queries(prometheus.url)
    entries = {CLUSTER: [{"url": prometheus.url, "level": "advanced", "interval_s": size.step_s}]}
    began = time.monotonic()
    server = Server(folder, url, sources=json.dumps(entries))
    try:
        taken = _drained(folder / "witness.db", size.alarms, began)
        asked, cpu = _queries(prometheus.url) - asked, server.cpu_seconds()
        _tell(report, prometheus.url, folder / "witness.db", size.alarms, (taken, cpu, asked))
        telemetry_page.measure(report, server, folder / "witness.db", size.browser)
    finally:
        server.close()


def _wait_in(url: str, fleet: Fleet, alarms: int) -> None:
    upgrade(url)
    engine = connect(url)
    posts = [
        read_post(document["kind"], document, Arrival(at, None, body(document)))
        for at, document in fleet.documents(alarms)
    ]
    with writing(engine).begin() as connection:
        apply_posts(connection, posts)
    engine.dispose()


def _drained(database: Path, alarms: int, began: float) -> float:
    """Wait until every alarm is read; give seconds from the server's start."""
    found: dict[str, int] = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as bare_line:
        while time.monotonic() - began < PATIENCE_S:
            found = dict(bare_line.execute("SELECT state, count(*) FROM telemetry_asks GROUP BY 1"))
            assert sum(found.values()) == alarms, found
            assert not found.get("failed"), found
            if found.get("read") == alarms:
                return time.monotonic() - began
            time.sleep(0.2)
    raise AssertionError(f"not drained: {found}")


def _tell(
    report: Report, source: str, database: Path, alarms: int, cost: tuple[float, float, int]
) -> None:
    taken, cpu, asked = cost
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as line:
        questions = list(_questions(line))
        windows, samples, odd = line.execute(
            "SELECT count(*), sum(samples), sum(state <> 'done') FROM telemetry_windows"
        ).fetchone()
        readings = dict(
            line.execute("SELECT status, count(*) FROM telemetry_readings GROUP BY 1").fetchall()
        )
        without = line.execute(
            "SELECT count(*) FROM alarms WHERE id NOT IN (SELECT alarm_id FROM telemetry_readings)"
        ).fetchone()[0]
    floor, received = bare.read(source, questions)
    report.add(SECTION, f"{alarms:,} alarms ask for", f"{windows:,} windows of a GPU")
    report.add(SECTION, "these hold", f"{samples:,} samples")
    report.add(SECTION, "bare HTTP read of the windows",
               f"{floor:.1f} s, {received / 1e6:,.0f} MB")  # fmt: skip
    report.add(SECTION, "all pulled, kept and read after", f"{taken:.1f} s", "the bare read",
               taken / floor)  # fmt: skip
    report.add(SECTION, "rate", f"{alarms / taken:.1f} alarms/s, {windows / taken:.0f} windows/s")
    report.add(SECTION, "processor time of the server", f"{cpu:.1f} s", "the bare read",
               cpu / floor)  # fmt: skip
    report.add(SECTION, "queries that the source was asked", f"{asked:,}",
               f"an alarm ({len(questions):,} questions)", asked / alarms)  # fmt: skip
    report.add(SECTION, "alarms without a reading, windows not pulled", f"{without}, {odd}",
               aim="0, 0", met=without == odd == 0)  # fmt: skip
    told = ", ".join(f"{count:,} {status}" for status, count in sorted(readings.items()))
    report.add(SECTION, "readings", told)


def _questions(line: sqlite3.Connection) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """Put the windows of one time together, as many GPUs as the service asks for at once."""
    found: dict[tuple[float, float], list[str]] = {}
    for start, end, uuid in line.execute(
        "SELECT start_at, end_at, gpu_uuid FROM telemetry_windows ORDER BY start_at, gpu_uuid"
    ):
        found.setdefault((start / 1e6, end / 1e6), []).append(uuid)
    for (start, end), uuids in found.items():
        for first in range(0, len(uuids), AT_ONCE):
            yield tuple(uuids[first : first + AT_ONCE]), start, end


def _queries(url: str) -> int:
    """Read how many queries Prometheus has answered."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(
        r'^prometheus_http_requests_total\{code="\d+",handler="/api/v1/query"\} (\S+)$', text, re.M
    )
    return round(sum(map(float, found)))
