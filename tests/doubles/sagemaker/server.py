"""How do requests come in over HTTP as JSON 1.1, and answers go out, also torn, late or never?"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.doubles.sagemaker.faults import HTML, Fault

_LINGER_OFF = struct.pack("ii", 1, 0)


@dataclass
class Reply:
    """One answer of the service, as it goes over the wire."""

    status: int
    body: str
    content_type: str = "application/x-amz-json-1.1"


def failure(code: str, message: str, status: int) -> Reply:
    """Write a no in the form of the protocol."""
    return Reply(status, json.dumps({"__type": code, "message": message}))


Handle = Callable[[dict[str, str], bytes], Reply]


class Network(ThreadingHTTPServer):
    """The listening socket; a thread for every connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        handle: Handle,
        fault_for: Callable[[str], Fault | None],
        record: Callable[[str, dict[str, str], bytes, Fault | None], Callable[[int | None], None]],
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.handle, self.fault_for, self.record = handle, fault_for, record
        self.stopping = threading.Event()
        self.torn: set[int] = set()

    def shutdown_request(self, request: Any) -> None:
        """End a connection; a torn one without the polite part, so that the peer gets a reset."""
        if id(request) in self.torn:
            self.torn.discard(id(request))
            self.close_request(request)
            return
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that went away, which is what the tests make them do."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Network

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key.lower(): value for key, value in self.headers.items()}
        operation = headers.get("x-amz-target", "").partition(".")[2]
        fault = self.server.fault_for(operation)
        done = self.server.record(operation, headers, body, fault)
        if fault is None:
            reply: Reply | None = self.server.handle(headers, body)
        else:
            reply = self._spoilt(fault, headers, body)
        done(None if reply is None else reply.status)
        if reply is not None:
            self._send(reply, half=bool(fault and fault.half))

    def _spoilt(self, fault: Fault, headers: dict[str, str], body: bytes) -> Reply | None:
        """Do what the fault says; None: there is no answer at all."""
        early = self.server.handle(headers, body) if fault.after else None
        if fault.delay_s:
            self.server.stopping.wait(fault.delay_s)
        if fault.hang:
            self.server.stopping.wait()
        if fault.hang or fault.reset:
            self._tear()
            return None
        if fault.html:
            return Reply(fault.status or 500, HTML, "text/html")
        if fault.status is not None:
            return failure(fault.code, fault.message, fault.status)
        return early or self.server.handle(headers, body)

    def _tear(self) -> None:
        """Break the connection off without an answer."""
        self.close_connection = True
        self.server.torn.add(id(self.request))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)

    def _send(self, reply: Reply, *, half: bool) -> None:
        data = reply.body.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-amzn-RequestId", "00000000-0000-4000-8000-000000000000")
        self.end_headers()
        if half:
            self.close_connection = True
            data = data[: len(data) // 2]
        self.wfile.write(data)
