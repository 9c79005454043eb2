"""Does what the README tells a newcomer to do work, with the real process?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.tooling.settings_table import README

STARTS_WITHIN_S = 60.0


@dataclass(frozen=True)
class Served:
    """A running service: its address, its sign-in link, and the environment it runs in."""

    address: str
    link: str
    environment: dict[str, str]
    process: subprocess.Popen[str]

    def command(self, *arguments: str) -> str:
        """Run another command of the program against the same data."""
        done = subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            env=self.environment, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout


def _read_until(output: Path, pattern: str, process: subprocess.Popen[str]) -> str:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until:
        found = re.search(pattern, output.read_text())
        if found:
            return found[0]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    pytest.fail(f"no {pattern!r} in what the service printed:\n{output.read_text()}")


@pytest.fixture
def served(root: Path, tmp_path: Path) -> Iterator[Served]:
    output = tmp_path / "output"
    environment = {**os.environ, "WITNESS_DATA_DIR": str(tmp_path / "data")}
    with output.open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve", "--port", "0"],
            cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=printed,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    try:
        link = _read_until(output, r"http://127\.0\.0\.1:\d+/sign-in/\S+", process)
        yield Served(link.partition("/sign-in/")[0], link, environment, process)
    finally:
        process.kill()
        process.wait()


def _example() -> str:
    shown = re.search(r"<<'JSON'\n(.*?)\nJSON\n", README.read_text(), re.S)
    assert shown is not None
    return shown[1]


def test_the_first_alarm_of_the_readme_is_kept_once_and_shown(served: Served) -> None:
    made = served.command("token", "create", "--cluster", "alpine", "--namespace", "research")
    headers = {"Authorization": f"Bearer {made.split()[-1]}", "Content-Type": "application/json"}
    with httpx2.Client(base_url=served.address) as job:
        first = job.post("/api/v1/alarms", content=_example(), headers=headers)
        again = job.post("/api/v1/alarms", content=_example(), headers=headers)
        assert (first.status_code, again.status_code) == (201, 200), first.text + again.text
        assert again.json()["duplicate"] is True
        assert again.json()["id"] == first.json()["id"]
        assert job.get("/healthz").status_code == 200
        assert "/api/v1/alarms" in job.get("/api/v1/openapi.json").json()["paths"]
    with httpx2.Client(base_url=served.address, follow_redirects=True) as person:
        # The link shows a form, so that a mail scanner that follows links does not use it up.
        asked = person.get(served.link)
        fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked.text)
        page = person.post(served.link, data=dict(fields))
        assert page.status_code == 200, page.text
        assert "pretrain-7b" in person.get("/").text


def test_the_service_ends_in_order_when_told_to(served: Served) -> None:
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=20) in (0, -signal.SIGTERM)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{served.address}/healthz")
