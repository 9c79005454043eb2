"""What does the rank map of a very large job cost, and the same map once more?"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.bench.documents import big_map
from tests.bench.report import Report
from tests.bench.server import Server


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Post maps to a fresh server; the floor writes the same rows with the bare driver."""
    for ranks in (16_384,) if quick else (16_384, 100_000):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            here = Path(name)
            body = big_map(ranks)
            server = Server(here)
            try:
                server.forget_peak()
                first = _post(server, body)
                peak = server.peak_mib()
                again = _post(server, body)
            finally:
                server.close()
            bare = _floor(here)
        what = f"rank map of {ranks:,} ranks, {len(body) / 2**20:.1f} MiB"
        report.add("maps", what, f"{first:.2f} s", "its rows by sqlite3", first / bare)
        report.add("maps", f"{what}, again", f"{again:.2f} s", "the first time", again / first)
        report.add("maps", f"{what}, peak memory", f"{peak:.0f} MiB")


def _post(server: Server, body: bytes) -> float:
    began = time.perf_counter()
    server.post("rank-maps", body)
    return time.perf_counter() - began


def _floor(folder: Path) -> float:
    """Write the rows that the map left behind once more, in one durable transaction."""
    tables = ("nodes", "gpus", "placements", "rank_map_nodes", "rank_maps", "documents")
    with closing(sqlite3.connect(folder / "witness.db")) as source:
        rows = {t: source.execute(f"SELECT * FROM {t}").fetchall() for t in tables}
        made = [
            row[0]
            for row in source.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
                " AND tbl_name IN (?, ?, ?, ?, ?, ?) ORDER BY type DESC",
                tables,
            )
        ]
    with closing(sqlite3.connect(folder / "floor.db", isolation_level=None)) as into:
        into.execute("PRAGMA journal_mode=WAL")
        into.execute("PRAGMA synchronous=FULL")
        for statement in made:
            into.execute(statement)
        began = time.perf_counter()
        into.execute("BEGIN IMMEDIATE")
        for table, those in rows.items():
            if those:
                marks = ", ".join("?" * len(those[0]))
                into.executemany(f"INSERT INTO {table} VALUES ({marks})", those)
        into.execute("COMMIT")
        return time.perf_counter() - began
