"""Is every page free of serious accessibility findings, in both themes, wide and narrow?"""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.story.conftest import ADMIN_TOKEN, Running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
PAGES = (
    "/", "/?show=closed", "/timeline?range=all", "/alarms/{alarm}", "/cases/{case}",
    "/proposals/{proposal}", "/approvals", "/nodes", "/nodes/{node}", "/gpus/{gpu}", "/jobs",
    "/jobs/{job}", "/offenders?window=all", "/decision-table", "/triage", "/audit", "/settings",
    "/search?q=hyperpod", "/nowhere",
)  # fmt: skip
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
}
SERIOUS = frozenset({"serious", "critical"})
NARROW, WIDE = 390, 1440


@pytest.fixture
def filled(running: Running) -> tuple[Running, dict[str, str]]:
    """Post the recorded runs and find one of everything."""
    running.command("demo", "--url", running.url, "--token", ADMIN_TOKEN)
    found: dict[str, str] = {}
    for noun in ("alarms", "cases", "proposals", "nodes", "jobs"):
        found[noun.removesuffix("s")] = running.read(f"{noun}?limit=1")["items"][0]["id"]
    found["gpu"] = running.read(f"alarms/{found['alarm']}")["findings"][0]["gpu_id"]
    return running, found


def scan(page: Page, address: str) -> list[str]:
    """Give what is seriously wrong on a page."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    found: list[dict[str, Any]] = Axe().run(page, options=RULES).response["violations"]
    wrong = [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in SERIOUS
    ]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("the page scrolls sideways")
    return wrong


# Both in `make test-slow`: a round of every page takes minutes.
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_every_page(filled: tuple[Running, dict[str, str]], browser: Browser, scheme: Any) -> None:
    running, found = filled
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    wrong = {"sign-in": scan(page, running.sign_in_link)}
    page.get_by_role("button", name="Sign in as admin").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Docket")
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        for pattern in PAGES:
            address = running.url + pattern.format(**found)
            wrong[f"{pattern} {width}"] = scan(page, address)
    lines = [f"{where}: {line}" for where, what in wrong.items() for line in what]
    assert not lines, "\n".join(lines)
    assert complaints == []
