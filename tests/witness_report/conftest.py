"""Which real service and which reporters can a test of the reporter have?"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.bench.server import TOKEN, Server
from witness.report import Options, Reporter
from witness.report.poster import Pace
from witness.wire import Envelope

QUICK = Pace(first_pause_s=0.05, longest_pause_s=0.3, answer_s=2.0, longest_answer_s=2.0)


class Service:
    """`python -m app serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.token = TOKEN

    def read(self, path: str, **query: str) -> Any:
        """Read JSON under /api/v1."""
        status, body, _ = self.server.request("GET", f"/api/v1{path}?{urlencode(query)}")
        assert status == 200, body
        return json.loads(body)

    def alarms(self, job: str) -> list[dict[str, Any]]:
        """List the alarms of a job, the oldest step first."""
        items = self.read("/alarms", job=job, limit="200")["items"]
        return sorted(items, key=lambda one: (one["step"], one["attempt"]))


@pytest.fixture(scope="session")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a folder in memory where there is one: a service that starts syncs often."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path_factory.mktemp("service")
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="witness-report-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def service(quick_folder: Path) -> Iterator[Service]:
    """Serve for the whole session; each test has a job of its own."""
    folder = quick_folder / "shared"
    folder.mkdir()
    made = Service(folder)
    yield made
    made.server.close()


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    """Name a job that no other test has."""
    name: str = request.node.name
    return name


Making = Callable[..., Reporter]


@pytest.fixture
def make(tmp_path: Path, job: str) -> Iterator[Making]:
    """Make reporters with one spool, and close them."""
    made: list[Reporter] = []

    def build(url: str | None, token: str | None = None, **given: Any) -> Reporter:
        chosen = {"pace": QUICK, **given.pop("options", {})}
        arguments: dict[str, Any] = {
            "envelope": Envelope("alpine", "research", job, 1),
            "spool": tmp_path / "spool",
            "options": Options(**chosen),
            **given,
        }
        made.append(Reporter(url=url, token=token, **arguments))
        return made[-1]

    yield build
    for one in made:
        one.close(0.5)


def alarm(step: int = 30, culprit: int = 1) -> dict[str, Any]:
    """Give an alarm as the ring replay of three ranks raises it."""
    before, after = (culprit - 1) % 3, (culprit + 1) % 3
    passed = step - 10 if step >= 10 else None
    return {
        "check": "compute",
        "step": step,
        "nonfinite": [],
        "mismatched_pairs": [[culprit, before], [after, culprit]],
        "culprits": [culprit],
        "verdicts": [],
        "suspect_window": [0 if passed is None else passed + 1, step],
        "last_audit_pass": passed,
        "last_weight_check_pass": passed,
        "world_size": 3,
        "peer_offset": 1,
    }


def rows(ranks: int = 3) -> list[dict[str, Any]]:
    """Give a rank map of one rank a node."""
    return [
        {
            "rank": rank,
            "node": f"hyperpod-i-{rank:017x}",
            "gpu_uuid": f"GPU-{rank:08x}-0000-4000-8000-{rank:012x}",
        }
        for rank in range(ranks)
    ]


def until(holds: Callable[[], object], what: str, seconds: float = 10.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.01)


def spooled(folder: Path) -> list[str]:
    """List the names of the documents in a spool, whose folders may vanish meanwhile."""
    names: list[str] = []
    for run in folder.iterdir() if folder.exists() else ():
        with suppress(FileNotFoundError):
            names += [file.name for file in run.iterdir() if file.name != "lock"]
    return sorted(names)
