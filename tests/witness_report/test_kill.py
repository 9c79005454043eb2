"""Does every alarm that was said to be safe land exactly once, whenever the process is killed?"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.witness_report.conftest import Making, Service, alarm, spooled, until
from tests.witness_report.hostile import HostileServer, accepting
from witness.report import read_holds

# Reports alarms as fast as it can, and says which ones are safe.
SCRIPT = """
import os, sys
from witness.report import Reporter, Envelope
url, token, spool, job, step = sys.argv[1:]
reporter = Reporter(Envelope("alpine", "research", job, 1), url=url, token=token, spool=spool)
step = int(step)
os.write(1, b"begun\\n")
while True:
    step += 1
    reporter.passed("ring", step, gpus=3)
    if reporter.alarm({"check": "compute", "step": step, "culprits": [1]}):
        os.write(1, b"%d\\n" % step)
"""
ROUNDS = 5


def _killed_somewhere(
    root: Path, chance: random.Random, *arguments: str, script: str = SCRIPT
) -> set[int]:
    """Run the script, kill it at a random moment; give the steps that it said to be safe."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=root, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        time.sleep(chance.uniform(0.0, 0.25))
        running.kill()
        said = running.stdout.read().split(b"\n")
    return {int(line) for line in said[:-1]}  # what follows the last line's end is half a line


ROUNDS_OF_MANY = 60
MANY = (pytest.mark.slow, pytest.mark.timeout(900))


@pytest.mark.parametrize(
    ("up", "rounds"),
    [
        (True, ROUNDS),
        (False, ROUNDS),
        pytest.param(True, ROUNDS_OF_MANY, marks=MANY),
        pytest.param(False, ROUNDS_OF_MANY, marks=MANY),
    ],
)
def test_what_was_said_to_be_safe_lands_once_after_kills_at_random_moments(
    up: bool, rounds: int, root: Path, service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    chance, spool = random.Random(f"{up}"), tmp_path / "spool"
    url = service.url if up else "http://127.0.0.1:9"  # refused: everything stays in the spool
    safe: set[int] = set()
    for number in range(rounds):
        first = str(1_000_000 * (number + 1))
        given = (url, service.token, str(spool), job, first)
        safe |= _killed_somewhere(root, chance, *given)
    assert safe
    if not up:
        assert len(spooled(spool)) >= len(safe)
    last = make(service.url, service.token, options={"beat_s": 0.5, "adopt_every_s": 0.2})
    until(lambda: spooled(spool) == [], "everything left is delivered", 100)
    last.close()
    assert list(spool.iterdir()) == []
    found = [one["step"] for one in _all(service, job)]
    assert safe <= set(found)
    assert len(found) == len(set(found))
    assert last.status()["failures"] == {}


@pytest.mark.slow
def test_a_service_that_is_killed_while_it_takes_alarms_has_each_once_after_its_restart(
    make: Making, job: str, tmp_path: Path, quick_folder: Path
) -> None:
    folder = quick_folder / job
    folder.mkdir()
    first = Service(folder)
    reporter = make(first.url, first.token)
    for step in range(100, 130):
        assert reporter.alarm(alarm(step))
        if step == 115:
            first.server.process.kill()  # some are committed and not yet answered
    reporter.close(0.5)
    first.server.close()
    second = Service(folder)
    try:
        last = make(second.url, second.token)
        until(lambda: spooled(tmp_path / "spool") == [], "everything left is delivered", 60)
        assert [one["step"] for one in second.alarms(job)] == list(range(100, 130))
        assert last.status()["failures"] == {}
    finally:
        second.server.close()


def test_processes_that_take_over_one_spool_at_once_send_each_document_once(
    root: Path, make: Making, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    for number in range(12):
        gone = make(None)
        for step in range(5):
            gone.alarm(alarm(10 * number + step + 100))
        gone.close()

    def slowly(line: socket.socket, body: bytes) -> None:
        time.sleep(2)  # so that all of them are there while one sends
        accepting(line, body)

    with HostileServer(slowly) as server:
        environ = {**os.environ, "WITNESS_URL": server.url}
        command = [sys.executable, "-m", "witness.report", "send", str(spool)]
        running = [
            subprocess.Popen(command, cwd=root, env=environ, stdout=subprocess.DEVNULL)
            for _ in range(3)
        ]
        assert [one.wait(60) for one in running] == [0, 0, 0]
        steps = [one["alarm"]["step"] for one in server.documents()]
    assert len(steps) == 60
    assert len(set(steps)) == 60
    assert list(spool.iterdir()) == []


HOLDING = """
import os, sys
from witness.report import write_hold
step = int(sys.argv[2])
os.write(1, b"begun\\n")
while True:
    step += 1
    write_hold(sys.argv[1], {"check": "compute", "step": step, "suspect_window": [step, step]})
    os.write(1, b"%d\\n" % step)
"""


def test_a_hold_that_was_written_survives_kills_and_is_never_half_there(
    root: Path, tmp_path: Path
) -> None:
    chance, safe = random.Random(5), set()
    for number in range(ROUNDS):
        first = str(1_000 * (ROUNDS - number))
        safe |= _killed_somewhere(root, chance, str(tmp_path), first, script=HOLDING)
        assert safe <= {one.first for one in read_holds(tmp_path)}
    assert min(one.first for one in read_holds(tmp_path)) > 1_000


def _all(service: Service, job: str) -> list[dict[str, int]]:
    items: list[dict[str, int]] = []
    query = {"job": job, "limit": "200"}
    while True:
        page = service.read("/alarms", **query)
        items += page["items"]
        if page["next"] is None:
            return items
        query["cursor"] = page["next"]
