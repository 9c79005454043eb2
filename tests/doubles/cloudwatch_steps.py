"""What does CloudWatch Logs answer to `PutLogEvents`? A small double of it, over real HTTP.

Requests are checked with botocore's own model of the service and with the limits that its
documentation adds: order of time, a day at most, a megabyte at most, no age beyond two weeks.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from botocore.session import get_session
from botocore.validate import ParamValidator

PREFIX = "Logs_20140328."
DAY_MS = 24 * 3600 * 1000
_MODEL = get_session().get_service_model("logs")


@dataclass
class StepsDouble:
    """One log group, as a context manager; `failures` are given first, in their order."""

    group: str = "/silent-witness/steps"
    streams: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    now: datetime | None = None

    def __enter__(self) -> Self:
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                operation = self.headers["X-Amz-Target"].removeprefix(PREFIX)
                status, body = double.answer(operation, asked)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def entry(self, **more: str) -> dict[str, str]:
        """Give a setting that leads here."""
        where = {"region": "us-west-2", "log_group": self.group, "endpoint_url": self.url}
        return {**where, **more}

    def lines(self, stream: str = "audit") -> list[dict[str, Any]]:
        """Give the lines of a stream, read as JSON."""
        return [json.loads(one["message"]) for one in self.streams.get(stream, ())]

    def answer(self, operation: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        self.calls.append(operation)
        if self.failures:
            status, code = self.failures.pop(0)
            return status, {"__type": code, "message": "as the test asked"}
        shape = _MODEL.operation_model(operation).input_shape
        report = ParamValidator().validate(asked, shape)
        assert not report.has_errors(), report.generate_report()
        if asked["logGroupName"] != self.group:
            return _no("ResourceNotFoundException", "The specified log group does not exist.")
        stream = asked["logStreamName"]
        if operation == "CreateLogStream":
            if stream in self.streams:
                return _no("ResourceAlreadyExistsException", "The stream exists.")
            self.streams[stream] = []
            return 200, {}
        if stream not in self.streams:
            return _no("ResourceNotFoundException", "The specified log stream does not exist.")
        return self._put(stream, asked["logEvents"])

    def _put(self, stream: str, events: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        times = [one["timestamp"] for one in events]
        size = sum(len(one["message"].encode()) + 26 for one in events)
        if times != sorted(times) or times[-1] - times[0] > DAY_MS or size > 1_048_576:
            return _no("InvalidParameterException", "Log events in a single batch …")
        now = int((self.now or datetime.now(UTC)).timestamp() * 1000)
        old = sum(at < now - 14 * DAY_MS for at in times)
        self.streams[stream] += events[old:]
        return 200, {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": old}} if old else {}


def _no(code: str, message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"__type": code, "message": message}
