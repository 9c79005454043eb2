"""How long do pages take at 10,000, 100,000 and a million alarms, and is it flat?

2,048 machines of 8 GPUs, 90 days.  The floor of each page is the bare SQL statement that is its
main one, read in this process through the standard driver from the same file.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.store import ids
from tests.bench.browser import Browser
from tests.bench.fill import Filler
from tests.bench.report import Report, quantile
from tests.bench.server import Server

SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (2_000, 20_000)
TRIES, WARM = 30, 3
HEAVIEST_KB = 300
# A page may take this much longer at the largest size than at the smallest: what is left over
# is deeper indexes and a colder cache, not a scan.
FLAT = 2.0
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """A page with the bare statement that it cannot do without."""

    name: str
    path: str
    statement: str
    parameters: tuple[Any, ...] = ()


def measure(report: Report, folder: Path, quick: bool) -> None:
    """Fill, measure, fill further; at the end hold the sizes against each other."""
    now = datetime.now(UTC)
    p95: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=folder) as name:
        here = Path(name)
        url = f"sqlite:///{here / 'witness.db'}"
        filler = Filler(url, now)
        for size in QUICK_SIZES if quick else SIZES:
            report.say(f"filling up to {size:,} alarms")
            filler.fill(size)
            filler.close()
            assert filler.counted() == size, "the fill made another number of alarms"
            filler.close()
            megabytes = (here / "witness.db").stat().st_size / 2**20
            report.add("pages", f"database of {size:,} alarms", f"{megabytes:,.0f} MiB")
            server = Server(here, url)
            try:
                for page, took, cpu in _measured(report, server, here / "witness.db", now, size):
                    p95.setdefault(page, []).append(took)
                    processor.setdefault(page, []).append(cpu)
            finally:
                server.close()
    _flat(report, "p95", p95)
    _flat(report, "processor time", processor)


def _flat(report: Report, what: str, sizes: dict[str, list[float]]) -> None:
    """Hold the largest size against the smallest: processor time is steadier on a busy machine."""
    for page, each in sizes.items():
        grown = each[-1] / each[0]
        shown = " -> ".join(f"{one * 1000:.1f}" for one in each) + " ms"
        floor = "that at the smallest size"
        report.add("flat", f"{page}, {what}", shown, floor, grown, f"<= {FLAT:g} x", grown <= FLAT)


def _measured(
    report: Report, server: Server, database: Path, now: datetime, size: int
) -> Sequence[tuple[str, float, float]]:
    browser = Browser(server)
    found = []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as bare:
        for page in pages(bare, now):
            before = server.cpu_seconds()
            took, weight = _take(browser, page)
            cpu = (server.cpu_seconds() - before) / (WARM + TRIES + 1)
            floor = _bare(bare, page)
            p50, p95 = quantile(took, 0.5), quantile(took, 0.95)
            report.add(
                "pages",
                f"{page.name} at {size:,}: p50 / p95",
                f"{p50 * 1000:.1f} / {p95 * 1000:.1f} ms",
                f"its bare SQL ({floor * 1000:.2f} ms)",
                p50 / floor,
            )
            report.add("pages", f"{page.name} at {size:,}: processor", f"{cpu * 1000:.1f} ms")
            report.add(
                "weight",
                f"{page.name} at {size:,}",
                f"{weight / 1000:.0f} KB",
                aim=f"<= {HEAVIEST_KB} KB",
                met=weight <= HEAVIEST_KB * 1000,
            )
            found.append((page.name, p95, cpu))
    browser.close()
    return found


def _take(browser: Browser, page: Page) -> tuple[list[float], int]:
    took = []
    for turn in range(WARM + TRIES):
        status, _, seconds = browser.get(page.path)
        if status != 200:
            raise RuntimeError(f"{page.path} answered {status}")
        if turn >= WARM:
            took.append(seconds)
    return took, browser.weight(page.path)


def _bare(connection: sqlite3.Connection, page: Page) -> float:
    took = []
    for _ in range(WARM + TRIES):
        began = time.perf_counter()
        connection.execute(page.statement, page.parameters).fetchall()
        took.append(time.perf_counter() - began)
    return quantile(took[WARM:], 0.5)


def pages(bare: sqlite3.Connection, now: datetime) -> list[Page]:
    """List the pages, those of one thing for the thing with the most alarms."""
    case, gpu, node, alarm = bare.execute(
        "SELECT id, gpu_id, node_id, last_alarm_id FROM cases"
        " WHERE gpu_id IS NOT NULL ORDER BY alarms DESC LIMIT 1"
    ).fetchone()
    job = bare.execute("SELECT id FROM jobs ORDER BY alarms DESC LIMIT 1").fetchone()[0]
    us = int(now.timestamp() * 1e6)
    return [
        Page(
            "docket",
            "/",
            "SELECT * FROM cases WHERE status = 'open'"
            " ORDER BY urgency DESC, last_alarm_at DESC LIMIT 50",
        ),
        *_timelines(now, us),
        Page(
            "node",
            f"/nodes/{ids.show(node)}",
            "SELECT * FROM findings WHERE node_id = ? ORDER BY occurred_at DESC LIMIT 50",
            (node,),
        ),
        Page(
            "GPU",
            f"/gpus/{ids.show(gpu)}",
            "SELECT * FROM findings WHERE gpu_id = ? ORDER BY occurred_at DESC LIMIT 50",
            (gpu,),
        ),
        Page(
            "repeat offenders, fleet-wide",
            "/offenders",
            "SELECT * FROM offender_windows WHERE subject = 'gpu' AND incidents_90 >= 2"
            " ORDER BY incidents_90 DESC LIMIT 50",
        ),
        Page("alarm", f"/alarms/{ids.show(alarm)}", "SELECT * FROM alarms WHERE id = ?", (alarm,)),
        Page(
            "case",
            f"/cases/{ids.show(case)}",
            "SELECT * FROM findings WHERE case_id = ? ORDER BY occurred_at DESC LIMIT 50",
            (case,),
        ),
        Page("jobs", "/jobs", "SELECT * FROM jobs ORDER BY last_seen_at DESC LIMIT 50"),
        Page("job", f"/jobs/{ids.show(job)}", "SELECT * FROM attempts WHERE job_id = ?", (job,)),
        Page(
            "alarms as JSON",
            "/api/v1/alarms?limit=100",
            "SELECT * FROM alarms ORDER BY occurred_at DESC, id LIMIT 100",
        ),
    ]


def _timelines(now: datetime, us: int) -> list[Page]:
    listed = "SELECT * FROM alarms WHERE occurred_at BETWEEN ? AND ? ORDER BY occurred_at DESC"
    since = quote((now - timedelta(days=89)).isoformat())
    until = quote(now.isoformat())
    zooms = (
        ("1 h", "range=1h", us - 3_600_000_000),
        ("7 d", "range=7d", us - 7 * DAY_US),
        ("90 d", f"from={since}&to={until}", us - 90 * DAY_US),
    )
    return [
        Page(f"timeline, {zoom}", f"/timeline?{query}", f"{listed} LIMIT 50", (first, us))
        for zoom, query, first in zooms
    ]
