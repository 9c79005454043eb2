"""Can a person filter, zoom, share and pause the timeline in a real browser?"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from playwright.sync_api import Page, sync_playwright

from tests.pages_timeline.fleet import (
    NOW,
    Fleet,
    at,
    checkpoint,
    culprit,
    passes,
    rank_map,
    weights,
)

pytestmark = pytest.mark.browser
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
HOSTILE = "<img src=x onerror=window.hit=1><b>bold</b> & &lt;i&gt;"
DRAWN = ".tl-chart[data-ready='1'] .scatterlayer"


class Shown:
    """One page of a browser that is signed in, and what it complained about."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda line: self.complaints.append(line.text) if line.type == "error" else None,
        )

    def open(self, path: str) -> None:
        """Open an address and wait until the lanes are drawn."""
        self.page.goto(self.base + path)
        self.page.wait_for_selector(DRAWN)

    def query(self) -> dict[str, list[str]]:
        """Read the address."""
        return parse_qs(urlsplit(self.page.url).query)

    def listed(self) -> str:
        """Give the words of the list."""
        return self.page.locator("ol.events").inner_text()


@pytest.fixture
def fleet(migrated_sqlite_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Two jobs on other nodes; one has a hostile name."""
    opened = Fleet(migrated_sqlite_url, tmp_path)
    opened.post_all([rank_map(), passes(), checkpoint(20, 13), checkpoint(25, 14.7), culprit()])
    opened.post_all([rank_map(HOSTILE, first=9), weights(HOSTILE, time=at(60))])
    yield opened
    opened.close()


@pytest.fixture
def served(fleet: Fleet) -> Iterator[str]:
    """Serve the application on a free port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(fleet.app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)
    listening.close()


@pytest.fixture
def shown(served: str, fleet: Fleet, chromium: str) -> Iterator[Shown]:
    """Sign in with a real browser."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=ARGS)
        page = browser.new_context(
            viewport={"width": 1440, "height": 1000}, timezone_id="Europe/Berlin"
        ).new_page()
        page.set_default_timeout(30_000)
        page.goto(served + fleet.sign_in_path())
        page.click("main button[type=submit]")
        page.wait_for_url(served + "/")
        seen = Shown(page, served)
        yield seen
        browser.close()


def test_filter_zoom_share_and_five_minutes(shown: Shown) -> None:
    page = shown.page
    shown.open("/timeline?range=24h")
    assert "2 alarms in 1 day" in page.locator(".timeline .lede").inner_text()

    # A filter is a chip in the address.
    page.click("summary:has-text('+ filter')")
    page.select_option("#t-check", "ring")
    page.click("form[aria-label='Add a filter'] button")
    page.wait_for_selector(DRAWN)
    assert shown.query()["check"] == ["ring"]
    assert "Weights alarm" not in shown.listed()

    # Dragging in the chart zooms, and the address says so.
    box = page.locator(".tl-chart .nsewdrag").bounding_box()
    assert box
    middle = box["y"] + 40
    page.mouse.move(box["x"] + box["width"] * 0.85, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, middle, steps=8)
    page.mouse.up()
    page.wait_for_url("**from=**")
    page.wait_for_selector(".timeline:not([aria-busy])")
    zoomed = shown.query()
    assert zoomed["check"] == ["ring"]
    assert zoomed["from"][0] > "2026-03-02T07"
    assert zoomed["to"][0] < "2026-03-02T13"
    assert "Ring alarm" in shown.listed()

    # The address alone shows a colleague the same.
    words = page.locator(".timeline .lede").inner_text()
    shown.open(urlsplit(page.url).path + "?" + urlsplit(page.url).query)
    assert page.locator(".timeline .lede").inner_text() == words

    # Back is the range before.
    page.go_back()
    page.click("ol.events li:has-text('Ring alarm') a:has-text('±5 min')")
    page.wait_for_selector(DRAWN)
    assert shown.query()["from"] == ["2026-03-02T10:10:00Z"]
    assert "1 alarm in 10 minutes" in page.locator(".timeline .lede").inner_text()
    assert shown.complaints == []


def test_the_brush_over_the_histogram_chooses_a_range(shown: Shown) -> None:
    page = shown.page
    shown.open("/timeline?range=24h")
    box = page.locator(".overview .only-l svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 30, steps=6)
    page.mouse.up()
    page.wait_for_url("**from=**")
    page.wait_for_selector(".timeline:not([aria-busy])")
    query = shown.query()
    assert query["from"][0] < query["to"][0] < "2026-03-02T12"
    page.go_back()
    page.wait_for_selector(".timeline:not([aria-busy])")
    page.wait_for_function("() => !location.search.includes('from=')")
    assert "2 alarms" in page.locator(".timeline .lede").inner_text()
    assert shown.complaints == []


def test_nothing_can_be_sent_to_a_cloud(shown: Shown) -> None:
    asked: list[str] = []
    shown.page.on("request", lambda request: asked.append(request.url))
    shown.open("/timeline?range=24h")
    shown.page.hover(".tl-chart .nsewdrag")
    shown.page.wait_for_timeout(300)
    assert shown.page.locator(".modebar-btn").count() == 0
    assert shown.page.get_by_text("Share chart").count() == 0
    context = shown.page.evaluate("document.querySelector('.tl-chart')._context")
    assert context["showSendToCloud"] is False
    assert context["plotlyServerURL"] == ""
    assert [url for url in asked if not url.startswith(shown.base)] == []


def test_names_with_markup_are_text_in_hover_and_bars(shown: Shown) -> None:
    page = shown.page
    shown.open("/timeline?range=24h&by=job")
    place = page.evaluate(
        """() => {
          const chart = document.querySelector(".tl-chart");
          const trace = chart.data.findIndex((one) => one.marker && one.marker.symbol === "square");
          const axis = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          return [box.left + axis._size.l + axis.xaxis.d2p(chart.data[trace].x[0]),
                  box.top + axis._size.t + axis.yaxis.d2p(chart.data[trace].y[0])];
        }"""
    )
    page.mouse.move(place[0] + 1, place[1])
    page.wait_for_selector(".hoverlayer text")
    words = page.locator(".hoverlayer").text_content() or ""
    assert "<img src=x onerror=window.hit=1>" in words
    assert "&lt;i&gt;" in words
    assert page.locator(".tl-chart img").count() == 0
    assert page.evaluate("window.hit") is None
    assert HOSTILE[:12] in page.locator(".tl-labels").inner_text()
    assert shown.complaints == []


def test_what_comes_in_appears_until_the_tail_is_paused(shown: Shown, fleet: Fleet) -> None:
    page = shown.page
    shown.open("/timeline?range=24h")
    fleet.post(culprit(step=50, time=at(70)))
    page.wait_for_selector("ol.events >> text=Ring alarm at step 50", timeout=15_000)
    page.wait_for_selector(DRAWN)
    page.click("[data-live-pause]")
    assert "Paused" in page.locator("[data-live-state]").inner_text()
    fleet.post(culprit(step=60, time=at(80)))
    page.wait_for_timeout(6_500)
    assert "step 60" not in shown.listed()
    page.click("[data-live-pause]")
    page.wait_for_selector("ol.events >> text=Ring alarm at step 60", timeout=15_000)
    assert shown.complaints == []


def test_a_zoomed_page_keeps_its_range_while_documents_come(shown: Shown, fleet: Fleet) -> None:
    page = shown.page
    shown.open("/timeline?range=24h")
    page.click("a:has-text('Zoom out')")
    page.wait_for_selector(DRAWN)
    before = shown.query()
    fleet.post(culprit(step=70, time=NOW.isoformat()))
    page.wait_for_timeout(1_000)
    assert shown.query() == before
    assert shown.complaints == []


def test_without_scripts_the_list_is_there_and_segments_lead_on(
    served: str, shown: Shown, chromium: str
) -> None:
    state = shown.page.context.storage_state()
    browser = shown.page.context.browser
    assert browser
    plain = browser.new_context(java_script_enabled=False, storage_state=state).new_page()
    plain.goto(served + "/timeline?range=24h")
    assert "Ring alarm at step 30" in plain.locator("ol.events").inner_text()
    plain.locator(".overview .only-l svg a").nth(3).click()
    assert "from=" in plain.url
    plain.goto(served + "/timeline?range=24h")
    plain.click("text=Pause")
    assert "live=off" in plain.url
