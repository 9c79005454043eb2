"""Does every acknowledged document survive kill -9, and is none counted twice?"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.store.database import connect

TOKEN = "the-token-of-the-kill-test"
SENDERS = 8
KILLS = {"sqlite": 50, "postgresql": 20}
MANY_KILLS = {"sqlite": 200, "postgresql": 100}


class Nursery:
    """Starts servers on one database quickly, and kills them."""

    def __init__(self, url: str, folder: Path) -> None:
        """Import everything once."""
        self._child = 0
        command = [sys.executable, "-m", "tests.faults.nursery", url, str(folder), TOKEN]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, port: int) -> int:
        """Start a server and wait until it answers; give its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{port}\n")
        self._process.stdin.flush()
        child = self._child = int(self._process.stdout.readline())
        for _ in range(400):
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as probe:
                    probe.request("GET", "/healthz")
                    if probe.getresponse().status == 200:
                        return child
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the server does not start")

    def close(self) -> None:
        """End the nursery, and the child that a failed test left behind."""
        if self._child:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
        self._process.kill()
        self._process.communicate()


class Senders:
    """Send alarms as fast as answers come, and remember which were acknowledged."""

    def __init__(self) -> None:
        """Begin with nothing sent."""
        self.acknowledged: dict[str, str] = {}  # id by what was sent
        self.sent = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, port: int, round_number: int) -> None:
        """Start the senders against a server."""
        self._stop.clear()
        self._threads = [
            threading.Thread(target=self._send, args=(port, round_number, sender), daemon=True)
            for sender in range(SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def wait_for_one(self) -> None:
        """Wait until this server has acknowledged something: it is in the middle of intake."""
        before = len(self.acknowledged)
        for _ in range(6_000):
            if len(self.acknowledged) > before:
                return
            time.sleep(0.01)
        raise AssertionError("the server acknowledges nothing")

    def join(self) -> None:
        """Wait until all have noticed that the server is gone."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self, port: int, round_number: int, sender: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        number = 0
        with closing(connection):
            while not self._stop.is_set():
                number += 1
                step = (round_number * SENDERS + sender) * 100_000 + number
                try:
                    connection.request("POST", "/api/v1/alarms", alarm(step), headers)
                    answer = connection.getresponse()
                    said = json.loads(answer.read())
                except (OSError, http.client.HTTPException, ValueError):
                    return
                assert answer.status == 201, said
                with self._lock:
                    self.acknowledged[str(step)] = said["id"]


def alarm(step: int) -> str:
    """Write an alarm that no other one equals."""
    named: dict[str, Any] = {
        "step": step, "check": "compute", "nonfinite": [], "mismatched_pairs": [[13, 5], [21, 13]],
        "culprits": [13], "verdicts": [], "suspect_window": [max(step - 9, 0), step],
    }  # fmt: skip
    envelope = {"cluster": "alpine", "namespace": "research", "job": "killed", "attempt": 1}
    return json.dumps({**envelope, "time": "2026-03-02T10:15:00Z", "alarm": named})


@pytest.fixture
def nursery(migrated_url: str, tmp_path: Path) -> Iterator[Nursery]:
    """Give a nursery on a fresh database."""
    made = Nursery(migrated_url, tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(900)
def test_kill_in_the_middle_of_intake(nursery: Nursery, migrated_url: str) -> None:
    """Kill the server at random moments; then look for every acknowledged alarm in the tables."""
    _kill(nursery, migrated_url, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_many_kills_in_the_middle_of_intake(nursery: Nursery, migrated_url: str) -> None:
    """Do the same for longer."""
    _kill(nursery, migrated_url, MANY_KILLS)


def _kill(nursery: Nursery, migrated_url: str, kills: dict[str, int]) -> None:
    chance = random.Random(17)
    kind = "sqlite" if migrated_url.startswith("sqlite") else "postgresql"
    senders = Senders()
    for round_number in range(kills[kind]):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        child = nursery.start(port)
        senders.start(port, round_number)
        senders.wait_for_one()
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        senders.join()
    engine = connect(migrated_url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT step, received, document_id FROM alarms")).all()
        documents = {row[0] for row in connection.execute(sa.text("SELECT id FROM documents"))}
        counted = connection.execute(sa.text("SELECT sum(alarms) FROM alarm_hours")).scalar()
        of_job = connection.execute(sa.text("SELECT alarms FROM jobs")).scalar()
        found = connection.execute(sa.text("SELECT count(*) FROM findings")).scalar()
        of_cases = connection.execute(sa.text("SELECT sum(alarms) FROM cases")).scalar()
    engine.dispose()
    stored = [str(row[0]) for row in rows]
    assert len(stored) == len(set(stored))
    assert set(senders.acknowledged) <= set(stored)
    assert len(senders.acknowledged) > kills[kind]
    assert {row[1] for row in rows} == {1}
    assert {row[2] for row in rows} == documents
    # What is counted in advance was committed with what it counts.
    assert counted == of_job == found == of_cases == len(stored)
