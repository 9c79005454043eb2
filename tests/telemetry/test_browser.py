"""Does the telemetry of an alarm, a case and a GPU work in a real browser, and renew itself?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from tests.actions.service import Service
from tests.prometheus import Prometheus
from tests.telemetry.conftest import post_job, rounds
from tests.telemetry.pages import AROUND, case_of, fill

pytestmark = pytest.mark.browser
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
SOON_MS = 30_000


@pytest.fixture
def migrated_url(migrated_sqlite_url: str) -> str:
    """One database is enough: the other tests read from both."""
    return migrated_sqlite_url


@pytest.fixture
def context(chromium: str) -> Iterator[BrowserContext]:
    """Run a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser.new_context()
        browser.close()


def sign_in(context: BrowserContext, service: Service) -> tuple[Page, list[str]]:
    """Open a page as an operator; give it with what the browser complains about."""
    cookies = service.person("operator").http.cookies.jar
    context.add_cookies(
        [{"name": one.name, "value": one.value or "", "url": service.url} for one in cookies]
    )
    page, complaints = context.new_page(), list[str]()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    return page, complaints


def wrong(page: Page) -> list[str]:
    """Say what is wrong with the page as it stands."""
    found: list[dict[str, Any]] = Axe().run(page, options=RULES).response["violations"]
    said = [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        said.append("the page scrolls sideways")
    return said


def test_sections_renew_themselves_and_are_drawn_for_everybody(
    serve: Callable[..., Service], prometheus: Prometheus, context: BrowserContext
) -> None:
    fill(prometheus)
    service = serve({"url": prometheus.url, "level": "basic"})
    alarm, case = post_job(service), case_of(service)
    rounds_done: list[int] = []
    page, complaints = sign_in(context, service)
    waiting = context.new_page()
    waiting.goto(f"{service.url}{AROUND}")
    waiting.get_by_role("button", name="Ask the source for this time").click()
    expect(waiting.locator("progress.waits")).to_have_count(1)
    rounds_done.append(rounds(service))
    # Nobody opens it again: it asks by itself.
    expect(waiting.locator("progress.waits")).to_have_count(0, timeout=SOON_MS)
    expect(waiting.locator(".multiples figure").first).to_be_visible()
    assert rounds_done[0] >= 11
    for path, key in ((f"/alarms/{alarm}", "dcgm"), (case, "dcgm"), (AROUND, "tele")):
        for width, scheme in ((1440, "light"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.goto(f"{service.url}{path}")
            section = page.locator(f"section[aria-labelledby={key}]")
            figures = section.locator("figure svg")
            assert figures.count() == 3
            box = figures.first.bounding_box()
            assert box is not None
            assert box["width"] >= 240
            section.get_by_text("The same as a table").click()
            expect(section.locator("table.numbers").first).to_be_visible()
            assert wrong(page) == []
    table = page.locator("section[aria-labelledby=xids] tbody tr")
    assert table.count() >= 2
    assert complaints == []


def test_an_alarm_page_that_waits_shows_the_reading_when_it_comes(
    serve: Callable[..., Service], prometheus: Prometheus, context: BrowserContext
) -> None:
    fill(prometheus)
    service = serve({"url": prometheus.url})
    alarm = post_job(service)
    page, complaints = sign_in(context, service)
    page.goto(f"{service.url}/alarms/{alarm}")
    section = page.locator("section[aria-labelledby=dcgm]")
    expect(section).to_contain_text("It was not pulled yet.")
    rounds(service)
    expect(section).to_contain_text("New Xid 79", timeout=SOON_MS)
    assert section.locator("figure svg").count() == 3
    assert complaints == []
