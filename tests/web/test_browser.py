"""Does a real browser keep to our policy and do what live.js promises?"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Page, sync_playwright
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.context import Context
from app.store import audit, people, run_settings, tokens
from app.store.connection import Connection
from app.web import rendering
from app.web.rendering import unchanged
from app.web.security import Viewer, page_policy

pytestmark = pytest.mark.browser

PAGES = (
    "/settings",
    "/settings/cluster?name=alpine",
    "/audit",
    "/search?q=node",
    "/nothing",
    "/audit?from=x",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHART = """{% extends "page.html" %}{% block title %}Probe{% endblock %}{% block content %}
<h1>Probe</h1><p><span data-live-state>…</span> <a href="?" data-live-pause hidden>Pause</a></p>
<div data-live="/fragment/probe" data-stamp="0" data-every="1"><p>count 0</p></div>
<ul><li data-row id="r1"><a href="/search?q=one">one</a></li>
<li data-row id="r2"><a href="/search?q=two">two</a> <button data-approve>Approve</button></li></ul>
<div id="chart"></div>{% endblock %}
{% block scripts %}{% if charts %}
<script src="{{ asset('plotly.js') }}" nonce="{{ nonce }}"></script>
<script nonce="{{ nonce }}">Plotly.newPlot("chart", [{x: [1, 2, 3], y: [3, 1, 2], mode: "markers"}],
 {title: {text: "probe"}}, {showSendToCloud: false, plotlyServerURL: "", displayModeBar: true,
 modeBarButtonsToRemove: ["sendChartToCloud"]}).then(() => document.body.dataset.drawn = "1");
