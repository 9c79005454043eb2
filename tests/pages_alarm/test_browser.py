"""Do the odd states of an alarm's page fit a phone, and does nothing on them run?"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import sync_playwright

from tests.pages_alarm import documents as d
from tests.pages_alarm.conftest import House

pytestmark = pytest.mark.browser
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LONG = "<img src=x onerror=window.hit=1>" + "very-long-name-" * 20


@pytest.fixture
def served(quick: House) -> Iterator[str]:
    """Serve the house's application on a free port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = quick.person.http.app
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def _states(house: House) -> list[str]:
    """Post alarms of every odd shape; give their ids."""
    placed = d.rank_map(96, job=LONG)
    for row in placed["ranks"]:
        row["node"] = f"{LONG[:200]}-{row['rank'] // 8}"
    house.post(placed)
    house.post(d.rank_map(128, job="long-ring", shift=50))
    pairs = [[(rank + 8) % 128, rank] for rank in range(5, 128, 24)]
    held = [
        {"pair": pair, "third": (pair[0] + 8) % 128, "suspect": pair[0], "kind": "persistent"}
        for pair in pairs
    ]
    said = d.compute(mismatched_pairs=pairs, verdicts=held)
    return [
        house.post(d.alarm(d.CULPRIT, job=LONG)),
        house.post(d.alarm({**d.weights(suspects=list(range(40))), "step": 31}, job=LONG)),
        house.post(d.alarm(said, job="long-ring")),
        house.post(d.alarm(d.weights(suspects=None), job="long-ring")),
        house.post(d.alarm({**d.CULPRIT, "step": 2**62, "suspect_window": [5, 2**62]}, job="none")),
    ]


@pytest.mark.parametrize("width", [390, 1440])
def test_every_state_fits(quick: House, served: str, chromium: str, width: int) -> None:
    found = _states(quick)
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda line: complaints.append(line.text) if line.type == "error" else None
        )
        cookies = quick.person.http.cookies.jar
        page.context.add_cookies(
            [{"name": one.name, "value": one.value or "", "url": served} for one in cookies]
        )
        for alarm_id in found:
            page.goto(f"{served}/alarms/{alarm_id}")
            assert page.locator("dl.facts").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= width, alarm_id
            assert page.evaluate("window.hit") is None
        browser.close()
    assert complaints == []
