"""What does Compute Engine answer about reports of faulty hosts? A small double, over real HTTP.

It checks paths, bodies and the bearer token, remembers request ids as the real one does, and lets a
test decide how each operation ends. The metadata server's token is served here as well.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "ya29.token-of-the-tests"
BEHAVIORS = {
    "BEHAVIOR_UNSPECIFIED", "PERFORMANCE", "SILENT_DATA_CORRUPTION", "UNRECOVERABLE_GPU_ERROR",
    "CHIP_ERROR",
}  # fmt: skip
_REPORT = re.compile(
    r"/compute/v1/projects/([^/]+)/zones/([^/]+)/instances/([^/]+)/reportHostAsFaulty"
)
_OPERATION = re.compile(r"/compute/v1/projects/([^/]+)/zones/([^/]+)/operations/([^/]+)")


@dataclass
class ComputeEngineDouble:
    """One project's machines, as a context manager."""

    instances: tuple[str, ...] = ("slice-a-host-1",)
    project: str = "my-project"
    zone: str = "us-east5-a"
    reports: list[dict[str, Any]] = field(default_factory=list)
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuse: tuple[int, str] | None = None  # status and message of the next report's refusal
    cut_after: bool = False  # the next report takes effect, and its answer is cut off
    _by_request: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                double.get(self)

            def do_POST(self) -> None:
                double.post(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def entry(self, **more: str) -> dict[str, str]:
        """Give an entry of WITNESS_PROVIDERS that leads here."""
        return {
            "kind": "gke", "project": self.project, "endpoint_url": self.url,
            "token_url": self.url, **more,
        }  # fmt: skip

    def provider_id(self, instance: str | None = None) -> str:
        """Give a node's provider id."""
        return f"gce://{self.project}/{self.zone}/{instance or self.instances[0]}"

    def ends(self, error: str | None = None) -> None:
        """Let every operation end, well or with an error."""
        for one in self.operations.values():
            one["status"] = "DONE"
            if error:
                one["error"] = {"errors": [{"code": "FAILED", "message": error}]}

    def get(self, call: BaseHTTPRequestHandler) -> None:
        """Answer what is read."""
        path = urlsplit(call.path).path
        if path == "/computeMetadata/v1/instance/service-accounts/default/token":
            known = call.headers.get("Metadata-Flavor") == "Google"
            token = {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
            self._answer(call, 200 if known else 403, token if known else {})
            return
        found = _OPERATION.fullmatch(path)
        if not self._knows(call):
            return
        operation = self.operations.get(found[3]) if found else None
        if operation is None:
            self._answer(call, 404, _error(404, "The resource was not found"))
            return
        self._answer(call, 200, operation)

    def post(self, call: BaseHTTPRequestHandler) -> None:
        """Take a report."""
        body = call.rfile.read(int(call.headers.get("Content-Length") or 0))
        if not self._knows(call):
            return
        parts = urlsplit(call.path)
        found, asked = _REPORT.fullmatch(parts.path), json.loads(body)
        reasons = asked.get("faultReasons") or []
        good = asked.get("disruptionSchedule") == "IMMEDIATE" and reasons
        if not good or any(one.get("behavior") not in BEHAVIORS for one in reasons):
            self._answer(call, 400, _error(400, "Invalid value for a field"))
        elif found is None or found[3] not in self.instances or found[1] != self.project:
            self._answer(call, 404, _error(404, "The resource was not found"))
        elif self.refuse is not None:
            self._answer(call, self.refuse[0], _error(*self.refuse))
        else:
            self._take(call, found[3], asked, parse_qs(parts.query).get("requestId", [""])[0])

    def _take(
        self, call: BaseHTTPRequestHandler, instance: str, asked: dict[str, Any], request: str
    ) -> None:
        name = self._by_request.get(request) or f"operation-{len(self.operations) + 1}"
        if name not in self.operations:
            self._by_request[request] = name
            self.reports.append({"instance": instance, **asked})
            self.operations[name] = {"kind": "compute#operation", "name": name, "status": "RUNNING"}
        if self.cut_after:
            self.cut_after = False
            call.close_connection = True
            call.connection.close()
            return
        self._answer(call, 200, self.operations[name])

    def _knows(self, call: BaseHTTPRequestHandler) -> bool:
        if call.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._answer(call, 401, _error(401, "Request had invalid authentication credentials"))
        return False

    @staticmethod
    def _answer(call: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        call.send_response(status)
        call.send_header("Content-Type", "application/json")
        call.send_header("Content-Length", str(len(data)))
        call.end_headers()
        call.wfile.write(data)


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message}}