</script>{% endif %}{% endblock %}"""


@dataclass
class Site:
    """A running server with a page of our own."""

    address: str
    count: int = 0
    status: int = 200


def fill(context: Context) -> None:
    """Put something on the pages: a token, a person, an audit entry with details."""
    now = context.now()

    def work(c: Connection) -> None:
        people.ensure(c, "T. Reyes", "approver", now)
        tokens.create(
            c, name="nightly", cluster="alpine", namespace=None, scope="write", by="ana", at=now
        )
        audit.append(c, "ana", "brake.pulled", "ana pulled the brake.", at=now, details={"x": 1})
        run_settings.set_brake(c, True, "power work", by="ana", at=now)
        run_settings.set_brake(c, False, "power is back", by="ana", at=now)

    context.store.write(work)


@pytest.fixture
def site(app: FastAPI, free_port: int, context: Context) -> Iterator[Site]:
    """Serve the application over HTTP, with a page that has everything live."""
    site = Site(f"http://127.0.0.1:{free_port}")
    template = rendering.environment().from_string(CHART)

    @app.get("/probe")
    def probe(request: Request, person: Viewer, charts: bool = False) -> Response:
        nonce = "n" * 24
        values = {**rendering._common(request, nonce), "charts": charts}
        page = HTMLResponse(template.render(values))
        page.headers["Content-Security-Policy"] = page_policy(nonce, charts=charts)
        return page

    @app.get("/fragment/probe")
    def fragment(request: Request, person: Viewer) -> Response:
        stamp = str(site.count)
        if site.status != 200:
            return Response("the database is away", site.status)
        return unchanged(request, stamp) or HTMLResponse(
            f"<p>count {stamp}</p>", headers={"X-Stamp": stamp}
        )

    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=free_port, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    fill(context)
    yield site
    server.should_exit = True
    thread.join()


@pytest.fixture
def signed_in(site: Site, context: Context, chromium: str) -> Iterator[BrowserContext]:
    """Give a Chromium with somebody signed in through the link, zone Berlin."""
    now = context.now()
    person, _ = context.store.write(lambda c: people.ensure(c, "admin", "admin", now))
    secret = context.store.write(lambda c: people.make_link(c, person.id, now, 30))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        tabs = browser.new_context(timezone_id="Europe/Berlin")
        tabs.set_default_timeout(20_000)
        page = tabs.new_page()
        page.goto(f"{site.address}/sign-in/{secret}")
        page.get_by_role("button", name="Sign in as admin").click()
        page.wait_for_url(f"{site.address}/**")
        page.close()
        yield tabs
        browser.close()


def watched(tabs: BrowserContext) -> tuple[Page, list[str]]:
    """Open a tab and note everything that the policy or a script objects to."""
    page = tabs.new_page()
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return page, said


def test_pages_raise_no_complaint_and_know_the_zone(site: Site, signed_in: BrowserContext) -> None:
    page, said = watched(signed_in)
    for path in ("/settings", "/audit", "/search?q=x", "/sign-in"):
        page.goto(site.address + path)
    page.goto(site.address + "/audit")
    assert "Times in Europe/Berlin" in page.locator("footer").inner_text()
    written = page.locator("td time").first
    title = written.get_attribute("title") or ""
    utc = int(re.findall(r" (\d\d):", title)[0])
    here = int(re.findall(r"(\d\d):", written.inner_text())[0])
    assert (here - utc) % 24 in (1, 2)
    assert said == []


def test_a_live_part_follows_pauses_and_says_when_it_does_not(
    site: Site, signed_in: BrowserContext
) -> None:
    page, _ = watched(signed_in)
    page.goto(site.address + "/probe")
    site.count = 1
    page.get_by_text("count 1").wait_for()
    state = page.locator("[data-live-state]")
    assert "live" in state.inner_text()
    page.get_by_text("Pause").click()
    site.count = 2
    page.wait_for_timeout(2500)
    assert page.get_by_text("count 1").is_visible()
    assert state.inner_text() == "Paused."
    page.get_by_text("Go on").click()
    page.get_by_text("count 2").wait_for()
    site.status = 503
    page.get_by_text("Not live: the database is away").wait_for()
    site.status, site.count = 200, 3
    page.get_by_text("count 3").wait_for()
    site.status = 401
    page.get_by_text("Signed out: open the page again.").wait_for()


def test_keys_move_search_and_approve(site: Site, signed_in: BrowserContext) -> None:
    page, _ = watched(signed_in)
    page.goto(site.address + "/probe")
    focused: Callable[[], str] = lambda: page.evaluate("document.activeElement.id")  # noqa: E731
    page.keyboard.press("j")
    assert focused() == "r1"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert focused() == "r2"
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.hasAttribute('data-approve')")
    page.keyboard.press("k")
    assert focused() == "r1"
    page.keyboard.press("/")
    assert focused() == "q"
    page.keyboard.type("j/a")
    assert page.locator("#q").input_value() == "j/a"
    page.keyboard.press("Escape")
    page.locator("#r1").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=one")


def test_the_theme_is_kept_and_can_be_given_back(site: Site, signed_in: BrowserContext) -> None:
    page, _ = watched(signed_in)
    page.emulate_media(color_scheme="light")
    page.goto(site.address + "/audit")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.goto(site.address + "/search")
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="system").click()
    page.goto(site.address + "/audit")
    assert page.evaluate(background) == light


def test_charts_draw_under_the_policy_and_cannot_be_shared(
    site: Site, signed_in: BrowserContext
) -> None:
    page, said = watched(signed_in)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.address + "/probe?charts=true")
    page.locator("body[data-drawn]").wait_for()
    assert page.locator("#chart .points path").count() == 3
    assert said == []
    titles = page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert titles
    assert [t for t in titles if "share" in t.lower() or "cloud" in t.lower()] == []
    assert [url for url in asked if not url.startswith((site.address, "data:", "blob:"))] == []


def test_pages_work_without_scripts(site: Site, signed_in: BrowserContext, chromium: str) -> None:
    cookies = signed_in.cookies()
    browser = signed_in.browser
    assert browser is not None
    plain = browser.new_context(java_script_enabled=False)
    plain.add_cookies([{k: c[k] for k in ("name", "value", "domain", "path")} for c in cookies])  # type: ignore[misc]
    page = plain.new_page()
    page.goto(site.address + "/settings")
    page.get_by_label("Reason, kept in the audit chain").fill("power work")
    page.get_by_role("button", name="Pull the brake").click()
    assert "admin pulled the brake" in page.locator(".msg").inner_text()
    page.goto(site.address + "/audit")
    page.get_by_label("Words in the entry").fill("power")
    page.get_by_role("button", name="Filter").click()
    assert page.locator("tbody tr").count() == 1


def test_no_page_scrolls_sideways(site: Site, signed_in: BrowserContext) -> None:
    page, _ = watched(signed_in)
    for width in (1440, 800, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        for path in PAGES:
            page.goto(site.address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)


def test_pages_are_accessible(site: Site, signed_in: BrowserContext) -> None:
    package = find_spec("axe_playwright_python")
    assert package is not None
    assert package.origin is not None
    (axe,) = Path(package.origin).parent.rglob("axe.min.js")
    page, _ = watched(signed_in)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for path in PAGES:
            page.goto(site.address + path)
            page.evaluate(axe.read_text())
            result = page.evaluate("axe.run()")
            found += [(path, scheme, v["id"], v["nodes"][0]["html"]) for v in result["violations"]]
    assert found == []
