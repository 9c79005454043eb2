"""Does every alarm that was said to be safe land exactly once, whenever the process is killed?"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.witness_report.conftest import Making, Service, spooled, until

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


def _killed_somewhere(root: Path, chance: random.Random, *arguments: str) -> set[int]:
    """Run the script, kill it at a random moment; give the steps that it said to be safe."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=root, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        time.sleep(chance.uniform(0.0, 0.25))
        running.kill()
        said = running.stdout.read().split(b"\n")
    return {int(line) for line in said[:-1]}  # what follows the last line's end is half a line


@pytest.mark.parametrize("up", [True, False])
def test_what_was_said_to_be_safe_lands_once_after_kills_at_random_moments(
    up: bool, root: Path, service: Service, make: Making, job: str, tmp_path: Path
) -> None:
    chance, spool = random.Random(f"{up}"), tmp_path / "spool"
    url = service.url if up else "http://127.0.0.1:9"  # refused: everything stays in the spool
    safe: set[int] = set()
    for number in range(ROUNDS):
        first = str(1_000_000 * (number + 1))
        given = (url, service.token, str(spool), job, first)
        safe |= _killed_somewhere(root, chance, *given)
    assert safe
    if not up:
        assert len(spooled(spool)) >= len(safe)
    last = make(service.url, service.token, options={"beat_s": 0.5, "adopt_every_s": 0.2})
    until(lambda: spooled(spool) == [], "everything left is delivered", 30)
    last.close()
    assert list(spool.iterdir()) == []
    found = [one["step"] for one in _all(service, job)]
    assert safe <= set(found)
    assert len(found) == len(set(found))
    assert last.status()["failures"] == {}


def _all(service: Service, job: str) -> list[dict[str, int]]:
    items: list[dict[str, int]] = []
    query = {"job": job, "limit": "200"}
    while True:
        page = service.read("/alarms", **query)
        items += page["items"]
        if page["next"] is None:
            return items
        query["cursor"] = page["next"]
