"""How does a test live through the story as a new user would: real process, cluster, browser?"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.doubles.kubernetes.double import KubernetesDouble

FLEET = Path(__file__).resolve().parent.parent / "data" / "kubernetes" / "four_nodes.json"
ADMIN_TOKEN = "the-administrator-token-of-the-story"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


class Running:
    """`python -m app serve` in a process of its own, with an empty folder."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        """Start it and read what it prints."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        clusters = {"alpine": {"kubeconfig": str(kubeconfig), "context": "alpine"}}
        self.environment = os.environ | {
            "WITNESS_DATA_DIR": str(folder),
            "WITNESS_PORT": str(port),
            "WITNESS_ADMIN_TOKEN": ADMIN_TOKEN,
            "WITNESS_CLUSTERS": json.dumps(clusters),
        }
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            self.sign_in_link = self._link()
        except BaseException:
            self.close()
            raise

    def _link(self) -> str:
        assert self._process.stdout is not None
        printed = []
        for line in self._process.stdout:
            printed.append(line)
            found = re.search(r"http\S+/sign-in/\S+", line)
            if found:
                self._wait()
                return found.group(0)
        raise AssertionError("no sign-in link: " + "".join(printed))

    def _wait(self) -> None:
        for _ in range(500):
            try:
                with urlopen(f"{self.url}/healthz", timeout=2):
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the service does not answer")

    def command(self, *arguments: str) -> str:
        """Run a command of the program beside the service."""
        done = subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    def post(self, path: str, document: dict[str, Any], token: str) -> dict[str, Any]:
        """Post as a job does."""
        headers = {"Authorization": f"Bearer {token}"}
        body = json.dumps(document).encode()
        with urlopen(Request(f"{self.url}/api/v1/{path}", body, headers), timeout=10) as answer:
            said: dict[str, Any] = json.load(answer)
            return said

    def read(self, path: str) -> dict[str, Any]:
        """Read as a program does."""
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        with urlopen(Request(f"{self.url}/api/v1/{path}", headers=headers), timeout=10) as answer:
            said: dict[str, Any] = json.load(answer)
            return said

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def cluster() -> Iterator[KubernetesDouble]:
    """Run a Kubernetes API with four nodes."""
    with KubernetesDouble(FLEET) as double:
        yield double


@pytest.fixture
def running(cluster: KubernetesDouble, tmp_path: Path) -> Iterator[Running]:
    """Run the service against that cluster."""
    kubeconfig = tmp_path / "kubeconfig"
    cluster.kubeconfig(kubeconfig, context="alpine")
    started = Running(tmp_path / "data", kubeconfig)
    yield started
    started.close()


@pytest.fixture
def browser(chromium: str) -> Iterator[Browser]:
    """Open a browser."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()
