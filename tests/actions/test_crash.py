"""What stands on the page after the service was killed between the call and its record?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from app.store.database import connect, writing
from app.store.tables import proposals
from tests.actions.fleet import SUSPECT, alarm, rank_map
from tests.actions.service import ADMIN_TOKEN, BEARER, Person, post, read, until
from tests.doubles.kubernetes.double import KubernetesDouble


@dataclass
class Process:
    """The service in a process of its own."""

    running: subprocess.Popen[str]
    url: str
    sign_in: str


@pytest.fixture
def environment(migrated_url: str, tmp_path: Path, cluster: KubernetesDouble) -> dict[str, str]:
    """Give the environment of the service."""
    config = cluster.kubeconfig(tmp_path / "config")
    return {
        **os.environ,
        "WITNESS_DATABASE_URL": migrated_url,
        "WITNESS_DATA_DIR": str(tmp_path),
        "WITNESS_PORT": "0",
        "WITNESS_ADMIN_TOKEN": ADMIN_TOKEN,
        "WITNESS_CLUSTERS": f'{{"alpine": {{"kubeconfig": "{config}"}}}}',
    }


@pytest.fixture
def started(root: Path) -> Iterator[list[Process]]:
    """Keep the processes of a test and end those that are left."""
    processes: list[Process] = []
    yield processes
    for one in processes:
        if one.running.poll() is None:
            one.running.kill()
        one.running.wait(10)
        if one.running.stdout:
            one.running.stdout.close()


def start(environment: dict[str, str], root: Path, started: list[Process]) -> Process:
    running = subprocess.Popen(
        [sys.executable, "-m", "app", "serve"],
        cwd=root, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert running.stdout is not None
    lines = [running.stdout.readline() for _ in range(2)]
    url = re.search(r"http://\S+", lines[0])
    link = re.search(r"/sign-in/\S+", lines[1])
    assert url, lines
    assert link, lines
    process = Process(running, url[0], link[0])
    started.append(process)
    until(lambda: _serves(process.url), "the service serves", 30)
    return process


def _serves(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/healthz", timeout=2).status_code == 200
    except httpx2.TransportError:
        return False


def _approve(url: str, proposal: dict[str, object]) -> None:
    body = {"evidence_version": proposal["evidence_version"]}
    with suppress(httpx2.TransportError):  # the service is killed under it: that is the test
        httpx2.post(
            f"{url}/api/v1/proposals/{proposal['id']}/approve",
            json=body, headers=BEARER, timeout=30,
        )  # fmt: skip


def test_a_kill_between_call_and_record_leaves_unknown_and_never_a_second_call(
    environment: dict[str, str], root: Path, started: list[Process], cluster: KubernetesDouble
) -> None:
    first = start(environment, root, started)
    post(first.url, rank_map(), alarm())
    (proposal,) = (
        one for one in read(first.url, "/proposals")["items"] if one["action"] == "cordon"
    )
    late = f"PATCH /api/v1/nodes/{SUSPECT}"
    cluster.set_fault(late, delay_s=4.0, apply_first=True, dry_run=False)
    clicking = threading.Thread(target=_approve, args=(first.url, proposal))
    clicking.start()
    until(lambda: cluster.node(SUSPECT)["spec"].get("unschedulable"), "the patch is applied")
    first.running.send_signal(signal.SIGKILL)
    first.running.wait(10)
    clicking.join(30)
    cluster.clear_faults()

    second = start(environment, root, started)
    address = f"/proposals/{proposal['id']}"
    person = Person(second.url, second.sign_in)
    try:
        if not environment["WITNESS_DATABASE_URL"].startswith("sqlite"):
            # Other processes may be alive on a shared database: the claim has to run out first.
            assert read(second.url, address)["status"] == "executing"
            _let_the_claim_run_out(environment["WITNESS_DATABASE_URL"])
        until(lambda: read(second.url, address)["status"] == "unknown", "the orphan is found", 40)
        page = person.get(address)
        assert "It was being executed when the service stopped: outcome unknown" in page
        assert "Read it again now" in page
        again = httpx2.post(
            f"{second.url}/api/v1{address}/approve",
            json={"evidence_version": proposal["evidence_version"]}, headers=BEARER,
        )  # fmt: skip
        assert again.status_code == 409
        assert len(cluster.changes("PATCH")) == 1
        settled = person.press(f"{address}/read-again", address)
        assert "Read again" in settled
        assert read(second.url, address)["status"] == "verified"
        assert len(cluster.changes("PATCH")) == 1
    finally:
        person.http.close()


def _let_the_claim_run_out(url: str) -> None:
    engine = connect(url)
    with writing(engine).begin() as connection:
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        connection.execute(proposals.update().values(claimed_at=long_ago))
    engine.dispose()
