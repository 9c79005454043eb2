"""How many 2 KB alarms a second are durable with everything that follows from them?"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.store.migrate import upgrade
from tests.bench import floor
from tests.bench.documents import JOBS, rank_map
from tests.bench.report import Report
from tests.bench.server import TOKEN, Server
from tests.postgres import DURABLE, PostgresCluster

CONNECTIONS = 64
LINES = 250  # documents in one batch of /events
BATCHES_AT_ONCE = 8
FLOOR_BATCH = 1_000
WARM = 2_000


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Measure both databases, each with its floor."""
    single, batched = (4_000, 10_000) if quick else (12_000, 40_000)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        here = Path(name)
        server = Server(here)
        try:
            found = _both(server, single, batched)
        finally:
            server.close()
        rows, made = floor.rows_of(here / "witness.db")
        best = max(
            floor.sqlite_rate(rows, made, here / f"floor{n}.db", FLOOR_BATCH) for n in (1, 2)
        )
        _say(report, "SQLite", found, best, f"sqlite3 in batches of {FLOOR_BATCH:,}")
        _on_postgres(report, Path(name), rows, single // 2, batched // 2)


def _on_postgres(report: Report, folder: Path, rows: floor.Rows, single: int, batched: int) -> None:
    cluster = PostgresCluster(DURABLE)
    try:
        place = folder / "postgres"
        place.mkdir()
        server = Server(place, cluster.create())
        try:
            found = _both(server, single, batched)
        finally:
            server.close()
        url = cluster.create()
        upgrade(url)
        best = floor.postgres_rate(rows, url, FLOOR_BATCH)
        _say(report, "PostgreSQL", found, best, f"psycopg in batches of {FLOOR_BATCH:,}")
    finally:
        cluster.close()


def _both(server: Server, single: int, batched: int) -> dict[str, dict[str, float]]:
    for job in range(JOBS):
        server.post("rank-maps", rank_map(job))
    _send(server, "/api/v1/events", BATCHES_AT_ONCE, 0, WARM, LINES)
    singly = _send(server, "/api/v1/alarms", CONNECTIONS, WARM, single, 1)
    lines = _send(server, "/api/v1/events", BATCHES_AT_ONCE, WARM + single, batched, LINES)
    return {"single posts, 64 connections": singly, f"/events, {LINES} lines each": lines}


def _send(
    server: Server, path: str, connections: int, first: int, count: int, batch: int
) -> dict[str, float]:
    """Let the client send; give its figures with the server's own counts beside them."""
    cpu, commits = server.cpu_seconds(), server.counter("witness_commits")
    command = [
        sys.executable, "-m", "tests.bench.client", str(server.port), TOKEN, path,
        str(connections), str(first), str(count), str(batch),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout)
    if said["refused"]:
        raise RuntimeError(f"{said['refused']} requests were refused: {said['statuses']}")
    return {
        "rate": count / said["seconds"],
        "p50_ms": said["p50_ms"],
        "p99_ms": said["p99_ms"],
        "cpu_us": (server.cpu_seconds() - cpu) / count * 1e6,
        "commits": (server.counter("witness_commits") - commits) / count,
    }


def _say(
    report: Report, database: str, found: dict[str, dict[str, float]], best: float, name: str
) -> None:
    section = "intake"
    report.add(section, f"{database}: floor, {name}", f"{best:,.0f} alarms/s")
    for what, one in found.items():
        aim = 2_000 if "single" in what else 20_000
        report.add(
            section,
            f"{database}: {what}",
            f"{one['rate']:,.0f} alarms/s",
            name,
            one["rate"] / best,
            f">= {aim:,}/s",
            one["rate"] >= aim,
        )
        report.add(
            section,
            f"{database}: {what}, p50 / p99",
            f"{one['p50_ms']:.1f} / {one['p99_ms']:.1f} ms",
        )
        report.add(section, f"{database}: {what}, processor", f"{one['cpu_us']:.0f} us an alarm")
        report.add(section, f"{database}: {what}, commits", f"{one['commits']:.4f} an alarm")
