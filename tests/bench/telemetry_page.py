"""How heavy are the pages that draw telemetry, and how soon are they to be seen in a browser?"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

from app.store import ids
from tests.bench.browser import Browser
from tests.bench.report import Report
from tests.bench.server import Server

SECTION = "page"
HEAVIEST_KB = 300
SOONEST_S = 1.0
TRIES = 5
FEWEST_SERIES = 50
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
TIMES = """() => new Promise(done => requestAnimationFrame(() => setTimeout(() => {
  const page = performance.getEntriesByType("navigation")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  done([page.responseEnd, page.loadEventEnd, paint ? paint.startTime : -1]);
}, 50)))"""


def measure(report: Report, server: Server, database: Path, in_browser: bool) -> None:
    """Weigh the page of an alarm and of its GPU, and open them in Chromium."""
    paths = _paths(database)
    browser = Browser(server)
    seen = {what: (path, browser.get(path)[1].decode()) for what, path in paths}
    weights = {what: browser.weight(path) for what, (path, _) in seen.items()}
    cookies = browser.cookies
    browser.close()
    for what, (_, text) in seen.items():
        series = len(re.findall(r'<path[^>]*class="s-(?:sus w2|edge) f-clear"', text))
        sent, whole = weights[what] / 1000, len(text.encode()) / 1000
        assert series >= FEWEST_SERIES, f"{what} draws {series} series"
        report.add(
            SECTION,
            f"{what}, {series} series drawn",
            f"{sent:.0f} KB, {whole:.0f} unpacked",
            aim=f"<= {HEAVIEST_KB} KB",
            met=sent <= HEAVIEST_KB,
        )
    if in_browser:
        _open_all(report, server, cookies, paths)


def _open_all(
    report: Report, server: Server, cookies: dict[str, str], paths: list[tuple[str, str]]
) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        base = f"http://127.0.0.1:{server.port}"
        page = chromium.new_page(base_url=base)
        page.context.add_cookies(
            [{"name": name, "value": value, "url": base} for name, value in cookies.items()]
        )
        for what, path in paths:
            before = server.cpu_seconds()
            _open(report, page, what, path)
            cpu = (server.cpu_seconds() - before) / (TRIES + 1)
            report.add(SECTION, f"{what}: processor time of the server", f"{cpu:.2f} s")
        chromium.close()


def _open(report: Report, page: Page, what: str, path: str) -> None:
    found: list[list[float]] = []
    for _ in range(TRIES + 1):
        page.goto(path, wait_until="load")
        found.append([float(one) / 1000 for one in page.evaluate(TIMES)])
    answered, loaded, painted = (median(each) for each in zip(*found[1:], strict=True))
    report.add(SECTION, f"{what}: answered / loaded / first paint",
               f"{answered:.2f} / {loaded:.2f} / {painted:.2f} s", "its answer",
               max(loaded, painted) / answered, f"<= {SOONEST_S:g} s",
               max(loaded, painted) <= SOONEST_S)  # fmt: skip


def _paths(database: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as line:
        alarm, gpu = line.execute(
            "SELECT alarm_id, gpu_id FROM telemetry_readings ORDER BY status = 'risen' DESC,"
            " alarm_id LIMIT 1"
        ).fetchone()
        start, end = line.execute(
            "SELECT min(start_at), max(end_at) FROM telemetry_windows WHERE gpu_id = ?", (gpu,)
        ).fetchone()
    between = f"from={_stamp(start)}&to={_stamp(end)}"
    return [("alarm's page", f"/alarms/{ids.show(alarm)}"),
            ("GPU's page", f"/gpus/{ids.show(gpu)}?{between}")]  # fmt: skip


def _stamp(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _chromium() -> str:
    found = next((path for name in ("chromium", "chromium-browser", "google-chrome-stable")
                  if (path := shutil.which(name))), None)  # fmt: skip
    assert found, "no chromium: run tests/system-packages"
    return found
