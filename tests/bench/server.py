"""How is a real server process started, watched and stopped?"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

TOKEN = "the-token-of-the-bench"
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """One `python -m app serve` on a free port of the loopback."""

    def __init__(self, folder: Path, url: str = "", **settings: str) -> None:
        """Start it and wait until it answers; an empty address means SQLite in the folder."""
        self.folder = folder
        outside = {k: v for k, v in os.environ.items() if not k.startswith("WITNESS_")}
        given = {f"WITNESS_{name.upper()}": value for name, value in settings.items()}
        environment = {
            **outside,
            "WITNESS_DATA_DIR": str(folder),
            "WITNESS_DATABASE_URL": url,
            "WITNESS_ADMIN_TOKEN": TOKEN,
            "PYTHONUNBUFFERED": "1",
            **given,
        }
        self._log = (folder / "server.log").open("w+")
        command = [sys.executable, "-m", "app", "serve", "--port", "0"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=self._log, stderr=subprocess.STDOUT
        )
        self.port, self.link = self._wait()

    def _wait(self) -> tuple[int, str]:
        text = ""
        for _ in range(600):
            text = (self.folder / "server.log").read_text()
            port = re.search(r"serves on http://127\.0\.0\.1:(\d+)", text)
            link = re.search(r"(/sign-in/\S+)", text)
            if port and link and self._answers(int(port[1])):
                return int(port[1]), link[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the server does not start:\n{text}")

    @staticmethod
    def _answers(port: int) -> bool:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as probe:
                probe.request("GET", "/healthz")
                return probe.getresponse().status == 200
        except OSError:
            return False

    def cpu_seconds(self) -> float:
        """Read the processor time that the process has used."""
        cells = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(cells[11]) + int(cells[12])) / TICKS

    def peak_mib(self) -> float:
        """Read the largest resident memory since the start or the last `forget_peak`."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) / 1024

    def forget_peak(self) -> None:
        """Let the peak begin at what is resident now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def counter(self, name: str) -> float:
        """Read one counter without labels from /metrics."""
        text = self.request("GET", "/metrics")[1].decode()
        found = re.search(rf"^{name} (\S+)$", text, re.M)
        assert found is not None, f"/metrics has no {name}"
        return float(found[1])

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send one request with the administrator's token; give status, body and headers."""
        sent = {"Authorization": f"Bearer {TOKEN}", **headers}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)) as line:
            line.request(method, path, body, sent)
            answer = line.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())

    def post(self, path: str, document: object) -> dict[str, Any]:
        """Post one document that must be accepted."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        status, said, _ = self.request("POST", f"/api/v1/{path}", body)
        assert status in (200, 201), (status, said[:500])
        answer: dict[str, Any] = json.loads(said)
        return answer

    def close(self) -> None:
        """Stop it and wait for its end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()
