"""What does CloudWatch Logs answer to `FilterLogEvents`? A small double of it, over real HTTP.

Requests are checked with botocore's own model of the service and with the rules that its
documentation adds. A page is what one look at some events of the group gives, so pages come empty
where none of those events match, as they do from the service.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from botocore.session import get_session
from botocore.validate import ParamValidator

TARGET = "Logs_20140328.FilterLogEvents"
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[a-z0-9-]+/logs/aws4_request, ")
_MODEL = get_session().get_service_model("logs").operation_model("FilterLogEvents")

Failure = tuple[int, str, str]
"""Status, code and message of an answer that is none."""


@dataclass(frozen=True, slots=True)
class Event:
    """One stored event; times in milliseconds."""

    stream: str
    timestamp: int
    message: str
    ingested: int
    id: str


@dataclass
class CloudWatchLogsDouble:
    """The service with its log groups, as a context manager.

    `looked_at` events are looked at for one page. `failures` are given first, in their order.
    `repeats` gives the last event of a page once more on the next.
    """

    looked_at: int = 100
    failures: list[Failure] = field(default_factory=list)
    repeats: bool = False
    groups: dict[str, list[Event]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def put(
        self, group: str, stream: str, *lines: tuple[int, str], ingested: int | None = None
    ) -> None:
        """Store lines, each with its time in milliseconds; an event id is 56 digits."""
        held = self.groups.setdefault(group, [])
        for at, message in lines:
            taken = at + 1_500 if ingested is None else ingested
            held.append(Event(stream, at, message, taken, f"{len(held) + 1:056d}"))

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, target: str, authorization: str, asked: dict[str, Any]) -> tuple[int, Any]:
        """Answer one request: a status and a document."""
        if target != TARGET:
            return _no(400, "UnknownOperationException", target)
        if not _SIGNED.match(authorization):
            return _no(400, "IncompleteSignatureException", "The signature is not for this service")
        self.asked.append(asked)
        if self.failures:
            return _no(*self.failures.pop(0))
        wrong = _wrong(asked)
        if wrong:
            return _no(400, "InvalidParameterException", wrong)
        name = asked.get("logGroupName") or asked["logGroupIdentifier"].split(":log-group:")[-1]
        if name not in self.groups:
            return _no(400, "ResourceNotFoundException", "The specified log group does not exist.")
        streams = {one.stream for one in self.groups[name]}
        if set(asked.get("logStreamNames", ())) - streams:
            return _no(400, "ResourceNotFoundException", "The specified log stream does not exist.")
        return 200, self._page(self.groups[name], asked)

    def _page(self, held: Sequence[Event], asked: dict[str, Any]) -> dict[str, Any]:
        newest_first = asked.get("startFromHead") is False
        ordered = sorted(held, key=lambda one: (one.timestamp, one.id), reverse=newest_first)
        first = int(asked.get("nextToken", "0"))
        end = first + self.looked_at
        looked_at = ordered[max(first - (1 if self.repeats and first else 0), 0) : end]
        found = [one for one in looked_at if _matches(one, asked)][: asked.get("limit", 10_000)]
        page: dict[str, Any] = {
            "events": [_as_json(one) for one in found],
            "searchedLogStreams": [],
        }
        return page | ({"nextToken": str(end)} if end < len(ordered) else {})


def _no(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"__type": code, "message": message}


def _wrong(asked: dict[str, Any]) -> str | None:
    """Say what the service would find wrong; botocore's model knows most of it."""
    report = ParamValidator().validate(asked, _MODEL.input_shape)
    unknown = set(asked) - set(_MODEL.input_shape.members)
    if report.has_errors() or unknown:
        return report.generate_report() or f"unknown: {sorted(unknown)}"
    if ("logGroupName" in asked) == ("logGroupIdentifier" in asked):
        return "exactly one of logGroupName and logGroupIdentifier is needed"
    if "logStreamNames" in asked and "logStreamNamePrefix" in asked:
        return "logStreamNames and logStreamNamePrefix exclude each other"
    for name, value in asked.items():
        shape = _MODEL.input_shape.members[name]
        limits, length = shape.metadata, value if isinstance(value, int) else len(value)
        if length > limits.get("max", length):
            return f"{name} is more than {limits['max']}"
        if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
            return f"{name} does not match {limits['pattern']}"
    if asked.get("endTime", 1) < asked.get("startTime", 0):
        return "endTime lies before startTime"
    return None


def _matches(one: Event, asked: dict[str, Any]) -> bool:
    """Match as the service does for a pattern of plain words: all of them, anywhere."""
    streams = asked.get("logStreamNames")
    return (
        asked.get("startTime", 0) <= one.timestamp <= asked.get("endTime", one.timestamp)
        and one.stream.startswith(asked.get("logStreamNamePrefix", ""))
        and (streams is None or one.stream in streams)
        and all(word in one.message for word in asked.get("filterPattern", "").split())
    )


def _as_json(one: Event) -> dict[str, Any]:
    return {
        "logStreamName": one.stream,
        "timestamp": one.timestamp,
        "message": one.message,
        "ingestionTime": one.ingested,
        "eventId": one.id,
    }


def _handler(double: CloudWatchLogsDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = self.headers
            status, document = double.answer(
                sent.get("X-Amz-Target", ""), sent.get("Authorization", ""), json.loads(body)
            )
            answer = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("x-amzn-RequestId", "00000000-0000-4000-8000-000000000000")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    return Handler
